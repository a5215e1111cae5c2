import * as z from 'zod/mini';
import type { LangfuseConfig } from '../config/settings.js';
import { attempt } from '../shared/attempt.js';
import { mapValues, parseJson } from '../shared/json.js';
import type { Limits } from './destination.js';
import { apiRequest } from './endpoint.js';
import { isRefusal, isSuccess, requestOnce } from './http/client.js';
import { quote, ReadingRefused, readWords } from './words.js';

/** Prices for what meets all conditions. Of several such tiers the one with the smallest number applies, and otherwise the default. */
const Tier = z.object({
  name: z.string(),
  isDefault: z.boolean(),
  priority: z.number(),
  conditions: z.array(z.unknown()),
  prices: z.record(z.string(), z.number()),
});
export type Tier = z.infer<typeof Tier>;

/** A model as Langfuse defines it: it applies to generations whose model name matches the pattern. */
const Model = z.object({
  modelName: z.string(),
  matchPattern: z.string(),
  startDate: z.catch(z.nullish(z.string()), undefined),
  /** Otherwise it belongs to the project, and comes before Langfuse's own. */
  isLangfuseManaged: z.catch(z.boolean(), true),
  /** In dollars for one of each kind of usage; those of the default tier. */
  prices: z.catch(z.record(z.string(), z.object({ price: z.number() })), {}),
  /** Servers before December 2025 have none. */
  pricingTiers: z.catch(z.array(Tier), []),
});
export type Model = z.infer<typeof Model>;

const Page = z.object({ data: z.array(z.unknown()), meta: z.object({ totalPages: z.number() }) });

const MOST_ON_A_PAGE = 100;
/** Far more than any project has: a server may claim any number. */
const MOST_PAGES = 50;

/** Asks the server for all its models, its own and the project's; throws if it does not answer as Langfuse does. */
export async function fetchModels(langfuse: LangfuseConfig, limits: Limits): Promise<Model[]> {
  const models: Model[] = [];
  for (let page = 1, pages = 1; page <= pages; page += 1) {
    const query = `page=${page}&limit=${MOST_ON_A_PAGE}`;
    const request = await apiRequest(langfuse, limits, 'GET', `/api/public/models?${query}`);
    const { status, body } = await requestOnce(request, limits);
    if (isRefusal(status)) throw new ReadingRefused({ status, words: readWords(body, request.headers) });
    const { data: answer } = Page.safeParse(parseJson(body));
    if (!isSuccess(status) || !answer) throw new Error(`the server does not list its models (${status})`);
    models.push(...answer.data.flatMap((each) => Model.safeParse(each).data ?? []));
    pages = Math.min(answer.meta.totalPages, MOST_PAGES);
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

/** Whether a model has prices of its own for what has to run in the US. */
export function hasTierForUs({ pricingTiers }: Model): boolean {
  const isForUs = (condition: unknown) => {
    const { data } = AttributeCondition.safeParse(condition);
    return data?.key === IN_US.key && data.values.includes('us');
  };
  return pricingTiers.some(({ conditions }) => conditions.some(isForUs));
}

/** What Langfuse chooses a tier by, as far as cc-langfuse sends it. */
type Attributes = { readonly [key: string]: string };

/** Finds the prices that Langfuse takes, and which of the attributes they are for. Undefined for a model that it does not know. */
export function findTierPrices(models: readonly Model[], name: string, attributes: Attributes) {
  const model = findModel(models, name);
  if (!model) return undefined;
  const isMet = (condition: unknown) => {
    const { data } = AttributeCondition.safeParse(condition);
    return data?.values.includes(attributes[data.key] ?? '') ?? false;
  };
  const tier = model.pricingTiers
    .filter(({ conditions, isDefault }) => !isDefault && conditions.every(isMet))
    .toSorted((a, b) => a.priority - b.priority)[0];
  const prices: Prices = tier?.prices ?? mapValues(model.prices, ({ price }) => price);
  const keys = (tier?.conditions ?? []).map((condition) => AttributeCondition.parse(condition).key);
  return { prices, isFor: (key: string) => keys.includes(key) };
}

/** Parses models that were asked for earlier; undefined if they are not what `fetchModels` returned. */
export function parseModels(models: unknown): Model[] | undefined {
  return z.array(Model).safeParse(models).data;
}

const IN_US = { source: 'model_parameters', key: 'inference_geo', operator: 'in', values: ['us'] };
const IN_FAST_MODE = { source: 'model_parameters', key: 'speed', operator: 'in', values: ['fast'] };
const AttributeCondition = z.object({
  source: z.literal(IN_US.source),
  key: z.string(),
  values: z.array(z.string()),
});

type Prices = { readonly [kind: string]: number };

/** The tiers of a model with these prices, in dollars for one of each kind of usage. All tiers need the same kinds. */
export function buildTiers(standard: Prices, fast: Prices | undefined): Tier[] {
  const tier = { name: 'Standard', isDefault: true, priority: 0, conditions: [], prices: { ...standard } };
  if (!fast) return [tier];
  return [tier, { name: 'Fast mode', isDefault: false, priority: 1, conditions: [IN_FAST_MODE], prices: { ...fast } }];
}

/** Adds to each tier one for what has to run in the US, which costs so many times as much. The tiers with more conditions come first. */
export function addTiersForUs(tiers: readonly Tier[], times: number): Tier[] {
  const inUs = ({ name, isDefault, conditions, prices }: Tier): Tier => ({
    name: isDefault ? 'US' : `${name}, US`,
    isDefault: false,
    priority: 0,
    conditions: [...conditions, IN_US],
    prices: mapValues(prices, (price) => Number((price * times).toPrecision(12))),
  });
  const others = tiers.filter(({ isDefault }) => !isDefault).toSorted((a, b) => a.priority - b.priority);
  const defaults = tiers.filter(({ isDefault }) => isDefault);
  const ordered = [...defaults, ...others.flatMap((tier) => [inUs(tier), tier]), ...defaults.map(inUs)];
  return ordered.map((tier, priority) => ({ ...tier, priority }));
}

export interface ModelDefinition {
  readonly modelName: string;
  readonly matchPattern: string;
  readonly unit: 'TOKENS';
  readonly pricingTiers: readonly Tier[];
}

/** The pattern for a model's name as Anthropic writes it. */
export function matchName(name: string): string {
  return `(?i)^(anthropic/)?${name.replace(/[^\w-]/g, '\\$&')}$`;
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
    `${definition.modelName} was not defined: the server answers ${status}${quote(readWords(body, request.headers))}`,
  );
}
