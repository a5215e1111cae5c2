import { spawnSync } from 'node:child_process';
import * as z from 'zod/mini';
import { parseJson } from '../../shared/json.js';

/** What Claude Code passes to a UserPromptExpansion hook. */
const Payload = z.object({
  session_id: z.string(),
  cwd: z.string(),
  command_name: z.string(),
  command_args: z.optional(z.string()),
});

const OWN = /^cc-langfuse:(\w+)$/;
const NAMES = ['status', 'mute', 'unmute', 'open', 'doctor', 'preview'];
const TIMEOUT_MS = 50_000;

/**
 * Runs the command that the user typed as `/cc-langfuse:<name>`, and shows what it prints instead of asking the model. The plugin's
 * keys are in the environment of its hooks alone, and no shell reads what the user typed.
 */
export function runSlashCommand(program: string, text: string, env: NodeJS.ProcessEnv): void {
  const payload = Payload.safeParse(parseJson(text)).data;
  const args = payload && findArguments(payload.command_name, payload.command_args?.trim() ?? '');
  // The prompt goes on to the model.
  if (!args) return;
  const { stdout, stderr, error } = spawnSync(process.execPath, [program, ...args], {
    cwd: payload.cwd,
    // The variables are this hook's, without what the project must not set.
    env: { ...env, CLAUDECODE: undefined, CLAUDE_CODE_SESSION_ID: payload.session_id },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TIMEOUT_MS,
    windowsHide: true,
  });
  const reason = `${stdout ?? ''}${stderr ?? ''}`.trim() || error?.message || 'done';
  process.stdout.write(`${JSON.stringify({ decision: 'block', reason, suppressOriginalPrompt: true })}\n`);
}

function findArguments(command: string, typed: string): string[] | undefined {
  const [, name = ''] = OWN.exec(command) ?? [];
  // A comment is one argument, whatever it begins with.
  if (name === 'good' || name === 'bad') return ['rate', name, ...(typed === '' ? [] : [`--comment=${typed}`])];
  return NAMES.includes(name) ? [name, ...typed.split(/\s+/).filter((word) => word !== '')] : undefined;
}
