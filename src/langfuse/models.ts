import * as z from 'zod/mini';
import type { LangfuseConfig } from '../config/settings.js';
import { attempt } from '../shared/attempt.js';
import { parseJson } from '../shared/json.js';
import type { Limits } from './destination.js';
import { apiRequest, describeRefusal, quoteReason } from './endpoint.js';
import { isRefusal, isSuccess, requestOnce } from './http/client.js';

/** A model as Langfuse defines it: it applies to generations whose model name matches the pattern. */
const Model = z.object({
  modelName: z.string(),
  matchPattern: z.string(),
  startDate: z.catch(z.nullish(z.string()), undefined),
  /** Otherwise it belongs to the project, and comes before Langfuse's own. */
  isLangfuseManaged: z.catch(z.boolean(), true),
  /** In dollars for one of each kind of usage. */
  prices: z.catch(z.record(z.string(), z.object({ price: z.number() })), {}),
});
export type Model = z.infer<typeof Model>;

const Page = z.object({ data: z.array(z.unknown()), meta: z.object({ totalPages: z.number() }) });

const MOST_ON_A_PAGE = 100;

/** Asks the server for all its models, its own and the project's; throws if it does not answer as Langfuse does. */
export async function fetchModels(langfuse: LangfuseConfig, limits: Limits): Promise<Model[]> {
  const models: Model[] = [];
  for (let page = 1, pages = 1; page <= pages; page += 1) {
    const query = `page=${page}&limit=${MOST_ON_A_PAGE}`;
    const request = await apiRequest(langfuse, limits, 'GET', `/api/public/models?${query}`);
    const { status, body } = await requestOnce(request, limits);
    if (isRefusal(status)) throw new Error(describeRefusal(langfuse, status));
    const { data: answer } = Page.safeParse(parseJson(body));
    if (!isSuccess(status) || !answer) throw new Error(`the server does not list its models (${status})`);
    models.push(...answer.data.flatMap((each) => Model.safeParse(each).data ?? []));
    pages = answer.meta.totalPages;
  }
  return models;
}

/** Finds the definition that Langfuse applies to a model's name: the project's own first, then the one that began last. */
export function findModel(models: readonly Model[], name: string): Model | undefined {
  const start = ({ startDate }: Model) => (startDate ? Date.parse(startDate) : Number.NEGATIVE_INFINITY);
  return models
    .filter(({ matchPattern }) => compilePattern(matchPattern)?.test(name))
    .toSorted((a, b) => Number(a.isLangfuseManaged) - Number(b.isLangfuseManaged) || start(b) - start(a) || 0)[0];
}

/** Langfuse lets PostgreSQL match, whose patterns begin with their flags. Undefined for one that JavaScript cannot read. */
function compilePattern(pattern: string): RegExp | undefined {
  const [, flags, expression = ''] = /^(\(\?i\))?(.*)$/s.exec(pattern) ?? [];
  return attempt(() => new RegExp(expression, flags === undefined ? '' : 'i'));
}

/** Whether Langfuse can compute what a generation of this model costs. */
export function hasPrice(models: readonly Model[], name: string): boolean {
  const { input, output } = findModel(models, name)?.prices ?? {};
  return input !== undefined && output !== undefined;
}

export type ModelDefinition = ReturnType<typeof buildModelDefinition>;

/** Builds a definition with one price for each kind of usage, in dollars for one. */
export function buildModelDefinition(name: string, prices: { readonly [kind: string]: number }) {
  return {
    modelName: name,
    matchPattern: `(?i)^(anthropic/)?${name.replace(/[^\w-]/g, '\\$&')}$`,
    unit: 'TOKENS',
    pricingTiers: [{ name: 'Standard', isDefault: true, priority: 0, conditions: [], prices }],
  };
}

/** Defines a model in the project; throws with the server's reason if it refuses. */
export async function defineModel(
  definition: ModelDefinition,
  langfuse: LangfuseConfig,
  limits: Limits,
): Promise<void> {
  const request = await apiRequest(langfuse, limits, 'POST', '/api/public/models', definition);
  const { status, body } = await requestOnce(request, limits);
  if (isSuccess(status)) return;
  throw new Error(
    `${definition.modelName} was not defined: the server answers ${status}${quoteReason(parseJson(body))}`,
  );
}
