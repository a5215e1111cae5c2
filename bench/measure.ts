import { spawn } from 'node:child_process';

/** A command to be timed, from its start to its end. */
export interface Case {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: { readonly [name: string]: string | undefined };
  readonly stdin?: string;
  /** Puts back what the run before has changed. */
  readonly prepare?: () => void;
}

/** Runs the cases by turns, so that whatever else the machine does falls on all of them; gives each one's times in ms. */
export async function measure(cases: readonly Case[], runs: number): Promise<Map<string, number[]>> {
  const times = new Map<string, number[]>(cases.map(({ name }) => [name, []]));
  for (let run = 0; run <= runs; run += 1) {
    for (const one of cases) {
      one.prepare?.();
      const ms = await time(one);
      // The first round warms the disk cache.
      if (run > 0) times.get(one.name)?.push(ms);
    }
  }
  return times;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function time({ name, args, env = {}, stdin = '' }: Case): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    child.stdin.on('error', () => {});
    child.stdin.end(stdin);
    child.on('exit', (code) => {
      if (code === 0) resolve(performance.now() - startedAt);
      else reject(new Error(`${name} exited with ${code}`));
    });
  });
}
