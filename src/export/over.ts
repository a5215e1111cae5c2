import type { Stop } from '../state/facts.js';
import { findAnswer } from '../transcript/turns/answer.js';
import type { Prompt, Turn } from '../transcript/turns/turn.js';

/** What is known when a turn is judged that no other prompt follows, once no Stop waits for its answer any more. */
export interface When {
  /** The last line that was sent before: an answer without a prompt's id comes after it. */
  readonly sentLine: number;
  /** Whether nothing of it will be written any more, as far as its run is concerned. */
  readonly hasRunEnded: boolean;
  /** Whether nothing has been written for long. */
  readonly isIdle: boolean;
  /** Whether the user has asked for it. */
  readonly isWanted: boolean;
  /** Whether an earlier turn has the answer of a Stop. */
  readonly isAnswered: (stop: Stop) => boolean;
  /** Whether a prompt is the first with its id. */
  readonly isFirst: (prompt: Prompt) => boolean;
}

/**
 * Whether a turn is over that no other prompt follows:
 * - the user has asked for it, finished or not;
 * - a Stop speaks for it. A Stop hook that objects to the answer makes the turn go on: another Stop ends it;
 * - its run has ended;
 * - nothing has been written for long.
 */
export function isOver(turn: Turn, stops: readonly Stop[], when: When): boolean {
  return when.isWanted || when.hasRunEnded || when.isIdle || stops.some((stop) => speaksFor(stop, turn, when));
}

/** A Stop speaks for the first turn with its prompt's id, or for a later one that has its answer. A teammate's message has an old id. */
function speaksFor(stop: Stop, turn: Turn, { sentLine, isAnswered, isFirst }: When): boolean {
  const { promptId, bytes, answer } = stop;
  const named = turn.prompts.filter((prompt) => promptId !== undefined && prompt.promptId === promptId);
  if (promptId !== undefined && named.length === 0) return false;
  if (answer === undefined) return turn.start.offset < bytes || named.some(isFirst);
  const found = findAnswer(turn, answer);
  if (found?.isObjectedTo && !stop.isAfterFeedback) return false;
  if (found && !found.isObjectedTo && (named.length > 0 || found.line > sentLine)) return true;
  // An answer that has not come in time will not come.
  return promptId === undefined ? turn.start.offset < bytes && !isAnswered(stop) : named.some(isFirst);
}

/** An agent's last lines reach its file only after its call's result has reached the transcript, or after its session has ended. */
export const LAST_LINES_MS = 2_000;

/** What is known of an agent. Its file may still grow after the turn that started it. */
export interface AgentStatus {
  /** When its file last changed, in ms since 1970. */
  readonly changedAt: number;
  /** Whether a line of the transcript has recorded its end. */
  readonly hasEnded: boolean;
  /** Whether the last Stop listed it, or the workflow that it is a step of, as running. */
  readonly isListed: boolean;
}

/** What is known of its session, in ms since 1970. */
export interface AgentWhen {
  /** When the session ended; undefined if it goes on. */
  readonly sessionEndedAt: number | undefined;
  /** A file that changed before that is idle. */
  readonly idleBefore: number;
  /** Whether the Stop may be old, so that the agents which it listed may have ended since. */
  readonly isRecovered: boolean;
}

/**
 * Whether nothing more will be written of an agent:
 * - its session has ended, and the file has not changed since. If it has, the agent goes on in another session;
 * - its end was recorded, and the last Stop did not list it as running: an agent can be continued;
 * - nothing has been written for long, and no Stop of now lists it as running.
 */
export function isDone({ changedAt, hasEnded, isListed }: AgentStatus, when: AgentWhen): boolean {
  const { sessionEndedAt, idleBefore, isRecovered } = when;
  if (sessionEndedAt !== undefined && changedAt <= sessionEndedAt + LAST_LINES_MS) return true;
  const isIdle = changedAt < idleBefore;
  return isListed ? isRecovered && isIdle : hasEnded || isIdle;
}
