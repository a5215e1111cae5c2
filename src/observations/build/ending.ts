import type { Note, Response, Turn } from '../../transcript/turns/turn.js';
import { answerText } from '../content/messages.js';
import type { Level } from '../model.js';

export interface Ending {
  readonly outcome:
    | 'completed'
    | 'interrupted'
    | 'api_error'
    | 'max_turns'
    | 'max_tokens'
    | 'refused'
    | 'cut'
    | 'empty'
    | 'unfinished';
  readonly level: Level;
  readonly statusMessage: string | undefined;
}

/** How a turn ended, in words: what came last decides. */
export function determineEnding({ responses, notes }: Pick<Turn, 'responses' | 'notes'>): Ending {
  const lastResponse = responses.reduce<Response | undefined>(
    (last, response) => (last && last.lastLine > response.lastLine ? last : response),
    undefined,
  );
  const lastNote = notes.findLast((note) => isEnd(note) && note.line > (lastResponse?.lastLine ?? 0));
  return (lastNote && endOfNote(lastNote)) ?? endOfResponse(lastResponse, responses);
}

function isEnd({ kind }: Note): boolean {
  return kind === 'interrupt' || kind === 'max-turns' || kind === 'api-error' || kind === 'nudge';
}

function endOfNote(note: Note): Ending | undefined {
  switch (note.kind) {
    case 'api-error':
      return { outcome: 'api_error', level: 'ERROR', statusMessage: note.content };
    case 'interrupt':
      return { outcome: 'interrupted', level: 'WARNING', statusMessage: note.content };
    case 'max-turns':
      return { outcome: 'max_turns', level: 'WARNING', statusMessage: 'stopped at the limit of turns' };
    case 'nudge':
      return { outcome: 'empty', level: 'WARNING', statusMessage: 'the answer was empty, also when asked again' };
    default:
      return undefined;
  }
}

function endOfResponse(last: Response | undefined, all: readonly Response[]): Ending {
  if (!last) return { outcome: 'empty', level: 'WARNING', statusMessage: 'the answer was empty' };
  if (last.aborted) return { outcome: 'cut', level: 'WARNING', statusMessage: 'the answer was cut while it streamed' };
  switch (last.stopReason) {
    case 'max_tokens':
      return { outcome: 'max_tokens', level: 'WARNING', statusMessage: 'the answer was cut at max_tokens' };
    case 'refusal':
      return { outcome: 'refused', level: 'WARNING', statusMessage: 'the model refused' };
  }
  // Up to 2.1.90 there is no stop reason; a response that calls tools is never the last of a turn that was finished.
  if (last.stopReason === 'tool_use' || (last.stopReason === undefined && last.calls.length > 0)) {
    return { outcome: 'unfinished', level: 'WARNING', statusMessage: 'it ended after a tool call, without an answer' };
  }
  const isAnswered = all.some((response) => answerText(response) !== '');
  return isAnswered
    ? { outcome: 'completed', level: 'DEFAULT', statusMessage: undefined }
    : { outcome: 'empty', level: 'WARNING', statusMessage: 'the answer was empty' };
}
