import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { AS_RECORDED, sessionIdOf, writeSession } from '../test/support/generated.js';
import { environment, PROGRAM } from './hook-bench.js';
import { type Case, measureUsage, time, timeCases } from './measure.js';
import type { Sink } from './sink.js';

const HEADS = new URL('baselines/heads.cjs', import.meta.url).pathname;

/** Compares a backfill of many sessions with the least work that it needs, and with parsing alone. */
export async function benchBackfill(sink: Sink, files: number, megabytesEach: number, runs: number) {
  const home = mkdtempSync(join(tmpdir(), 'cc-langfuse-bench-'));
  try {
    const turns = Math.round((megabytesEach * 1_000_000) / 82_700);
    const paths = Array.from({ length: files }, (_, n) =>
      writeSession(join(home, '.claude', 'projects'), {
        sessionId: sessionIdOf(n + 1),
        cwd: '/home/dev/bench',
        startsAt: Date.now() - (n + 1) * 86_400_000,
        turns,
        callsPerTurn: 4,
        ...AS_RECORDED,
      }),
    );
    const minimal = join(home, 'minimal.mjs');
    const entry = new URL('baselines/backfill.ts', import.meta.url).pathname;
    await build({
      entryPoints: [entry],
      outfile: minimal,
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'warning',
    });
    const backfill: Case = {
      name: 'backfill',
      args: [PROGRAM, 'backfill', '--all', '--yes', '--quiet'],
      env: environment(home, sink.url),
      prepare: () => rmSync(join(home, '.claude', 'state'), { recursive: true, force: true }),
    };
    const times = await timeCases(
      {
        backfill,
        minimal: { name: 'minimal backfill', args: [minimal, 'all', ...paths] },
        parse: { name: 'parsing alone', args: [minimal, 'parse', ...paths] },
      },
      runs,
    );
    const sentBefore = sink.bytes();
    const { rssMB } = await measureUsage(backfill);
    const bytes = paths.reduce((sum, path) => sum + statSync(path).size, 0);
    return { ...times, rssMB, bytes, uploadShare: (sink.bytes() - sentBefore) / bytes };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Compares a backfill where nothing is new, and its dry run, with reading the beginning and the end of each file. */
export async function benchUnchanged(sink: Sink, files: number, runs: number) {
  const home = mkdtempSync(join(tmpdir(), 'cc-langfuse-bench-'));
  const projects = join(home, '.claude', 'projects');
  try {
    for (let n = 1; n <= files; n += 1) {
      const startsAt = Date.now() - n * 60_000 - 86_400_000;
      writeSession(projects, { sessionId: sessionIdOf(n), cwd: `/home/dev/p${n % 40}`, startsAt, turns: 3 });
    }
    const backfill: Case = {
      name: 'backfill',
      args: [PROGRAM, 'backfill', '--all', '--yes', '--quiet'],
      env: environment(home, sink.url),
    };
    // More at the same time, since the state is then written less often.
    await time({ ...backfill, args: [...backfill.args, '--concurrency', '64'] });
    const sentBefore = sink.bytes();
    const times = await timeCases(
      {
        backfill,
        dryRun: { ...backfill, args: [PROGRAM, 'backfill', '--all', '--dry-run', '--quiet'] },
        minimal: { name: 'beginnings and ends', args: [HEADS, projects] },
      },
      runs,
    );
    if (sink.bytes() > sentBefore) throw new Error('a backfill where nothing was new has sent something');
    return times;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Compares the list of sessions with reading the beginning and the end of each file. */
export async function benchList(files: number, runs: number) {
  const home = mkdtempSync(join(tmpdir(), 'cc-langfuse-bench-'));
  const projects = join(home, '.claude', 'projects');
  try {
    for (let n = 1; n <= files; n += 1) {
      const startsAt = Date.now() - n * 60_000;
      writeSession(projects, {
        sessionId: sessionIdOf(n),
        cwd: `/home/dev/p${n % 40}`,
        startsAt,
        turns: 24,
        resultChars: 900,
      });
    }
    // Every user of the hook has this folder. What the sessions used is remembered in it.
    mkdirSync(join(home, '.claude', 'state'));
    return await timeCases(
      {
        list: { name: 'sessions', args: [PROGRAM, 'sessions'], env: { HOME: home } },
        minimal: { name: 'beginnings and ends', args: [HEADS, projects] },
      },
      runs,
    );
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
