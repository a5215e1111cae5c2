import * as z from 'zod';
import { isRecord } from '../../src/shared/json.js';
import type { ApiAnswer } from './langfuse-api.js';

// Langfuse 4.16.0: packages/shared/src/features/model-pricing/validation.ts
const UsageCondition = z.object({
  usageDetailPattern: z.string().min(1).max(200),
  operator: z.enum(['gt', 'gte', 'lt', 'lte', 'eq', 'neq']),
  value: z.number().nonnegative(),
  caseSensitive: z.boolean().default(false),
});
const AttributeCondition = z.object({
  source: z.enum(['model_parameters', 'metadata']),
  key: z.string().min(1).max(200),
  operator: z.literal('in'),
  values: z.array(z.string().min(1)).min(1),
});
const Tier = z.object({
  name: z.string().trim().min(1).max(100),
  isDefault: z.boolean().default(false),
  priority: z.number().int().min(0).max(999),
  conditions: z.array(z.union([UsageCondition, AttributeCondition])),
  prices: z.record(z.string(), z.number().nonnegative()),
});
type Tier = z.infer<typeof Tier>;

/** validatePricingTiers, in the same file. */
function areValidTiers(tiers: readonly Tier[]): boolean {
  const [base, ...more] = tiers.filter(({ isDefault }) => isDefault);
  const isDistinct = (values: readonly unknown[]) => new Set(values).size === values.length;
  const kindsOf = ({ prices }: Tier) => Object.keys(prices).toSorted().join();
  return (
    base?.priority === 0 &&
    base.conditions.length === 0 &&
    more.length === 0 &&
    kindsOf(base) !== '' &&
    isDistinct(tiers.map(({ priority }) => priority)) &&
    isDistinct(tiers.map(({ name }) => name)) &&
    tiers.every((tier) => kindsOf(tier) === kindsOf(base) && (tier === base || tier.conditions.length > 0))
  );
}

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
  .refine(({ pricingTiers }) => !pricingTiers || areValidTiers(pricingTiers));

export interface StoredModel {
  readonly modelName: string;
  readonly matchPattern: string;
  readonly isLangfuseManaged: boolean;
  /** Those of the default tier. */
  readonly prices: { readonly [kind: string]: number };
  /** The other tiers. */
  readonly tiers?: readonly Tier[];
}

/** What a price can depend on besides the model. */
interface Priced {
  readonly usage: { readonly [kind: string]: number };
  readonly model_parameters: unknown;
  readonly metadata: unknown;
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
      // worker/src/constants/default-model-prices.json
      tiers: [
        {
          name: 'Fast mode',
          isDefault: false,
          priority: 1,
          conditions: [{ source: 'model_parameters', key: 'speed', operator: 'in', values: ['fast'] }],
          prices: { input: 1e-5, output: 5e-5, cache_read_input_tokens: 1e-6 },
        },
      ],
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
    const others = pricingTiers?.filter(({ isDefault }) => !isDefault) ?? [];
    const model = {
      modelName,
      matchPattern,
      isLangfuseManaged: false,
      prices,
      ...(others.length > 0 && { tiers: others }),
    };
    return { status: 200, body: JSON.stringify(describe(model)), keep: () => this.models.push(model) };
  }

  /** packages/shared/src/server/ingestion/modelMatch.ts: the project's own come first. */
  find(name: string): StoredModel | undefined {
    const matches = this.models.filter(({ matchPattern }) =>
      new RegExp(matchPattern.replace('(?i)', ''), 'i').test(name),
    );
    return matches.find(({ isLangfuseManaged }) => !isLangfuseManaged) ?? matches[0];
  }

  /** packages/shared/src/server/pricing-tiers/matcher.ts: the first tier of which all conditions are met, or else the default. */
  findPrices(name: string | undefined, priced: Priced): StoredModel['prices'] | undefined {
    const model = name === undefined ? undefined : this.find(name);
    const tiers = model?.tiers?.toSorted((a, b) => a.priority - b.priority) ?? [];
    const met = tiers.find(({ conditions }) => conditions.every((condition) => isMet(condition, priced)));
    return met?.prices ?? model?.prices;
  }
}

const COMPARE = {
  gt: (a: number, b: number) => a > b,
  gte: (a: number, b: number) => a >= b,
  lt: (a: number, b: number) => a < b,
  lte: (a: number, b: number) => a <= b,
  eq: (a: number, b: number) => a === b,
  neq: (a: number, b: number) => a !== b,
};

/** evaluateCondition, in the same file. Only texts, numbers and booleans are attributes, as texts. */
function isMet(condition: Tier['conditions'][number], { usage, ...attributes }: Priced): boolean {
  if ('source' in condition) {
    const values = attributes[condition.source];
    const value = isRecord(values) ? values[condition.key] : undefined;
    return /string|number|boolean/.test(typeof value) && condition.values.includes(String(value));
  }
  const pattern = new RegExp(condition.usageDetailPattern, condition.caseSensitive ? '' : 'i');
  const sum = Object.entries(usage).reduce((all, [kind, units]) => all + (pattern.test(kind) ? units : 0), 0);
  return COMPARE[condition.operator](sum, condition.value);
}

/** prismaToApiModelDefinition, without what is of no use here. */
function describe({ prices, tiers = [], ...model }: StoredModel) {
  const listed = Object.fromEntries(Object.entries(prices).map(([kind, price]) => [kind, { price }]));
  const standard = { name: 'Standard', isDefault: true, priority: 0, conditions: [], prices };
  const pricingTiers = [standard, ...tiers].map((tier, index) => ({ id: `${model.modelName} ${index}`, ...tier }));
  return { id: model.modelName, startDate: null, unit: 'TOKENS', ...model, prices: listed, pricingTiers };
}
