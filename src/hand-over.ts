import { spawn } from 'node:child_process';

/**
 * Whether someone waits for the hook: in the terminal and the desktop apps. Headless it must do its work itself, since the
 * container may end with it.
 */
export function isWaitedFor({
  CLAUDE_CODE_ENTRYPOINT: entrypoint = '',
  CI,
  CC_LANGFUSE_WAIT,
}: NodeJS.ProcessEnv): boolean {
  return entrypoint !== '' && !entrypoint.startsWith('sdk') && !CI && CC_LANGFUSE_WAIT !== '1';
}

/**
 * Gives the payload to a worker of its own session and group, which outlives Claude Code; resolves when the worker has it.
 * Nothing of Claude Code's own pipes goes to the worker: it would wait for them.
 */
export function handOver(program: string, payload: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = spawn(process.execPath, [program, 'worker'], {
      detached: true,
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
