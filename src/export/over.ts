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
  /** Whether a Stop is about a turn before, which has its answer. */
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

/** A Stop speaks for the first turn with its prompt's id, or for a later one that has its answer: a teammate's message has an old id. */
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
