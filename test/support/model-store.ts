import * as z from 'zod';
import type { ApiAnswer } from './langfuse-api.js';

// Langfuse 4.16.0: packages/shared/src/features/model-pricing/validation.ts
const Tier = z.object({
  name: z.string().trim().min(1).max(100),
  isDefault: z.boolean().default(false),
  priority: z.number().int().min(0).max(999),
  conditions: z.array(z.unknown()),
  prices: z.record(z.string(), z.number().nonnegative()),
});

// web/src/features/public-api/types/models.ts: PostModelsV1Body; either flat prices or tiers, and a unit.
const Definition = z
  .object({
    modelName: z.string(),
    matchPattern: z.string(),
    startDate: z.coerce.date().nullish(),
    inputPrice: z.number().nonnegative().nullish(),
    outputPrice: z.number().nonnegative().nullish(),
    unit: z.enum(['TOKENS', 'CHARACTERS', 'MILLISECONDS', 'SECONDS', 'REQUESTS', 'IMAGES']),
    pricingTiers: z.array(Tier).nullish(),
  })
  .refine(({ inputPrice, outputPrice, pricingTiers }) => {
    const hasFlat = inputPrice != null || outputPrice != null;
    return hasFlat !== (pricingTiers?.length ?? 0) > 0;
  })
  .refine(({ pricingTiers }) => {
    if (!pricingTiers) return true;
    const defaults = pricingTiers.filter(({ isDefault }) => isDefault);
    const [tier] = defaults;
    const isValid = defaults.length === 1 && tier?.priority === 0 && tier.conditions.length === 0;
    return isValid && pricingTiers.every(({ prices }) => Object.keys(prices).length > 0);
  });

export interface StoredModel {
  readonly modelName: string;
  readonly matchPattern: string;
  readonly isLangfuseManaged: boolean;
  readonly prices: { readonly [kind: string]: number };
}

const MOST_ON_A_PAGE = 100;

/** Langfuse's models: web/src/pages/api/public/models/index.ts and web/src/features/models/server/publicApiModelService.ts. */
export class ModelStore {
  /** Those that the server has without being told. */
  models: StoredModel[] = [
    {
      modelName: 'claude-haiku-4-5-20251001',
      matchPattern: '(?i)^(anthropic/)?claude-haiku-4-5(-20251001)?$',
      isLangfuseManaged: true,
      prices: { input: 1e-6, output: 5e-6, cache_read_input_tokens: 1e-7 },
    },
    {
      modelName: 'claude-opus-5',
      matchPattern: '(?i)^(anthropic/)?claude-opus-5$',
      isLangfuseManaged: true,
      prices: { input: 5e-6, output: 25e-6, cache_read_input_tokens: 5e-7 },
    },
  ];

  answer(request: string, body: unknown): ApiAnswer | undefined {
    const [path, query] = request.split('?');
    if (path === 'GET /api/public/models') return this.#list(new URLSearchParams(query));
    if (path === 'POST /api/public/models') return this.#define(body);
    return undefined;
  }

  /** packages/shared/src/utils/zod.ts: publicApiPaginationZod has 50 on a page unless asked for up to 100. */
  #list(query: URLSearchParams): ApiAnswer {
    const [page, limit] = [Number(query.get('page') ?? 1), Number(query.get('limit') ?? 50)];
    if (!(page > 0) || !(limit > 0) || limit > MOST_ON_A_PAGE) return { status: 400 };
    const sorted = this.models.toSorted((a, b) => (a.modelName < b.modelName ? -1 : 1));
    const data = sorted.slice((page - 1) * limit, page * limit).map(describe);
    const meta = { page, limit, totalItems: sorted.length, totalPages: Math.ceil(sorted.length / limit) };
    return { status: 200, body: JSON.stringify({ data, meta }) };
  }

  /** createModelForApi: a second model of the same name in a project is refused with 400. */
  #define(body: unknown): ApiAnswer {
    const { data: definition } = Definition.safeParse(body);
    if (!definition) return { status: 400, body: JSON.stringify({ message: 'Invalid request data' }) };
    const { modelName, matchPattern, pricingTiers, inputPrice, outputPrice } = definition;
    const isTaken = this.models.some((model) => model.modelName === modelName && !model.isLangfuseManaged);
    const message = `Model name '${modelName}' already exists in project`;
    if (isTaken) return { status: 400, body: JSON.stringify({ message }) };
    const flat = {
      ...(inputPrice != null && { input: inputPrice }),
      ...(outputPrice != null && { output: outputPrice }),
    };
    const prices = pricingTiers?.find(({ isDefault }) => isDefault)?.prices ?? flat;
    const model = { modelName, matchPattern, isLangfuseManaged: false, prices };
    return { status: 200, body: JSON.stringify(describe(model)), keep: () => this.models.push(model) };
  }

  /** packages/shared/src/server/ingestion/modelMatch.ts: the project's own come first. */
  find(name: string): StoredModel | undefined {
    const matches = this.models.filter(({ matchPattern }) =>
      new RegExp(matchPattern.replace('(?i)', ''), 'i').test(name),
    );
    return matches.find(({ isLangfuseManaged }) => !isLangfuseManaged) ?? matches[0];
  }
}

/** prismaToApiModelDefinition, without what is of no use here. */
function describe({ prices, ...model }: StoredModel) {
  const listed = Object.fromEntries(Object.entries(prices).map(([kind, price]) => [kind, { price }]));
  return { id: model.modelName, startDate: null, unit: 'TOKENS', ...model, prices: listed };
}
