import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AS_RECORDED, sessionIdOf, writeSession } from '../test/support/generated.js';
import { PROGRAM } from './hook-bench.js';
import { type Case, measureUsage, timeCases } from './measure.js';

const HISTORY = new URL('baselines/history.cjs', import.meta.url).pathname;
const DAY_MS = 86_400_000;

/** Measures what reads a whole history of sessions of mixed size, the first time and afterwards. */
export async function benchHistory(files: number, runs: number) {
  const home = mkdtempSync(join(tmpdir(), 'cc-langfuse-bench-'));
  const projects = join(home, '.claude', 'projects');
  const state = join(home, '.claude', 'state');
  try {
    const paths = Array.from({ length: files }, (_, n) =>
      writeSession(projects, {
        sessionId: sessionIdOf(n + 1),
        cwd: `/home/dev/p${n % 12}`,
        startsAt: Date.now() - ((n % 30) + 2) * DAY_MS,
        turns: countTurns(n + 1),
        callsPerTurn: 5,
        ...AS_RECORDED,
      }),
    );
    mkdirSync(state);
    const of = (...args: string[]): Case => ({ name: args.join(' '), args: [PROGRAM, ...args], env: { HOME: home } });
    const forget = () => {
      for (const name of ['index', 'causes']) rmSync(join(state, `cc-langfuse_${name}`), { force: true });
    };
    const first = (each: Case): Case => ({ ...each, prepare: forget });
    const [cost, sessions] = [of('cost'), of('sessions', '--limit', 'all')];
    const search = of('sessions', '--search', 'nowhere to be found');
    const times = await timeCases(
      {
        read: { name: 'all bytes', args: [HISTORY, 'bytes', projects] },
        stats: { name: 'all files', args: [HISTORY, 'stats', projects] },
        costFirst: first(cost),
        sessionsFirst: first(sessions),
        cost,
        sessions,
        search,
      },
      runs,
    );
    const usages = [];
    for (const each of [first(cost), first(of('cost', '--by', 'tool')), first(sessions), search])
      usages.push(await measureUsage(each));
    const rssMB = Math.max(...usages.map((usage) => usage.rssMB));
    return { ...times, rssMB, bytes: paths.reduce((sum, path) => sum + statSync(path).size, 0) };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Most sessions are short, and a few are very long. */
function countTurns(n: number): number {
  if (n % 100 === 0) return 150;
  return n % 10 === 0 ? 40 : 1 + (n % 8);
}
