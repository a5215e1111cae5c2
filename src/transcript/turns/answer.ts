import { hashText } from '../../shared/hash.js';
import { NOTE_KINDS } from './note-kinds.js';
import type { Response, Turn } from './turn.js';

/** Payloads have the text trimmed, transcripts as it was. */
export function hashAnswer(text: string): string {
  return hashText(text.trim());
}

interface FoundAnswer {
  readonly line: number;
  /** Whether a Stop hook has said something since. It runs beside this one, and may block before this one looks. */
  readonly isObjectedTo: boolean;
}

/** Finds the answer of which a Stop names the hash: the last with its text, if nothing else was said to the model after it. */
export function findAnswer({ prompts, responses, notes }: Turn, hash: string): FoundAnswer | undefined {
  // An error of the API is the answer, too, and so is the result of a command.
  const note = notes.findLast(
    (each) => 'content' in each && NOTE_KINDS[each.kind].isAnswer && hashAnswer(each.content) === hash,
  );
  const response = responses.findLast((each) => hashLastText(each) === hash);
  const line = Math.max(note?.line ?? 0, response?.lastLine ?? 0);
  if (line === 0) return undefined;
  const isObjectedTo = notes.some((note) => note.kind === 'stop-hook-feedback' && note.line > line);
  const results = responses.flatMap(({ calls }) => calls.flatMap(({ result }) => result ?? []));
  const messages = notes.filter(({ kind }) => kind === 'absorbed-message' || kind === 'nudge');
  const isLast = [...prompts, ...results, ...messages].every((each) => each.line < line);
  return isObjectedTo || isLast ? { line, isObjectedTo } : undefined;
}

function hashLastText({ blocks }: Response): string | undefined {
  const text = blocks.findLast((block) => block.kind === 'text')?.text;
  return text === undefined ? undefined : hashAnswer(text);
}
