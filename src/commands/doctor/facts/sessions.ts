import type { SessionEntry, StateStore } from '../../../state/store.js';

export interface SessionFacts {
  readonly pending: readonly PendingSession[];
  /** The session that the state had news of last, of those that were sent. */
  readonly lastExport: { readonly sessionId: string; readonly at: number; readonly turns: number } | undefined;
}

export interface PendingSession {
  readonly sessionId: string;
  /** When it failed first, in ms since 1970. */
  readonly since: number;
  readonly attempts: number;
  readonly reason: string;
  /** Undefined for those that the first cc-langfuse knew. */
  readonly destination: string | undefined;
}

export function sessionFacts(store: StateStore): SessionFacts {
  const entries = entriesOf(store);
  const [last] = entries
    .filter(([, { turnCount, pending, updated }]) => turnCount > 0 && !pending && Number.isFinite(Date.parse(updated)))
    .toSorted(([, a], [, b]) => b.updated.localeCompare(a.updated));
  return {
    pending: entries.flatMap(([sessionId, { pending, destination }]) =>
      pending ? [{ ...pending, sessionId, since: Date.parse(pending.since) || 0, destination }] : [],
    ),
    lastExport: last && { sessionId: last[0], at: Date.parse(last[1].updated), turns: last[1].turnCount },
  };
}

/** That it cannot be read is told of the file itself. */
function entriesOf(store: StateStore): SessionEntry[] {
  try {
    return store.all();
  } catch {
    return [];
  }
}
