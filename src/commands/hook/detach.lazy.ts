import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { stateFolder } from '../../config/claude-folder.js';
import { DETACHED, HOOK_EVENTS, type HookEvent } from '../../config/platform.js';
import { attempt } from '../../shared/attempt.js';
import { isRecord, parseJson } from '../../shared/json.js';
import { takeBudgetMessage } from './budget-message.js';
import { takeNotice } from './credential-notice.js';
import { readStdin } from './stdin.js';

/** Prints the one-time notice, then passes the payload to a detached worker, which has an environment of its own. */
export async function detachHook(program: string, env: NodeJS.ProcessEnv, workerEnv: NodeJS.ProcessEnv): Promise<void> {
  const payload = await readStdin();
  const fields = parseJson(payload);
  const sessionId = isRecord(fields) && typeof fields.session_id === 'string' ? fields.session_id : '';
  const event = isRecord(fields) ? HOOK_EVENTS[String(fields.hook_event_name)] : undefined;
  const message = event?.mayNotify === false ? undefined : takeMessage(env, sessionId, event);
  if (message !== undefined) {
    // Claude Code shows it to the user.
    process.stdout.on('error', () => {});
    process.stdout.write(message);
  }
  if (event?.command === 'none') return;
  const path = isRecord(fields) && typeof fields.transcript_path === 'string' ? fields.transcript_path : '';
  const bytes = event?.measures ? [`${attempt(() => statSync(path).size) ?? 0}`] : [];
  return startInBackground(event?.command ?? 'worker', program, payload, workerEnv, bytes);
}

/** At the end of a session nobody would read of the budget. */
function takeMessage(env: NodeJS.ProcessEnv, sessionId: string, event: HookEvent | undefined): string | undefined {
  const systemMessage = takeNotice(env, sessionId);
  if (systemMessage !== undefined) return `${JSON.stringify({ systemMessage })}\n`;
  return env.CC_LANGFUSE_BUDGET && event !== HOOK_EVENTS.SessionEnd
    ? takeBudgetMessage(stateFolder(env), sessionId)
    : undefined;
}

/**
 * Passes the payload to a worker in a session and process group of its own, which outlives Claude Code; resolves once the worker
 * has it. The worker gets none of Claude Code's pipes, since Claude Code would wait until they are closed.
 */
export function startInBackground(
  command: string,
  program: string,
  payload: string,
  env: NodeJS.ProcessEnv,
  args: readonly string[] = [],
): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = spawn(process.execPath, [program, command, ...args], { ...DETACHED, env });
    worker.on('error', reject);
    worker.stdin.on('error', reject);
    worker.stdin.end(payload, () => {
      worker.unref();
      resolve();
    });
  });
}
