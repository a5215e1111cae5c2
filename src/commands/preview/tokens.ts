import type { ShownObservation } from './session.js';

/** The kinds of tokens that have a price of their own, and what a person calls them. */
export const TOKEN_KINDS = {
  input: 'input',
  cache_read_input_tokens: 'cache read',
  cache_creation_input_tokens: 'cache write',
  input_cache_creation_5m: '5m cache write',
  input_cache_creation_1h: '1h cache write',
  output: 'output',
} as const;
export type TokenKind = keyof typeof TOKEN_KINDS;

export interface Tokens {
  readonly kind: TokenKind;
  readonly tokens: number;
}

/** How many tokens observations took, of each kind of which there are any. */
export function countTokensByKind(observations: readonly ShownObservation[]): Tokens[] {
  return (Object.keys(TOKEN_KINDS) as TokenKind[]).flatMap((kind) => {
    const tokens = observations.reduce((sum, { usage }) => sum + (usage?.[kind] ?? 0), 0);
    return tokens > 0 ? [{ kind, tokens }] : [];
  });
}

export function totalTokens(tokens: readonly Tokens[]): number {
  return tokens.reduce((sum, each) => sum + each.tokens, 0);
}
