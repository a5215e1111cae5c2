import { contentText, type MediaBlock, splitTextAndMedia } from '../file/content.js';
import type { Line } from '../file/line.js';
import type { Tokens } from './compaction-cost.js';

/** What happened in a turn beside prompts, responses and tools. */
export type Note = { readonly line: number; readonly at: number; readonly uuid: string | undefined } & (
  | {
      readonly kind: 'compaction';
      readonly trigger: string | undefined;
      readonly tokensBefore: number | undefined;
      /** What its own call cost, and the line that tells. */
      readonly cost?: { readonly tokens: Tokens; readonly line: number };
    }
  | {
      readonly kind: 'retry';
      readonly attempt: number | undefined;
      readonly maxAttempts: number | undefined;
      readonly waitMs: number | undefined;
      readonly error: string | undefined;
    }
  | { readonly kind: 'absorbed-message'; readonly content: string; readonly media: readonly MediaBlock[] }
  | { readonly kind: 'stop-hook-feedback'; readonly content: string }
  | { readonly kind: 'interrupt'; readonly content: string }
  | { readonly kind: 'max-turns' }
  /** The harness asked again, since the answer was empty. */
  | { readonly kind: 'nudge'; readonly content: string }
  | { readonly kind: 'api-error'; readonly content: string; readonly status: number | undefined }
);

export type NotableLine = Extract<Line, { kind: 'user' | 'assistant' | 'system' | 'attachment' }>;

export type Noted<N> = N extends Note ? Omit<N, 'line' | 'at' | 'uuid'> : never;

/** What an assistant, system or attachment line has to note, if anything. */
export function parseNote(line: Exclude<NotableLine, { kind: 'user' }>): Noted<Note> | undefined {
  switch (line.kind) {
    case 'assistant': {
      const { isApiErrorMessage, apiErrorStatus: status } = line.fields;
      return isApiErrorMessage ? { kind: 'api-error', content: contentText(line.content), status } : undefined;
    }
    case 'attachment': {
      if (line.type === 'max_turns_reached') return { kind: 'max-turns' };
      if (line.type !== 'queued_command') return undefined;
      const { words: content, media } = splitTextAndMedia(line.fields.attachment?.prompt);
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

export function toNote(noted: Noted<Note>, { place, fields }: NotableLine, at: number): Note {
  return { ...noted, line: place.number, at, uuid: fields.uuid };
}
