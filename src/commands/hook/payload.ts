import { parseJson } from '../../shared/json.js';
import * as z from '../../shared/schema.js';

const name = z.filledString();

const fields = {
  session_id: name,
  transcript_path: name,
  hook_event_name: z.optional(z.string()),
  cwd: z.optional(z.string()),
  /** How the session started; only SessionStart has it. */
  source: z.optional(z.string()),
  prompt_id: z.optional(z.string()),
  background_tasks: z.optional(z.array(z.object({ id: z.string(), status: z.optional(z.string()) }))),
  /** Whether a Stop hook has blocked the turn's end before. */
  stop_hook_active: z.optional(z.boolean()),
  /** The text of the answer, trimmed. Missing if the answer is empty, and before 2.1.50. */
  last_assistant_message: z.optional(z.string()),
};

/** What Claude Code passes to a hook on stdin. */
export const HookPayload = z.object(fields, 'expected a JSON object');
export const PAYLOAD_FIELDS = Object.keys(fields);
export type HookPayload = z.infer<typeof HookPayload>;

/** Throws with the reason if the text is not a payload. */
export function parsePayload(text: string): HookPayload {
  if (text.trim() === '') throw new Error('stdin is empty');
  const value = parseJson(text);
  if (value === undefined) throw new Error('stdin is not JSON');
  const result = HookPayload.check(value);
  if (!(result instanceof z.Mismatch)) return result;
  throw new Error(['stdin', ...result.path, result.message].join(': '));
}
