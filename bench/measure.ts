import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** A command that is timed from its start to its end. */
export interface Case {
  readonly name: string;
  /** Node, unless it is another program. */
  readonly program?: string;
  readonly args: readonly string[];
  readonly env?: { readonly [name: string]: string | undefined };
  readonly stdin?: string;
  /** Restores what the run before has changed. */
  readonly prepare?: () => void;
}

interface Usage {
  readonly rssMB: number;
  readonly cpuMs: number;
}

const REPORT_USAGE = new URL('usage.cjs', import.meta.url).pathname;

/** Returns the median time of each case, in ms. */
export function timeCases<Name extends string>(
  cases: { readonly [name in Name]: Case },
  runs: number,
  restMs = 0,
): Promise<{ [name in Name]: number }> {
  const timed = Object.entries<Case>(cases).map(([name, one]) => [name, () => time(one)]);
  return alternate(Object.fromEntries(timed) as { [name in Name]: () => Promise<number> }, runs, restMs);
}

/**
 * Alternates between what is timed, so that everything is slowed down equally if the machine has other work. Returns the
 * median of each.
 */
export async function alternate<Name extends string>(
  timed: { readonly [name in Name]: () => Promise<number> },
  runs: number,
  restMs = 0,
): Promise<{ [name in Name]: number }> {
  const all = Object.entries<() => Promise<number>>(timed);
  const times = new Map<string, number[]>(all.map(([name]) => [name, []]));
  for (let run = 0; run <= runs; run += 1) {
    for (const [name, once] of all) {
      const ms = await once();
      if (restMs > 0) await sleep(restMs);
      // The first round only fills the disk cache.
      if (run > 0) times.get(name)?.push(ms);
    }
  }
  return Object.fromEntries([...times].map(([name, values]) => [name, median(values)])) as { [name in Name]: number };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Measures the memory and the CPU time of one run. */
export async function measureUsage(one: Case): Promise<Usage> {
  const report = join(tmpdir(), `cc-langfuse-bench-${process.pid}.json`);
  await time({ ...one, args: ['--require', REPORT_USAGE, ...one.args], env: { ...one.env, BENCH_USAGE: report } });
  return JSON.parse(readFileSync(report, 'utf8'));
}

export function time({ name, program = process.execPath, args, env = {}, stdin = '', prepare }: Case): Promise<number> {
  prepare?.();
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn(program, args, {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk;
    });
    child.stdin.on('error', () => {});
    child.stdin.end(stdin);
    // Claude Code waits until the pipes are closed.
    child.on('close', (code) => {
      if (code === 0) resolve(performance.now() - startedAt);
      else reject(new Error(`${name} exited with ${code}: ${stderr}`));
    });
  });
}
