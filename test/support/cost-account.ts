/** Counts by the names of Claude Code's account, and the price of one of each. */
export const ACCOUNT_PRICES = {
  inputTokens: 4.4e-6,
  outputTokens: 22e-6,
  cacheReadInputTokens: 0.22e-6,
  cacheCreationEphemeral5mInputTokens: 5.5e-6,
  cacheCreationEphemeral1hInputTokens: 8.8e-6,
  webSearchRequests: 0.01,
};
export type AccountCounts = { readonly [kind in keyof typeof ACCOUNT_PRICES]?: number };

/** One model's part of an account after some responses, added up as Claude Code does. */
export function account(responses: readonly AccountCounts[], costsTimes = 1) {
  const kinds = Object.keys(ACCOUNT_PRICES) as (keyof typeof ACCOUNT_PRICES)[];
  const total = Object.fromEntries(kinds.map((kind) => [kind, 0])) as { [kind in keyof typeof ACCOUNT_PRICES]: number };
  let costUSD = 0;
  for (const counts of responses)
    for (const kind of kinds) {
      total[kind] += counts[kind] ?? 0;
      costUSD += (counts[kind] ?? 0) * ACCOUNT_PRICES[kind] * costsTimes;
    }
  const { cacheCreationEphemeral5mInputTokens: for5m, cacheCreationEphemeral1hInputTokens: for1h } = total;
  return { ...total, cacheCreationInputTokens: for5m + for1h, thinkingTokens: 0, costUSD };
}

export function accountLine(modelUsage: object, more: object = {}): string {
  return JSON.stringify({ type: 'cost-state', sessionId: 's', totalCostUSD: 0, modelUsage, ...more });
}

/** Counts in which every kind varies apart from the others; the same for the same number. */
export function variedCounts(n: number): AccountCounts {
  return {
    inputTokens: 100 + ((n * 37) % 101),
    outputTokens: 20 + ((n * n * 13) % 97),
    cacheReadInputTokens: 12_000 + ((n * 911) % 4_099),
    cacheCreationEphemeral5mInputTokens: (n * n * n * 7) % 503,
    cacheCreationEphemeral1hInputTokens: (n * 59) % 211,
  };
}
