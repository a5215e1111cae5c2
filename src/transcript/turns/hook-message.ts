import { parseJson } from '../../shared/json.js';
import type { ChainLine } from '../file/line.js';
import { type AttachmentFields, HookOutput } from '../file/schema.js';
import type { ReadAttachment } from '../file/skipped-line.js';
import type { HookRun, NoteContent } from './turn.js';

/** What a tool ran with instead of what the model asked for. */
export interface ChangedInput {
  readonly toolUseId: string | undefined;
  readonly input: unknown;
  /** The hook that has changed it: its event and the tool. */
  readonly by: string | undefined;
}

/** The input that a hook of the user has given to a tool. */
export function parseChangedInput({ attachment = {} }: AttachmentFields): ChangedInput | undefined {
  const { type, hookEvent, hookName: by, toolUseID: toolUseId, stdout } = attachment;
  if (type !== 'hook_success' || hookEvent !== 'PreToolUse' || stdout === undefined) return undefined;
  const input = HookOutput.parse(parseJson(stdout)).hookSpecificOutput?.updatedInput;
  return input && { toolUseId, input, by };
}

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

/** How long a hook of the user ran. One that says nothing leaves no line, except at a Stop: its hooks run at the same time. */
export function parseHookRun(line: ChainLine): HookRun | undefined {
  const { location, at } = line;
  if (at === undefined) return undefined;
  const run = (name: string, duration = -1) => {
    const ms = Math.round(duration);
    return Number.isSafeInteger(ms) && ms >= 0 ? { name, line: location.number, at, ms } : undefined;
  };
  if (line.kind === 'system') {
    const { hookInfos = [] } = line.fields;
    return run(
      'Stop',
      hookInfos.reduce((longest, { durationMs = -1 }) => Math.max(longest, durationMs), -1),
    );
  }
  if (line.kind !== 'attachment') return undefined;
  const { hookEvent, hookName, durationMs } = line.fields.attachment ?? {};
  return hookEvent === 'Stop' || hookName === undefined ? undefined : run(hookName, durationMs);
}
