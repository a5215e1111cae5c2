import * as z from 'zod/mini';
import { parseJson } from '../../shared/json.js';
import { optional } from '../../shared/schema.js';

/** A prompt is about to be given. Only sessions that are followed while they run have a hook for it. */
export const PROMPT_EVENT = 'UserPromptSubmit';

const name = z.string('expected a string').check(z.minLength(1, 'expected a string that is not empty'));

/** What Claude Code passes to a hook on stdin. */
export const HookPayload = z.object(
  {
    session_id: name,
    transcript_path: name,
    hook_event_name: optional(z.string()),
    cwd: optional(z.string()),
    /** How the session started; only SessionStart has it. */
    source: optional(z.string()),
    prompt_id: optional(z.string()),
    background_tasks: optional(z.array(z.object({ id: z.string(), status: z.optional(z.string()) }))),
    /** Whether a Stop hook has blocked the turn's end before. */
    stop_hook_active: optional(z.boolean()),
    /** The text of the answer, trimmed. Missing if the answer is empty, and before 2.1.50. */
    last_assistant_message: optional(z.string()),
  },
  'expected a JSON object',
);
export type HookPayload = z.infer<typeof HookPayload>;

/** Throws with the reason if the text is not a payload. */
export function parsePayload(text: string): HookPayload {
  if (text.trim() === '') throw new Error('stdin is empty');
  const value = parseJson(text);
  if (value === undefined) throw new Error('stdin is not JSON');
  const result = HookPayload.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Error(['stdin', ...(issue?.path ?? []), issue?.message].join(': '));
}
