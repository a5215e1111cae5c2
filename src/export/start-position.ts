import type { Entry } from '../state/entry.js';
import type { Position } from '../transcript/file/reader.js';
import { NO_SESSION_FACTS, type SessionFacts } from '../transcript/turns/turn.js';

/** Where to read from, and what has been acknowledged from there on. */
export interface Start extends Position {
  readonly turnCount: number;
  readonly lastLine: number;
  readonly sentLine: number;
  readonly time: number | undefined;
  readonly session: SessionFacts;
  readonly agents: Entry['agents'];
  /** The first prompt that must be found there; otherwise the file has been changed. */
  readonly prompt: string | undefined;
}

/** Start positions, best first: by byte offset, by line, from the top. The last turn is read again; it may have grown. */
export function startPositions(entry: Entry): Start[] {
  const { lastLine, sentLine = lastLine, turnCount, turnLine, agents } = entry;
  const top = { line: 1, offset: 0, turnCount: 0, lastLine: 0, sentLine: 0, session: NO_SESSION_FACTS } as const;
  const fromTop = { ...top, time: undefined, prompt: undefined, agents: undefined };
  if (lastLine === 0) return [{ ...fromTop, sentLine, agents, time: entry.time }];
  const known = { ...fromTop, turnCount, lastLine, sentLine, agents };
  if (turnLine === undefined) return [{ ...known, line: lastLine + 1 }, fromTop];
  const { prompt, time, session = NO_SESSION_FACTS } = entry;
  const lastTurn = { ...known, line: turnLine, turnCount: turnCount - 1, time, prompt, session };
  return [{ ...lastTurn, offset: entry.offset ?? 0 }, lastTurn, fromTop];
}

/** When the session was taken over from the first cc-langfuse: the last time that it recorded. */
export function migratedAt({ lastLine, turnLine, updated, agentsSince }: Entry): string | undefined {
  return agentsSince ?? (lastLine > 0 && turnLine === undefined ? updated : undefined);
}

/** The last line that belongs to a turn which earlier runs knew, whether or not it was sent. */
export function lastKnownLine({ lastLine, sentLine = 0, pending }: Entry): number {
  return Math.max(lastLine, sentLine, pending?.closedLine ?? 0);
}
