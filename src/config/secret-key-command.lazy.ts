import { exec } from 'node:child_process';
import { codedError } from '../shared/failure.js';
import { isKey } from './setting-formats.js';

const NAME = 'CC_LANGFUSE_SECRET_KEY_COMMAND';
/** A password manager may have to wait for a fingerprint. */
const LONGEST_MS = 20_000;
const LONGEST_OUTPUT = 10_000;

/**
 * Runs the user's command in a shell, as git does with its credential helpers, and returns what it prints. What it prints is never
 * repeated, and neither is what it says on stderr: both may contain the key.
 */
export function readSecretKey(command: string, deadline: number): Promise<string> {
  const timeout = Math.max(1, Math.min(LONGEST_MS, deadline - Date.now()));
  return new Promise((resolve, reject) => {
    const fail = (problem: string) => reject(codedError('key command', `${NAME} ${problem}`));
    const options = { timeout, killSignal: 'SIGKILL', maxBuffer: LONGEST_OUTPUT, windowsHide: true } as const;
    const child = exec(command, options, (error, stdout) => {
      const key = stdout.trim();
      if (error?.killed) fail(`took more than ${Number((timeout / 1_000).toPrecision(2))} s`);
      else if (error) fail(typeof error.code === 'number' ? `failed (exit code ${error.code})` : 'failed');
      else if (key === '') fail('printed nothing');
      else if (!isKey(key)) fail('printed something other than a key');
      else resolve(key);
    });
    // A command that asks for something would wait for ever.
    child.stdin?.on('error', () => {});
    child.stdin?.end();
  });
}
