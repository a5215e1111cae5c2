import type { Note, Response, Turn } from '../../transcript/turns/turn.js';
import { STOPPED_BY_HOOK } from '../content/capture.js';
import { answerText } from '../content/messages.js';
import type { Observation } from '../model.js';
import { type Figures, NO_FIGURES } from './figures.js';

type Outcome =
  | 'completed'
  | 'interrupted'
  | 'api_error'
  | 'max_turns'
  | 'max_tokens'
  | 'refused'
  | 'cut'
  | 'stopped_by_hook'
  | 'empty'
  | 'unfinished';

interface Ending extends Pick<Observation, 'level' | 'statusMessage'> {
  readonly outcome: Outcome;
  /** In words that repeat no content. */
  readonly words: string;
}

/**
 * Determines how a turn ended: the last response decides, unless a note after it does. `earlier` is of what is not in the turn
 * any more.
 */
export function determineEnding(
  { responses, notes }: Pick<Turn, 'responses' | 'notes'>,
  earlier: Pick<Figures, 'answer'> = NO_FIGURES,
): Ending {
  const isAnswered = earlier.answer !== undefined || responses.some((response) => answerText(response) !== '');
  const last = responses.toSorted((a, b) => a.lastLine - b.lastLine).at(-1);
  const laterNotes = notes.filter(({ line }) => line > (last?.lastLine ?? 0));
  return laterNotes.map(endingByNote).findLast((ending) => ending !== undefined) ?? endingByResponse(last, isAnswered);
}

function endingByNote(note: Note): Ending | undefined {
  switch (note.kind) {
    case 'api-error':
      return { outcome: 'api_error', level: 'ERROR', statusMessage: note.content, words: 'API error' };
    case 'interrupt':
      return warning('interrupted', note.content, 'interrupted');
    case 'max-turns':
      return warning('max_turns', 'stopped at the limit of turns');
    case 'hook-stop':
      return warning('stopped_by_hook', `${STOPPED_BY_HOOK}: ${note.content}`, STOPPED_BY_HOOK);
    case 'nudge':
      return warning('empty', 'the answer was empty, also when asked again');
    default:
      return undefined;
  }
}

function endingByResponse(last: Response | undefined, isAnswered: boolean): Ending {
  if (last?.aborted) return warning('cut', 'the answer was cut while it streamed');
  if (last?.stopReason === 'max_tokens') return warning('max_tokens', 'the answer was cut at max_tokens');
  if (last?.stopReason === 'refusal') return warning('refused', 'the model refused');
  // Up to 2.1.90 there is no stop reason. A response that calls tools is never the last of a finished turn.
  if (last?.stopReason === 'tool_use' || (last && last.stopReason === undefined && last.calls.length > 0))
    return warning('unfinished', 'it ended after a tool call, without an answer');
  if (!isAnswered) return warning('empty', 'the answer was empty');
  return { outcome: 'completed', level: 'DEFAULT', statusMessage: undefined, words: 'completed' };
}

function warning(outcome: Outcome, statusMessage: string, words = statusMessage): Ending {
  return { outcome, level: 'WARNING', statusMessage, words };
}
