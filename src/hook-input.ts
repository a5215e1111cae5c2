import * as z from 'zod/mini';

const name = z.string('expected a string').check(z.minLength(1, 'expected a string that is not empty'));

const HookInput = z.object(
  {
    session_id: name,
    transcript_path: name,
    hook_event_name: z.catch(z.optional(z.string()), undefined),
    prompt_id: z.catch(z.optional(z.string()), undefined),
    /** The text of the answer, trimmed; missing where the answer is empty, and before 2.1.50. */
    last_assistant_message: z.catch(z.optional(z.string()), undefined),
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

/** Reads stdin to its end, or to the end of one JSON object, or until the deadline (ms since 1970). */
export function readStdin(deadline: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const { stdin } = process;
    let text = '';
    const done = (settle: () => void) => {
      clearTimeout(timer);
      stdin.removeAllListeners();
      stdin.destroy();
      settle();
    };
    const timer = setTimeout(() => done(() => reject(new Error('stdin did not end'))), deadline - Date.now());
    stdin.setEncoding('utf8');
    stdin.on('data', (chunk: string) => {
      text += chunk;
      // Claude Code writes the payload at once; there is no need to wait for it to close the pipe.
      if (/\}\s*$/.test(chunk) && parseJson(text) !== undefined) done(() => resolve(text));
    });
    stdin.on('end', () => done(() => resolve(text)));
    stdin.on('error', (error) => done(() => reject(error)));
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
