import * as z from 'zod/mini';
import { ownValue, parseJson } from '../../shared/json.js';
import { count, optional } from '../../shared/schema.js';
import type { TokenKind } from '../file/token-kinds.js';

const duration = z.catch(z.number().check(z.nonnegative()), 0);

const ModelCost = z.object({
  inputTokens: count,
  outputTokens: count,
  cacheReadInputTokens: count,
  cacheCreationInputTokens: count,
  cacheCreationEphemeral5mInputTokens: z.catch(count, 0),
  cacheCreationEphemeral1hInputTokens: z.catch(count, 0),
  webSearchRequests: z.catch(count, 0),
  costUSD: z.number().check(z.nonnegative()),
});

const CostState = z.object({
  modelUsage: z.record(z.string(), z.unknown()),
  hasUnknownModelCost: optional(z.boolean()),
  startTime: optional(z.number()),
  totalDuration: duration,
  totalAPIDuration: duration,
  totalToolDuration: duration,
});

/** What an account counts. Cache writes count only if it says how long all of them live. */
export type CountedKind = Exclude<TokenKind, 'cache_creation_input_tokens'> | 'web_search_requests';
const FIELD_OF_KIND = {
  input: 'inputTokens',
  output: 'outputTokens',
  cache_read_input_tokens: 'cacheReadInputTokens',
  input_cache_creation_5m: 'cacheCreationEphemeral5mInputTokens',
  input_cache_creation_1h: 'cacheCreationEphemeral1hInputTokens',
  web_search_requests: 'webSearchRequests',
} as const satisfies { readonly [kind in CountedKind]: keyof z.infer<typeof ModelCost> };
export const COUNTED_KINDS = Object.keys(FIELD_OF_KIND) as readonly CountedKind[];
type Counts = { readonly [kind in CountedKind]: number };

/** What one line of Claude Code's running account says: everything that was used since the account began. */
export interface AccountPoint {
  /** When the account began. A resumed session and a fork go on with the account of the process before. */
  readonly startTime: number | undefined;
  /** How long its processes have run, and have waited for the API and for tools, in ms. */
  readonly durations: readonly number[];
  /** Whether Claude Code took a default price for a model that it does not know. */
  readonly hasDefaultPrice: boolean;
  readonly models: { readonly [model: string]: ModelPoint };
}

interface ModelPoint {
  readonly counts: Counts;
  readonly dollars: number;
  /** Older versions do not say how long cache writes live, and that decides about their price. */
  readonly isSplit: boolean;
}

/** What one model used from one line of Claude Code's running account to the next, and what that cost. */
export interface AccountStep {
  readonly model: string;
  readonly counts: Counts;
  readonly dollars: number;
  readonly isSplit: boolean;
  /** The account's sum at the later line: the rounding errors in `dollars` grow with it. */
  readonly sum: number;
  /** Identifies what the account said at the later line. A fork goes on with the account of its parent, and may repeat it. */
  readonly point: string;
}

const ACCOUNT_LINE = Buffer.from('{"type":"cost-state"');

/** Whether the counts of a step can say what it cost. */
export function followsFromCounts({ isSplit, counts }: AccountStep): boolean {
  return isSplit && Object.values(counts).some((value) => value > 0);
}

/** Returns what a line of the account says; undefined for any other line. */
export function parseAccountPoint(bytes: Buffer): AccountPoint | undefined {
  if (bytes.compare(ACCOUNT_LINE, 0, ACCOUNT_LINE.length, 0, Math.min(ACCOUNT_LINE.length, bytes.length)) !== 0)
    return undefined;
  const { data } = CostState.safeParse(parseJson(bytes.toString('utf8')));
  if (!data) return undefined;
  const { startTime, totalDuration, totalAPIDuration, totalToolDuration, hasUnknownModelCost = false } = data;
  const models = Object.entries(data.modelUsage).flatMap(([model, value]) => {
    const { data: cost } = ModelCost.safeParse(value);
    return cost ? [[model, toModelPoint(cost)] as const] : [];
  });
  return {
    startTime,
    durations: [totalDuration, totalAPIDuration, totalToolDuration],
    hasDefaultPrice: hasUnknownModelCost,
    models: Object.fromEntries(models),
  };
}

/**
 * Finds the index of the point from which an account went on to another one: the last that has nothing more of anything; -1 if there
 * is none. Two processes that run in one session go on from the same point, and neither account has what the other process used.
 */
export function findBase(point: AccountPoint, earlier: readonly AccountPoint[]): number {
  return earlier.findLastIndex((base) => {
    if (base.startTime !== point.startTime) return false;
    if (base.durations.some((ms, index) => ms > (point.durations[index] ?? 0))) return false;
    return Object.entries(base.models).every(([model, { counts, dollars }]) => {
      const later = ownValue(point.models, model);
      return later && dollars <= later.dollars && COUNTED_KINDS.every((kind) => counts[kind] <= later.counts[kind]);
    });
  });
}

/** Lists what each model used between two points; without a base, since the account began. */
export function listSteps(point: AccountPoint, base: AccountPoint | undefined): AccountStep[] {
  return Object.entries(point.models).flatMap(([model, { counts: all, dollars: sum, isSplit }]) => {
    const before = base && ownValue(base.models, model);
    const counts = mapCounts((kind) => all[kind] - (before?.counts[kind] ?? 0));
    const dollars = sum - (before?.dollars ?? 0);
    if (dollars === 0 && COUNTED_KINDS.every((kind) => counts[kind] === 0)) return [];
    return [{ model, counts, dollars, isSplit, sum, point: [model, point.startTime, ...Object.values(all)].join(' ') }];
  });
}

function toModelPoint(cost: z.infer<typeof ModelCost>): ModelPoint {
  const { cacheCreationEphemeral5mInputTokens: for5m, cacheCreationEphemeral1hInputTokens: for1h } = cost;
  const counts = mapCounts((kind) => cost[FIELD_OF_KIND[kind]]);
  return { counts, dollars: cost.costUSD, isSplit: for5m + for1h === cost.cacheCreationInputTokens };
}

function mapCounts(change: (kind: CountedKind) => number): Counts {
  return Object.fromEntries(COUNTED_KINDS.map((kind) => [kind, change(kind)])) as Counts;
}
