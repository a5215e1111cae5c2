import type { Stop } from '../state/facts.js';
import { findAnswer } from '../transcript/turns/answer.js';
import type { Prompt, Turn } from '../transcript/turns/turn.js';

/** `wait`: the last lines of the turn may not have been written yet. */
export type Verdict = 'over' | 'open' | 'wait';

/** What is known when a turn is judged that no other prompt follows. */
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
  /** Whether a Stop's answer may still come. */
  readonly mayCome: (stop: Stop) => boolean;
}

/**
 * Whether a turn is over that no other prompt follows:
 * - the user wants it as it is;
 * - a Stop speaks for it, and its answer is there, or will not come any more. A Stop hook that objects to the answer makes the turn go
 *   on: another Stop ends it;
 * - its run has ended, and no Stop of it waits for its answer;
 * - nothing has been written for long.
 */
export function isOver(turn: Turn, stops: readonly Stop[], when: When): Verdict {
  if (when.isWanted) return 'over';
  const verdicts = stops.map((stop) => judge(turn, stop, when));
  if (verdicts.includes('over')) return 'over';
  if (verdicts.includes('wait')) return 'wait';
  return when.hasRunEnded || when.isIdle ? 'over' : 'open';
}

/** A Stop speaks for the first turn with its prompt's id, or for a later one that has its answer: a teammate's message has an old id. */
function judge(turn: Turn, stop: Stop, { sentLine, isAnswered, isFirst, mayCome }: When): Verdict {
  const { promptId, bytes, answer } = stop;
  const named = turn.prompts.filter((prompt) => promptId !== undefined && prompt.promptId === promptId);
  if (promptId !== undefined && named.length === 0) return 'open';
  const found = answer === undefined ? undefined : findAnswer(turn, answer);
  if (found?.isObjectedTo && !stop.isAfterFeedback) return 'open';
  if (found && !found.isObjectedTo && (named.length > 0 || found.line > sentLine)) return 'over';
  if (answer === undefined && turn.start.offset < bytes) return 'over';
  if (mayCome(stop)) return 'wait';
  const isMeant = promptId === undefined ? turn.start.offset < bytes && !isAnswered(stop) : named.some(isFirst);
  return isMeant ? 'over' : 'open';
}
