import { writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { keepCompiled } from '../src/shared/compiled-code.js';
import { install, wantedVersion } from '../test/real/claude-code.js';
import { hasTmux } from '../test/real/terminal.js';
import { benchBackfill, benchList, benchUnchanged } from './backfill-bench.js';
import { benchBytes } from './bytes-bench.js';
import { timeHangingServer, timePrint, timeStream, timeTerminalTurn, type Waits } from './claude-code-bench.js';
import { benchHistory } from './history-bench.js';
import {
  BARE_NODE,
  benchArrival,
  benchLauncher,
  benchWait,
  minimalPost,
  PROGRAM,
  prepare,
  withOtherSessions,
} from './hook-bench.js';
import { benchHalves, benchLongLine, writeAgents, writeCalls } from './large-bench.js';
import { benchFollower } from './live-bench.js';
import { measureUsage, timeCases } from './measure.js';
import { benchHostileTexts, benchOwnRule } from './redaction-bench.js';
import { startSink } from './sink.js';

/** A figure, what it is compared with, and its target. */
interface Row {
  readonly what: string;
  readonly figure: number;
  readonly unit: '×' | 'MB' | 'ms' | '%' | '';
  readonly target: number | undefined;
  readonly against: string;
  /** The best figure so far if the target has not been reached. CI compares with it, so that the figure gets no worse. */
  readonly reached?: number;
  /** How many times worse than that it may be. */
  readonly tolerance: number;
}

const isShort = process.argv.includes('--short');
const RUNS = isShort ? 9 : 21;
const CLAUDE_CODE_RUNS = 10;
/** The hook's own limit while the server hangs: the usual one would only take longer. */
const HANGING_TIMEOUT_MS = 4_000;
/** A shared machine is never quiet, so CI fails only if a figure is much worse. */
const TOLERANCE = 1.5;

const sink = await startSink();
const rows: Row[] = [];
const row = (
  what: string,
  figure: number,
  unit: Row['unit'],
  target?: number,
  against = '',
  reached = target,
  tolerance = TOLERANCE,
) => {
  const one = { what, figure, unit, target, against, tolerance, ...(reached !== undefined && { reached }) };
  rows.push(one);
  say(formatRow(one));
};

// As install does.
keepCompiled(dirname(PROGRAM));

const { bare: bareMs, off: offMs, start, stop, headless } = await benchLauncher(RUNS);
const addLauncherRow = (what: string, figure: number, target: number) =>
  row(what, figure / bareMs, '×', target, ms('node -e 0', bareMs));
addLauncherRow('tracing off', offMs, 0.25);
addLauncherRow('SessionStart', start, 0.3);
addLauncherRow('Stop in the terminal', stop, 0.3);
addLauncherRow('Stop headless', headless, 0.3);

const small = await prepare(sink, 0);
const off = { ...small.hook, env: {} };
const minimal = await minimalPost(small, sink);
const first = await timeCases({ hook: small.hook, minimal, off, bare: BARE_NODE }, RUNS);
row('tracing off, without launcher', first.off / first.bare, '×', 1.1, ms('node -e 0', first.bare));
row('one turn, in the foreground', first.hook / first.minimal, '×', 1.6, ms('minimal post', first.minimal), 2.2);
row('one turn, in the foreground', first.hook / first.bare, '×', undefined, ms('node -e 0', first.bare));
row('memory of the hook', (await measureUsage(small.hook)).rssMB, 'MB', 70);
if (!isShort) {
  const { arrive, bare } = await benchArrival(small, sink, 15);
  row('answer in the file → at the server', arrive, 'ms', 60, `with the start of Node; ${ms('node -e 0', bare)}`);
  const { delayMs, cpuShare } = await benchWait(small, sink, 15);
  row('answer written → at the server', delayMs, 'ms', 15);
  row('CPU while waiting for the answer', cpuShare * 100, '%', 2);
}

const states = {
  ten: withOtherSessions(small, 10),
  thousand: withOtherSessions(small, 1_000),
  tenThousand: withOtherSessions(small, 10_000),
};
const byState = await timeCases(states, RUNS);
row('1,000 sessions in the state', byState.thousand / byState.ten, '×', 1.1, ms('10 sessions', byState.ten));
row('10,000 sessions in the state', byState.tenThousand / byState.ten, '×', 1.8, ms('10 sessions', byState.ten));
small.remove();

for (const megabytes of isShort ? [125] : [1, 10, 125, 1_000]) {
  const long = await prepare(sink, megabytes);
  const short = await prepare(sink, 0);
  const times = await timeCases({ long: long.hook, short: short.hook }, RUNS);
  row(`one turn after ${megabytes} MB`, times.long / times.short, '×', 1.1, ms('after 30 KB', times.short));
  for (const prepared of [long, short]) prepared.remove();
}
for (const turns of isShort ? [] : [10, 100, 1_000]) {
  const [many, one] = [await prepare(sink, 0, turns), await prepare(sink, 0)];
  const times = await timeCases({ many: many.hook, one: one.hook }, 9);
  row(`${turns} new turns`, times.many / times.one, '×', undefined, ms('one', times.one));
  for (const prepared of [many, one]) prepared.remove();
}

const [files, megabytesEach] = isShort ? [25, 4] : [100, 10];
const all = await benchBackfill(sink, files, megabytesEach, isShort ? 3 : 5);
const size = `${(all.bytes / 1_000_000).toFixed(0)} MB in ${files} files`;
row(`backfill of ${size}`, all.backfill / all.minimal, '×', 1.4, ms('the same work', all.minimal), 3.4, 2);
row(`backfill of ${size}`, all.backfill / all.parse, '×', undefined, ms('parsing alone', all.parse));
row('memory of the backfill', all.rssMB, 'MB', 200);
row('uploaded per transcript byte', all.uploadShare, '', 0.12);
if (!isShort) {
  const tenth = await benchBackfill(sink, files / 10, megabytesEach, 3);
  row('backfill of ten times the files', all.backfill / tenth.backfill, '×', undefined, ms('a tenth', tenth.backfill));
  await benchLarge();
  const unchanged = await benchUnchanged(sink, 2_000, 9);
  const both = ms('reading both ends of each file', unchanged.minimal);
  row('backfill of 2,000 files, nothing new', unchanged.backfill, 'ms', 300);
  row('backfill of 2,000 files, nothing new', unchanged.backfill / unchanged.minimal, '×', undefined, both);
  row('dry run of 2,000 files, nothing new', unchanged.dryRun / unchanged.minimal, '×', undefined, both);
}

const count = isShort ? 2_000 : 15_000;
const list = await benchList(count, isShort ? 3 : 5);
row(
  `list of ${count.toLocaleString('en')} sessions`,
  list.list / list.minimal,
  '×',
  3,
  ms('reading both ends of each file', list.minimal),
);
sink.stop();

const past = await benchHistory(isShort ? 100 : 1_000, isShort ? 3 : 7);
const pastName = `of ${(past.bytes / 1_000_000).toFixed(0)} MB`;
const allBytes = ms('reading the same bytes', past.read);
row(`cost ${pastName}, first`, past.costFirst / past.read, '×', 1.2, allBytes, 15);
row(`sessions ${pastName}, first`, past.sessionsFirst / past.read, '×', 1.2, allBytes, 15);
row(`cost ${pastName}, again`, past.cost / past.stats, '×', undefined, ms('looking at each file', past.stats));
row(`sessions ${pastName}, again`, past.sessions / past.cost, '×', 1.2, ms('cost', past.cost), 1.5);
const searchSpeed = `${(past.bytes / 1_000 / past.search).toFixed(0)} MB/s`;
row(`search ${pastName}, no match`, past.search / past.read, '×', undefined, `${searchSpeed}; ${allBytes}`);
row('most memory of these', past.rssMB, 'MB', 150);

const sent = await benchBytes();
// Bytes are counted, so a busy machine changes nothing.
const addBytesRow = (what: string, figure: number, against: string) => row(what, figure, '×', 1.15, against, 1.15, 1);
addBytesRow('sent per recorded turn', sent.plain, `${sent.before.plain} bytes in November 2026`);
addBytesRow('the same, compressed', sent.gzipped, `${sent.before.gzipped} bytes`);

if (isShort) say('skipped in the short bench: what takes long and has no limit in CI');
else {
  await benchRedaction();
  await benchLive();
  await benchClaudeCode();
}

say(`medians of ${RUNS} alternating runs; ${PROGRAM.split('/').at(-1)} on Node ${process.versions.node}`);
if (!isShort) {
  const results = { node: process.versions.node, runs: RUNS, rows };
  writeFileSync(new URL('results.json', import.meta.url), `${JSON.stringify(results, null, 2)}\n`);
}
const worse = rows.filter(
  ({ figure, unit, reached, tolerance }) => unit === '×' && reached !== undefined && figure > reached * tolerance,
);
for (const { what, tolerance } of worse)
  say(`${tolerance > 1 ? `more than ${tolerance} times ` : ''}worse than it should be: ${what}`);
process.exitCode = isShort && worse.length > 0 ? 1 : 0;

/** Measures what is far larger than usual: twice as much of it must not take much more than twice the time. */
async function benchLarge(): Promise<void> {
  const calls = await benchHalves(sink, 3, writeCalls, 50_000);
  row('a turn of 50,000 calls', calls.whole / calls.half, '×', 2.4, ms('25,000', calls.half));
  row('its memory', calls.rssMB, 'MB');
  const agents = await benchHalves(sink, 3, writeAgents, 1_000);
  row('1,000 agents in a turn', agents.whole / agents.half, '×', 2.4, ms('500', agents.half));
  const line = await benchLongLine(sink, 3, 315);
  row('a line of 315 MB', line.long / line.short, '×', undefined, ms('without it', line.short));
  row('its memory', line.rssMB, 'MB', 200);
}

/** Measures the redaction of texts that are made to take long, and of recorded lines. */
async function benchRedaction(): Promise<void> {
  const { unit, hostile, scan } = await benchHostileTexts(11);
  row(
    `slowest hostile text, ${JSON.stringify(unit.slice(0, 8))}`,
    hostile / scan,
    '×',
    undefined,
    ms('one plain search', scan),
  );
  row('slowest hostile text per MB', hostile, 'ms');
  const own = await benchOwnRule(11);
  row('redaction of recorded lines', own.without / own.scan, '×', undefined, ms('one plain search', own.scan));
  row('the same with an own rule', own.withRule / own.without, '×', undefined, ms('without', own.without));
}

/** Measures a follower for some tens of seconds, half an hour into a turn: an hour costs as much for each second. */
async function benchLive(): Promise<void> {
  const live = await benchFollower(40, 0.5);
  row('follower, idle', live.idleCpuShare * 100, '%', 0.5);
  row('follower, a call each second', live.busyCpuShare * 100, '%');
  row(
    'its memory',
    live.busyRssMB / live.hookRssMB,
    '×',
    1,
    `the hook at the turn's end ${live.hookRssMB.toFixed(0)} MB`,
  );
  row('requests a minute', live.requestsPerMinute, '');
  row('result written → at the server', live.medianDelayMs, 'ms', 5_000, 'median');
  row('the same, 95 of 100', live.longestDelayMs, 'ms', 10_000);
}

/** Measures how long the user of the real program waits. */
async function benchClaudeCode(): Promise<void> {
  const claude = install(wantedVersion(process.env));
  if ('missing' in claude) return say(`skipped: Claude Code ${claude.version}, because ${claude.missing}`);
  const addRow = (what: string, target: number, { withHook, without, withEmptyHooks }: Waits) => {
    row(what, withHook / without, '×', target, ms('without the hook', without));
    row('the same with hooks that only exit', withEmptyHooks / without, '×');
  };
  addRow('claude -p', 1.15, await timePrint(claude.program, CLAUDE_CODE_RUNS));
  addRow('claude -p, 10 streamed turns', 1.1, await timeStream(claude.program, 10, CLAUDE_CODE_RUNS / 2));
  const { first: once, later, without } = await timeHangingServer(claude.program, HANGING_TIMEOUT_MS, 3);
  const against = ms('more than without the hook', without);
  row('claude -p, the server hangs', once - without, 'ms', HANGING_TIMEOUT_MS, against);
  row('the same again', later - without, 'ms', 1_600, against);
  if (hasTmux()) addRow('a turn in the terminal', 1.1, await timeTerminalTurn(claude.program, CLAUDE_CODE_RUNS));
  else say('skipped: a turn in the terminal, which needs tmux');
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function ms(name: string, value: number): string {
  return `${name} ${value.toFixed(value < 10 ? 1 : 0)} ms`;
}

function formatRow({ what, figure, unit, target, against }: Row): string {
  const shown = `${figure.toFixed(unit === '' || unit === '×' ? 2 : 1)} ${unit}`;
  const goal = target === undefined ? '' : `${figure <= target ? '≤' : '>'} ${target} ${unit}`;
  return `${what.padEnd(34)} ${shown.padStart(9)}  ${goal.padEnd(9)}  ${against}`.trimEnd();
}
