import { spawn } from 'node:child_process';
import { type Environment, PROGRAM } from './program.js';

/** What to type, each once, as soon as a text is on the screen, or when something else has happened after that. */
export type Typed = { readonly [shown: string]: string | (() => string | Promise<string>) };

interface Home {
  readonly env: Environment;
  readonly home: string;
}

/** Runs the program in a terminal. */
export function runInTerminal(args: readonly string[], { env, home }: Home, typed: Typed = {}, columns = 80) {
  return new Promise<{ exitCode: number | null; screen: string }>((resolve) => {
    const command = `stty cols ${columns}; "${process.execPath}" "${PROGRAM}" ${args.join(' ')}`;
    const terminal = spawn('script', ['-qefc', command, '/dev/null'], {
      env: { PATH: process.env.PATH, TERM: 'xterm', ...env },
      cwd: home,
    });
    const notTyped = new Map(Object.entries(typed));
    let screen = '';
    terminal.stdout.on('data', (chunk: Buffer) => {
      screen += chunk;
      for (const [shown, keys] of notTyped) {
        if (!screen.includes(shown)) continue;
        notTyped.delete(shown);
        void Promise.resolve(typeof keys === 'string' ? keys : keys()).then((each) => terminal.stdin.write(each));
      }
    });
    terminal.on('close', (exitCode) => resolve({ exitCode, screen }));
  });
}
