import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/** What Claude Code sees of a hook. */
interface Seen {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

interface How extends SpawnOptions {
  readonly onStart?: ((hook: ChildProcess) => void) | undefined;
}

/** Starts the command of a hook as Claude Code does. Resolves when it has ended and its pipes are closed. */
export function startHook(
  [program = '', ...args]: readonly string[],
  payload: object | string,
  { onStart, ...options }: How,
): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const hook = spawn(program, args, options);
    let output = '';
    for (const stream of [hook.stdout, hook.stderr])
      stream?.on('data', (chunk: Buffer) => {
        output += chunk;
      });
    hook.on('error', reject);
    // With tracing off it does not read it.
    hook.stdin?.on('error', () => {});
    hook.stdin?.end(typeof payload === 'string' ? payload : JSON.stringify(payload));
    hook.on('close', (exitCode, signal) => resolve({ exitCode, signal, output }));
    onStart?.(hook);
  });
}
