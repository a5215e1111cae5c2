import { type Entry, joinEntry, newSession } from '../state/entry.js';
import type { Position } from '../transcript/file/reader.js';
import { NO_SESSION_FACTS, type SessionFacts } from '../transcript/turns/turn.js';

/** Where to read from, and what has been acknowledged from there on. */
export interface Start extends Position {
  readonly turnCount: number;
  readonly lastLine: number;
  readonly sentLine: number;
  /** What has not been acknowledged before that line, by id. */
  readonly held: readonly string[] | undefined;
  readonly time: number | undefined;
  readonly session: SessionFacts;
  readonly agents: Entry['agents'];
  /** When the session was taken over from the first cc-langfuse: the last time that it recorded. */
  readonly agentsSince: string | undefined;
  /** Whether only turns of no run are wanted, which lie before what has been exported. */
  readonly isForGaps: boolean;
  /** The first prompt that must be found there; otherwise the file has been changed. */
  readonly prompt: string | undefined;
}

/** Start positions, best first: by byte offset, by line, from the top. The last turn is read again; it may have grown. */
export function startPositions(entry: Entry): [Start, ...Start[]] {
  const { lastLine, sentLine = lastLine, held, turnCount, turnLine, agents, updated } = entry;
  const { turnsBefore = turnCount - 1 } = entry;
  const { agentsSince = lastLine > 0 && turnLine === undefined ? updated : undefined } = entry;
  const fromTop: Start = {
    line: 1,
    offset: 0,
    turnCount: 0,
    lastLine: 0,
    sentLine: 0,
    held: undefined,
    time: undefined,
    session: NO_SESSION_FACTS,
    agents: undefined,
    agentsSince,
    isForGaps: false,
    prompt: undefined,
  };
  if (lastLine === 0) return [{ ...fromTop, sentLine, held, agents, time: entry.time }];
  const known = { ...fromTop, turnCount, lastLine, sentLine, held, agents };
  if (turnLine === undefined) return [{ ...known, line: lastLine + 1 }, fromTop];
  const { prompt, time, session = NO_SESSION_FACTS } = entry;
  const lastTurn = { ...known, line: turnLine, turnCount: turnsBefore, time, prompt, session };
  return [{ ...lastTurn, offset: entry.offset ?? 0 }, lastTurn, fromTop];
}

/** Where to look for turns of no run, which lie before what has been exported. */
export function gapStart(entry: Entry): Start {
  const { agents, agentsSince } = entry;
  const [start] = startPositions({ ...joinEntry(newSession(entry.id)), agents, agentsSince });
  return { ...start, isForGaps: true };
}
