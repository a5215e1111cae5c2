import { extractText, splitTextAndMedia } from '../file/content.js';
import type { Line } from '../file/line.js';
import type { Note } from './turn.js';

export type NotableLine = Extract<Line, { kind: 'user' | 'assistant' | 'system' | 'attachment' }>;

export type Noted<N> = N extends Note ? Omit<N, 'line' | 'at' | 'uuid'> : never;

/** What an assistant, system or attachment line has to note, if anything. */
export function parseNote(line: Exclude<NotableLine, { kind: 'user' }>): Noted<Note> | undefined {
  switch (line.kind) {
    case 'assistant': {
      const { isApiErrorMessage, apiErrorStatus: status } = line.fields;
      return isApiErrorMessage ? { kind: 'api-error', content: extractText(line.content), status } : undefined;
    }
    case 'attachment': {
      if (line.type === 'max_turns_reached') return { kind: 'max-turns' };
      if (line.type !== 'queued_command') return undefined;
      const { text: content, media } = splitTextAndMedia(line.fields.attachment?.prompt);
      return { kind: 'absorbed-message', content, media };
    }
    case 'system': {
      const { subtype, compactMetadata, retryAttempt, maxRetries, retryInMs, error } = line.fields;
      if (subtype === 'compact_boundary') {
        const { trigger, preTokens: tokensBefore } = compactMetadata ?? {};
        return { kind: 'compaction', trigger, tokensBefore };
      }
      if (subtype !== 'api_error') return undefined;
      const attempts = { attempt: retryAttempt, maxAttempts: maxRetries, waitMs: retryInMs };
      return { kind: 'retry', ...attempts, error: error?.formatted };
    }
  }
}

export function toNote(noted: Noted<Note>, { location: place, fields }: NotableLine, at: number): Note {
  return { ...noted, line: place.number, at, uuid: fields.uuid };
}
