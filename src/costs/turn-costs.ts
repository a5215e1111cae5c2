/** What a session cost by Claude Code's own account. */
export interface SessionCost {
  readonly dollars: number;
  /** Whether it used more than the account says. */
  readonly hasMore: boolean;
  /** What was spent between two lines of the account, in ms since 1970: after one moment, and up to another. */
  readonly spans: readonly { readonly after: number; readonly until: number; readonly dollars: number }[];
}

/** Finds what each turn cost: only if all that was spent between two lines of the account was spent in that turn. */
export function findTurnCosts<Turn extends { readonly startTime: number }>(
  { spans }: SessionCost,
  turns: readonly Turn[],
): Map<Turn, number> {
  const costs = new Map<Turn, number>();
  for (const span of spans) {
    // Two processes ran at the same time.
    if (spans.some((other) => other !== span && other.after < span.until && span.after < other.until)) continue;
    const [turn, ...others] = turns.filter(({ startTime }) => startTime > span.after && startTime <= span.until);
    if (turn && others.length === 0) costs.set(turn, span.dollars);
  }
  return costs;
}
