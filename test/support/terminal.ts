import { spawn } from 'node:child_process';
import { type Environment, PROGRAM } from './program.js';

interface Terminal {
  readonly env: Environment;
  readonly cwd: string;
  /** The keys that are typed once these words are on the screen. */
  readonly typed?: { readonly [shown: string]: string };
}

/** Runs the built program in a terminal of 80 columns; gives all that came on its screen. */
export function runInTerminal(args: readonly string[], { env, cwd, typed = {} }: Terminal) {
  return new Promise<{ exitCode: number | null; screen: string }>((resolve) => {
    const command = `stty cols 80; "${process.execPath}" "${PROGRAM}" ${args.join(' ')}`;
    const terminal = spawn('script', ['-qefc', command, '/dev/null'], {
      env: { PATH: process.env.PATH, TERM: 'xterm', ...env },
      cwd,
    });
    const left = new Map(Object.entries(typed));
    let screen = '';
    terminal.stdout.on('data', (chunk: Buffer) => {
      screen += chunk;
      for (const [shown, keys] of left) {
        if (!screen.includes(shown)) continue;
        left.delete(shown);
        terminal.stdin.write(keys);
      }
    });
    terminal.on('close', (exitCode) => resolve({ exitCode, screen }));
  });
}
