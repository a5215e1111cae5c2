import { spawn } from 'node:child_process';
import { isRecord, parseJson } from '../../shared/json.js';
import { noticeFor } from './credential-notice.js';
import { readStdin } from './stdin.js';

const STDIN_WAIT_MS = 5_000;

/** What the hook does where someone waits: it says the one thing that it ever says, and leaves the work to another. */
export async function handOverHook(program: string, env: NodeJS.ProcessEnv): Promise<void> {
  const payload = await readStdin(Date.now() + STDIN_WAIT_MS);
  tell(noticeFor(env, sessionOf(payload)));
  return handOver(program, payload, env);
}

/** Claude Code shows it to the user. */
function tell(systemMessage: string | undefined): void {
  if (systemMessage === undefined) return;
  process.stdout.on('error', () => {});
  process.stdout.write(`${JSON.stringify({ systemMessage })}\n`);
}

function sessionOf(payload: string): string {
  const input = parseJson(payload);
  return isRecord(input) && typeof input.session_id === 'string' ? input.session_id : '';
}

/**
 * Gives the payload to a worker of its own session and group, which outlives Claude Code; resolves when the worker has it.
 * Nothing of Claude Code's own pipes goes to the worker: it would wait for them.
 */
function handOver(program: string, payload: string, env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = spawn(process.execPath, [program, 'worker'], {
      detached: true,
      env,
      stdio: ['pipe', 'ignore', 'ignore'],
      windowsHide: true,
    });
    worker.on('error', reject);
    worker.stdin.on('error', reject);
    worker.stdin.end(payload, () => {
      worker.unref();
      resolve();
    });
  });
}
