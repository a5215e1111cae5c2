import { spawn } from 'node:child_process';
import { type Environment, PROGRAM } from './program.js';

/** Keys to type once a text is on the screen; each is typed once. */
export type Typed = { readonly [shown: string]: string };

interface Home {
  readonly env: Environment;
  readonly home: string;
}

/** Runs the program in a terminal of 80 columns. */
export function runInTerminal(args: readonly string[], { env, home }: Home, typed: Typed = {}) {
  return new Promise<{ exitCode: number | null; screen: string }>((resolve) => {
    const command = `stty cols 80; "${process.execPath}" "${PROGRAM}" ${args.join(' ')}`;
    const terminal = spawn('script', ['-qefc', command, '/dev/null'], {
      env: { PATH: process.env.PATH, TERM: 'xterm', ...env },
      cwd: home,
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
