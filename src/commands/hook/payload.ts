import * as z from 'zod/mini';
import { parseJson } from '../../shared/json.js';
import { optional } from '../../shared/schema.js';

const name = z.string('expected a string').check(z.minLength(1, 'expected a string that is not empty'));

export const HookInput = z.object(
  {
    session_id: name,
    transcript_path: name,
    hook_event_name: optional(z.string()),
    /** What a SessionStart is the start of. */
    source: optional(z.string()),
    prompt_id: optional(z.string()),
    background_tasks: optional(z.array(z.object({ id: z.string(), status: z.optional(z.string()) }))),
    /** The text of the answer, trimmed; missing where the answer is empty, and before 2.1.50. */
    last_assistant_message: optional(z.string()),
  },
  'expected a JSON object',
);
export type HookInput = z.infer<typeof HookInput>;

/** What Claude Code tells a hook on stdin; throws with the reason where it is none of it. */
export function parseHookInput(text: string): HookInput {
  if (text.trim() === '') throw new Error('stdin is empty');
  const value = parseJson(text);
  if (value === undefined) throw new Error('stdin is not JSON');
  const result = HookInput.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Error(['stdin', ...(issue?.path ?? []), issue?.message].join(': '));
}
