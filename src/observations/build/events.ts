import { type Json, withoutUndefined } from '../../shared/json.js';
import type { Note } from '../../transcript/turns/turn.js';
import type { MediaRules } from '../content/media.js';
import { buildUserMessage } from '../content/messages.js';
import type { Observation } from '../model.js';

type EventContent = Pick<Observation, 'name' | 'metadata' | 'level' | 'statusMessage'> & { input?: unknown };

/** What Langfuse shows of a note; what only decides how a turn ended is no event. */
export function buildEvent(note: Note, rules: MediaRules): EventContent | undefined {
  switch (note.kind) {
    case 'compaction':
      return {
        name: 'compaction',
        level: 'DEFAULT',
        metadata: withoutUndefined<Json>({
          trigger: note.trigger,
          tokens_before: note.tokensBefore,
          input_tokens: note.cost?.tokens.input,
          output_tokens: note.cost?.tokens.output,
          cache_read_tokens: note.cost?.tokens.cacheRead,
          cache_write_tokens: note.cost?.tokens.cacheWritten,
        }),
      };
    case 'retry':
      return {
        name: 'api retry',
        level: 'WARNING',
        statusMessage: note.error,
        metadata: withoutUndefined({
          attempt: note.attempt,
          max_attempts: note.maxAttempts,
          wait_ms: note.waitMs,
        }),
      };
    case 'absorbed-message':
      return {
        name: 'message while working',
        level: 'DEFAULT',
        input: [buildUserMessage(note, rules)],
        metadata: {},
      };
    case 'stop-hook-feedback':
      return {
        name: 'stop hook feedback',
        level: 'DEFAULT',
        input: [{ role: 'user', content: note.content }],
        metadata: {},
      };
    case 'api-error':
      return {
        name: 'api error',
        level: 'ERROR',
        statusMessage: note.content,
        metadata: withoutUndefined({ status: note.status }),
      };
    case 'interrupt':
    case 'max-turns':
    case 'nudge':
      return undefined;
  }
}
