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
  /** The first prompt of the turn that must stand there; without it the file is not what it was. */
  readonly prompt: string | undefined;
}

/** The last exported turn is read again, since it may have grown: by its byte, else by its line, else all from the top. */
export function startsFor(entry: Entry): Start[] {
  const { last_line: lastLine, sent_line: sentLine = lastLine, turn_count: turnCount, turn_line, agents } = entry;
  const top = { line: 1, offset: 0, turnCount: 0, lastLine: 0, sentLine: 0, session: NO_SESSION_FACTS } as const;
  const anew = { ...top, time: undefined, prompt: undefined, agents: undefined };
  if (lastLine === 0) return [{ ...anew, sentLine, agents, time: entry.time }];
  const read = { ...anew, turnCount, lastLine, sentLine, agents };
  if (turn_line === undefined) return [{ ...read, line: lastLine + 1 }, anew];
  const { prompt, time, session = NO_SESSION_FACTS } = entry;
  const lastTurn = { ...read, line: turn_line, turnCount: turnCount - 1, time, prompt, session };
  return [{ ...lastTurn, offset: entry.offset ?? 0 }, lastTurn, anew];
}

/** When a session of the first cc-langfuse was taken over: what it knew last. */
export function takenOverAt({ last_line, turn_line, updated, agents_since }: Entry): string | undefined {
  return agents_since ?? (last_line > 0 && turn_line === undefined ? updated : undefined);
}

/** Up to which line the runs before knew of turns, sent or not. */
export function knownLineOf({ last_line, sent_line = 0, pending }: Entry): number {
  return Math.max(last_line, sent_line, pending?.closed_line ?? 0);
}
