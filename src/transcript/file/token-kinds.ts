import type { TokenCounts } from './schema.js';

/** What the usage of a response says besides tokens. */
type OtherField =
  | 'service_tier'
  | 'speed'
  | 'inference_geo'
  | 'output_tokens_details'
  | 'server_tool_use'
  | 'iterations';
type CacheWriteField = keyof NonNullable<TokenCounts['cache_creation']>;
type TokenField = Exclude<keyof TokenCounts, OtherField | 'cache_creation'> | CacheWriteField;

/** The tokens of a response, as the API counts them: all fields that count some. */
export type TokenFields = Required<Omit<TokenCounts, OtherField>>;

/** Each field that counts tokens, and the name that Langfuse's price list has for them. */
const KIND_OF_FIELD = {
  input_tokens: 'input',
  output_tokens: 'output',
  cache_read_input_tokens: 'cache_read_input_tokens',
  cache_creation_input_tokens: 'cache_creation_input_tokens',
  ephemeral_5m_input_tokens: 'input_cache_creation_5m',
  ephemeral_1h_input_tokens: 'input_cache_creation_1h',
} as const satisfies { readonly [field in TokenField]: string };

/** Thousands of responses are read one after the other. */
const FIELDS = Object.entries(KIND_OF_FIELD) as readonly (readonly [TokenField, TokenKind])[];

export type TokenKind = (typeof KIND_OF_FIELD)[TokenField];
export const TOKEN_KINDS: readonly TokenKind[] = Object.values(KIND_OF_FIELD);

/** Claude Code's own account tells only these apart in every version. */
export const GROUP_OF_KIND = {
  input: 'input',
  output: 'output',
  cache_read_input_tokens: 'cacheRead',
  cache_creation_input_tokens: 'cacheWritten',
  input_cache_creation_5m: 'cacheWritten',
  input_cache_creation_1h: 'cacheWritten',
} as const satisfies { readonly [kind in TokenKind]: string };
export type TokenGroup = (typeof GROUP_OF_KIND)[TokenKind];
export type Tokens = { readonly [group in TokenGroup]: number };

export const NO_TOKENS = { input: 0, output: 0, cacheRead: 0, cacheWritten: 0 } satisfies Tokens;

/**
 * Sorts the tokens of a response by kind. The kinds add up: `input` came from no cache. Cache writes are priced by how long they
 * live, so they are split if the transcript splits them; with both the split and the sum they would be counted twice.
 */
export function sortTokens({ cache_creation: split = {}, ...counts }: TokenCounts): {
  readonly [kind in TokenKind]?: number;
} {
  const { cache_creation_input_tokens: written, ...unsplit } = counts;
  const splitSum = Object.values(split).reduce<number>((sum, tokens = 0) => sum + tokens, 0);
  const fields: { readonly [field in TokenField]?: number | undefined } =
    splitSum > 0 || !written ? { ...unsplit, ...split } : counts;
  const sorted: { [kind in TokenKind]?: number } = {};
  for (const [field, kind] of FIELDS) {
    const tokens = fields[field];
    if (tokens !== undefined) sorted[kind] = tokens;
  }
  return sorted;
}

/** What each advisor used that a response asked. The response's own tokens do not include it. It runs where the response does. */
export function listAdvisorUses({ iterations = [], inference_geo }: TokenCounts = {}) {
  const uses = iterations.filter(({ type }) => type === 'advisor_message');
  return uses.map(({ model, ...usage }) => ({ model, usage: { ...usage, inference_geo } }));
}

/** Adds up the tokens of a response by group. */
export function groupTokens(counts: TokenCounts = {}): Tokens {
  const sums = { ...NO_TOKENS };
  for (const [kind, tokens] of Object.entries(sortTokens(counts))) sums[GROUP_OF_KIND[kind as TokenKind]] += tokens;
  return sums;
}
