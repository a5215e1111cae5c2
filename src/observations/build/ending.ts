import { findEndingCall, type Note, type Response, type Turn } from '../../transcript/turns/turn.js';
import { answerText } from '../content/messages.js';
import type { Observation, ObservationDraft } from '../model.js';
import { type Figures, NO_FIGURES } from './figures.js';

/** How a turn can end, and how that is said without repeating content. */
export const OUTCOMES = {
  completed: { level: 'DEFAULT', words: 'completed' },
  interrupted: { level: 'WARNING', words: 'interrupted' },
  api_error: { level: 'ERROR', words: 'API error' },
  max_turns: { level: 'WARNING', words: 'stopped at the limit of turns' },
  max_tokens: { level: 'WARNING', words: 'the answer was cut at max_tokens' },
  context_window: { level: 'WARNING', words: 'the answer was cut at the end of the context window' },
  refused: { level: 'WARNING', words: 'the model refused' },
  paused: { level: 'WARNING', words: 'the API paused the answer, and Claude Code did not go on' },
  cut: { level: 'WARNING', words: 'the answer was cut while it streamed' },
  stopped_by_hook: { level: 'WARNING', words: 'stopped by a hook' },
  empty: { level: 'WARNING', words: 'the answer was empty' },
  unfinished: { level: 'WARNING', words: 'it ended after a tool call, without an answer' },
} as const satisfies { readonly [outcome: string]: Pick<Observation, 'level'> & { readonly words: string } };
type Outcome = keyof typeof OUTCOMES;

/** What can come after a text that reads as an answer. */
export const BROKEN_OFF: readonly Outcome[] = ['api_error', 'interrupted', 'stopped_by_hook'];

interface Ending extends Pick<ObservationDraft, 'level' | 'statusMessage' | 'statusWithoutTools'> {
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
    case 'interrupt':
      return end(note.kind === 'interrupt' ? 'interrupted' : 'api_error', { statusMessage: note.content });
    case 'max-turns':
      return end('max_turns');
    case 'command-result':
      return end('completed');
    case 'hook-stop': {
      const { words } = OUTCOMES.stopped_by_hook;
      return end('stopped_by_hook', { statusMessage: `${words}: ${note.content}`, statusWithoutTools: words });
    }
    case 'nudge':
      return end('empty', { words: 'the answer was empty, also when asked again' });
    // The turn goes on after them.
    case 'compaction':
    case 'retry':
    case 'absorbed-message':
    case 'stop-hook-feedback':
    case 'hook-feedback':
    case 'hook-context':
    case 'model-fallback':
      return undefined;
    default:
      return note satisfies never;
  }
}

function endingByResponse(last: Response | undefined, isAnswered: boolean): Ending {
  if (last?.aborted) return end('cut');
  if (last?.stopReason === 'max_tokens') return end('max_tokens');
  if (last?.stopReason === 'model_context_window_exceeded') return end('context_window');
  if (last?.stopReason === 'refusal') return end('refused');
  if (last?.stopReason === 'pause_turn') return end('paused');
  if (last && findEndingCall(last)) return end('completed');
  // Up to 2.1.90 there is no stop reason. A response that calls tools is never the last of a finished turn.
  if (last?.stopReason === 'tool_use' || (last && last.stopReason === undefined && last.calls.length > 0))
    return end('unfinished');
  return end(isAnswered ? 'completed' : 'empty');
}

/** A completed turn has no status message; that of any other is its words, unless there is a better one. */
function end(outcome: Outcome, own: Partial<Ending> = {}): Ending {
  const ending = { outcome, ...OUTCOMES[outcome], ...own };
  return { statusMessage: outcome === 'completed' ? undefined : ending.words, ...ending };
}
