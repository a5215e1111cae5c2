import * as z from 'zod/mini';
import { parseJson } from '../../shared/json.js';
import { optional } from '../../shared/schema.js';
import { withReader } from '../file/lines.js';

const count = z.number().check(z.int(), z.nonnegative());

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
});

/** What an account counts, by the names that Langfuse has for these kinds of usage. */
export const COUNTED_KINDS = [
  'input',
  'output',
  'cache_read_input_tokens',
  'input_cache_creation_5m',
  'input_cache_creation_1h',
  'web_search_requests',
] as const;
export type CountedKind = (typeof COUNTED_KINDS)[number];

/** What one model used from one line of Claude Code's running account to the next, and what that cost. */
export interface AccountStep {
  readonly model: string;
  readonly counts: { readonly [kind in CountedKind]: number };
  readonly dollars: number;
  /** The account's sum at the later line: the rounding errors in `dollars` grow with it. */
  readonly sum: number;
  /** Identifies what the account said at the later line. A fork goes on with the account of its parent, and may repeat it. */
  readonly point: string;
}

const ACCOUNT_LINE = Buffer.from('{"type":"cost-state"');
const FAST_MODE = Buffer.from('"speed":"fast"');

/**
 * Reads the steps of a session's account. Returns none if some of its costs do not follow from the counts: in fast mode tokens
 * have other prices, and Claude Code takes a default price for a model that it does not know.
 */
export function readAccountSteps(path: string): AccountStep[] {
  const steps: AccountStep[] = [];
  const last = new Map<string, z.infer<typeof ModelCost>>();
  const isLinear = withReader(path, (reader) => {
    for (const { bytes } of reader.lines()) {
      if (bytes.includes(FAST_MODE)) return false;
      if (bytes.compare(ACCOUNT_LINE, 0, ACCOUNT_LINE.length, 0, Math.min(ACCOUNT_LINE.length, bytes.length)) !== 0)
        continue;
      const { data: account } = CostState.safeParse(parseJson(bytes.toString('utf8')));
      if (account?.hasUnknownModelCost) return false;
      for (const [model, value] of Object.entries(account?.modelUsage ?? {})) {
        const { data: cost } = ModelCost.safeParse(value);
        if (!cost || !isSplit(cost)) continue;
        const step = subtract(cost, last.get(model));
        last.set(model, cost);
        const point = [model, account?.startTime, ...Object.values(toCounts(cost))].join(' ');
        if (step) steps.push({ ...step, model, point });
      }
    }
    return true;
  });
  return isLinear ? steps : [];
}

/** Older versions do not say how long cache writes live, and that decides about their price. */
function isSplit(cost: z.infer<typeof ModelCost>): boolean {
  const { cacheCreationEphemeral5mInputTokens: for5m, cacheCreationEphemeral1hInputTokens: for1h } = cost;
  return for5m + for1h === cost.cacheCreationInputTokens;
}

function subtract(
  now: z.infer<typeof ModelCost>,
  before: z.infer<typeof ModelCost> | undefined,
): Omit<AccountStep, 'model' | 'point'> | undefined {
  const counts = toCounts(now);
  const earlier = before && toCounts(before);
  const isGrown =
    earlier && COUNTED_KINDS.every((kind) => counts[kind] >= earlier[kind]) && now.costUSD >= before.costUSD;
  // An account that has become smaller is another process's, or has begun again.
  const step = { counts, dollars: now.costUSD, sum: now.costUSD };
  if (!isGrown) return hasCounts(counts) ? step : undefined;
  const grown = Object.fromEntries(COUNTED_KINDS.map((kind) => [kind, counts[kind] - earlier[kind]]));
  const difference = { ...step, counts: grown as AccountStep['counts'], dollars: now.costUSD - before.costUSD };
  return hasCounts(difference.counts) ? difference : undefined;
}

function hasCounts(counts: AccountStep['counts']): boolean {
  return Object.values(counts).some((value) => value > 0);
}

function toCounts(cost: z.infer<typeof ModelCost>): AccountStep['counts'] {
  return {
    input: cost.inputTokens,
    output: cost.outputTokens,
    cache_read_input_tokens: cost.cacheReadInputTokens,
    input_cache_creation_5m: cost.cacheCreationEphemeral5mInputTokens,
    input_cache_creation_1h: cost.cacheCreationEphemeral1hInputTokens,
    web_search_requests: cost.webSearchRequests,
  };
}
