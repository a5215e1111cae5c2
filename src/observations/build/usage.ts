import type { TokenCounts } from '../../transcript/file/schema.js';
import { sortTokens } from '../../transcript/file/token-kinds.js';
import type { Usage } from '../model.js';

/** Counts tokens by the names that Langfuse's price list knows, and in `total` all kinds together. */
export function countUsage(counts: TokenCounts | undefined): Usage | undefined {
  if (!counts) return undefined;
  const valid = Object.entries(sortTokens(counts)).filter(([, tokens]) => isCount(tokens));
  const total = valid.reduce((sum, [, tokens]) => sum + tokens, 0);
  return valid.length > 0 && Number.isSafeInteger(total) ? { ...Object.fromEntries(valid), total } : undefined;
}

interface Context {
  readonly context_tokens?: number;
  readonly cache_share?: number;
}

/** Describes the context of a request: its size, and how much of it was read from the cache. */
export function describeContext(counts: TokenCounts | undefined): Context {
  // If the API has sampled several times for one response, its usage is the sum.
  const last = counts?.iterations?.findLast(({ type }) => type === 'message');
  const { total = 0, output = 0, cache_read_input_tokens: read = 0 } = countUsage(last ?? counts) ?? {};
  const size = total - output;
  return size > 0 ? { context_tokens: size, cache_share: Number((read / size).toFixed(3)) } : {};
}

/** Where the model ran, as a parameter of the model: Langfuse chooses prices by it. Nothing for a model for which this cannot be chosen. */
export function describeGeo({ inference_geo }: TokenCounts = {}): { readonly inference_geo: string } | undefined {
  return inference_geo === undefined || inference_geo === 'not_available' ? undefined : { inference_geo };
}

export function isCount(value = -1): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
