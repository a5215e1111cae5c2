import type { TokenCounts } from '../../transcript/file/schema.js';
import type { Usage } from '../model.js';

/**
 * Counts tokens by the names that Langfuse's price list knows. They add up: `input` is what came from no cache, and
 * `total` is all kinds together. Cache writes are priced by how long they live, so they are split if the transcript
 * splits them; with both the split and the sum they would be counted twice.
 */
export function countUsage(counts: TokenCounts | undefined): Usage | undefined {
  if (!counts) return undefined;
  const { ephemeral_5m_input_tokens: for5m, ephemeral_1h_input_tokens: for1h } = counts.cache_creation ?? {};
  const { cache_creation_input_tokens: written } = counts;
  const isSplit = (for5m ?? 0) + (for1h ?? 0) > 0 || !written;
  const kinds: { [kind: string]: number | undefined } = {
    input: counts.input_tokens,
    output: counts.output_tokens,
    cache_read_input_tokens: counts.cache_read_input_tokens,
    input_cache_creation_5m: isSplit ? for5m : undefined,
    input_cache_creation_1h: isSplit ? for1h : undefined,
    cache_creation_input_tokens: isSplit ? undefined : written,
  };
  const usage: { [kind: string]: number } = {};
  for (const [kind, tokens] of Object.entries(kinds)) {
    if (tokens !== undefined && Number.isSafeInteger(tokens) && tokens >= 0) usage[kind] = tokens;
  }
  const total = Object.values(usage).reduce((sum, tokens) => sum + tokens, 0);
  return Object.keys(usage).length > 0 && Number.isSafeInteger(total) ? { ...usage, total } : undefined;
}
