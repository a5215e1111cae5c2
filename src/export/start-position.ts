import type { Entry } from '../state/entry.js';
import type { Places } from '../transcript/file/place.js';
import type { Position } from '../transcript/file/reader.js';
import { NO_SESSION_FACTS, type SessionFacts } from '../transcript/turns/turn.js';

/** Where to read from, and what has been acknowledged from there on. */
export interface Start extends Position {
  readonly turnCount: number;
  readonly lastLine: number;
  readonly sentLine: number;
  /** Ids before `sentLine` that were held back because they could still grow. */
  readonly held: readonly string[] | undefined;
  readonly time: number | undefined;
  readonly session: SessionFacts;
  readonly agents: Entry['agents'];
  /** When the session was taken over from the first cc-langfuse: the last time that it recorded. */
  readonly agentsSince: string | undefined;
  /** The first prompt of the last turn that was exported. */
  readonly prompt: string | undefined;
  /** Whether the transcript is no longer the one that was exported. */
  readonly hasChanged: boolean;
}

const NOTHING_SENT = { lastLine: 0, sentLine: 0, held: undefined, agents: undefined };
const FROM_TOP = {
  line: 1,
  offset: 0,
  turnCount: 0,
  time: undefined,
  session: NO_SESSION_FACTS,
  hasChanged: false,
};

/** Where to read from: the last turn is read again, since it may have grown. A transcript that has changed is read from the top. */
export function findStart(entry: Entry, places: Places): Start {
  const {
    lastLine,
    turnLine,
    turnCount,
    turnsBefore = turnCount - 1,
    prompt,
    time,
    session = NO_SESSION_FACTS,
  } = entry;
  const whole = startFromTop(entry);
  if (lastLine === 0) return { ...whole, time };
  const isSeed = turnLine === undefined;
  const offset = isSeed ? places.afterLine(lastLine) : findLastTurn(entry, turnLine, places);
  if (offset === undefined) return { ...whole, ...NOTHING_SENT, hasChanged: true };
  if (isSeed) return { ...whole, line: lastLine + 1, offset, turnCount };
  return { ...whole, line: turnLine, offset, turnCount: turnsBefore, time, prompt, session };
}

/** The start from which turns before the last exported one are found, too. */
export function startFromTop({
  lastLine,
  sentLine = lastLine,
  held,
  turnLine,
  agents,
  prompt,
  ...entry
}: Entry): Start {
  // The first cc-langfuse recorded how many lines it had read, and when.
  const { agentsSince = lastLine > 0 && turnLine === undefined ? entry.updated : undefined } = entry;
  return { ...FROM_TOP, lastLine, sentLine, held, agents, agentsSince, prompt };
}

/** If something before the last turn has been edited, that turn begins at another byte, but at the same line. */
function findLastTurn({ offset = 0, end = 0, hash, lastLine }: Entry, turnLine: number, places: Places) {
  if (places.hashEnds(offset, end) === hash) return offset;
  const [start, newEnd] = [places.afterLine(turnLine - 1), places.afterLine(lastLine)];
  if (start === undefined || newEnd === undefined) return undefined;
  return places.hashEnds(start, newEnd) === hash ? start : undefined;
}
