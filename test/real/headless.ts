import { spawn } from 'node:child_process';
import type { ClaudeHome } from './claude-home.js';

export interface Printed {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** When the last part of stdout was printed. */
  readonly at: number;
}

/** Runs `claude -p` to its end. */
export function print(
  claude: string,
  { work: cwd, env }: ClaudeHome,
  prompt: string,
  args: readonly string[] = [],
): Promise<Printed> {
  return new Promise((resolve, reject) => {
    const child = spawn(claude, ['-p', prompt, ...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    let at = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk;
      at = Date.now();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk;
    });
    child.on('error', reject);
    child.on('close', (exitCode) => resolve({ exitCode, stdout, stderr, at }));
  });
}
