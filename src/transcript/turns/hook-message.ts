import type { AttachmentFields } from '../file/schema.js';
import type { ReadAttachment } from '../file/skipped-line.js';
import type { NoteContent } from './turn.js';

/**
 * What a hook of the user told the model, or why it ended the turn. What a Stop hook objects to has a line of its own, and what
 * a SessionStart hook says comes before any prompt.
 */
export function parseHookMessage(
  type: ReadAttachment,
  fields: NonNullable<AttachmentFields['attachment']>,
): NoteContent | undefined {
  const { hookEvent = '', hookName, toolUseID, content, blockingError, message } = fields;
  const hook = { name: hookName, toolUseId: hookEvent.includes('ToolUse') ? toolUseID : undefined };
  switch (type) {
    case 'hook_stopped_continuation':
      return { kind: 'hook-stop', content: message ?? '', hook };
    case 'hook_blocking_error':
      if (hookEvent.endsWith('Stop')) return undefined;
      return { kind: 'hook-feedback', content: blockingError?.blockingError ?? '', hook };
    case 'hook_success':
      // Of its plain output the model sees only that about a prompt.
      if (hookEvent !== 'UserPromptSubmit' || typeof content !== 'string' || content === '') return undefined;
      return { kind: 'hook-context', content, hook };
    case 'hook_additional_context':
      if (hookEvent === 'SessionStart') return undefined;
      return { kind: 'hook-context', content: Array.isArray(content) ? content.join('\n') : '', hook };
    default:
      return undefined;
  }
}
