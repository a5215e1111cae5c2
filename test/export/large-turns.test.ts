import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Exporter } from '../support/exporter.js';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { assistant, jsonLines, user } from '../support/lines.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { sessionFile } from '../support/state-files.js';

let exporter: Exporter;

beforeEach(async () => {
  exporter = await Exporter.open();
});

afterEach(() => exporter.close());

const partsFile = (path: string) =>
  sessionFile(join(exporter.folder, 'state'), basename(path, '.jsonl'), 'x.part.json');

/** The size of what is written with each acknowledgement. */
const sizeOf = (path: string) =>
  ['session.json', 'x.json']
    .map((name) => sessionFile(join(exporter.folder, 'state'), basename(path, '.jsonl'), name))
    .reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);

const RUN_MS = 3_000;

const write = (turns: number, callsPerTurn: number) =>
  writeSession(join(exporter.folder, 'projects'), {
    sessionId: sessionIdOf(1),
    cwd: '/home/dev/one',
    startsAt: Date.UTC(2026, 0, 1),
    resultChars: 2_000,
    callsPerTurn,
    turns,
  });

/** Lets time pass, which otherwise stands still: so it does not matter how busy the machine is. */
function pass(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

describe('a turn for which the time of one run is not enough', () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ['Date'] }));
  afterEach(() => vi.useRealTimers());

  test('is sent in parts: each run sends the next ones in the order of their lines, and the last one the root', async () => {
    const path = write(1, 700);
    const observer = { onAcknowledged: () => pass(RUN_MS / 3) };
    const runs: { failure: string | undefined; types: (string | undefined)[]; from: number; to: number }[] = [];
    do {
      const before = new Set(exporter.server.observations.map(({ id }) => id));
      const failure = (await exporter.export(path, {}, {}, { ms: RUN_MS, observer })).failure?.text;
      const sent = exporter.server.observations.filter(({ id }) => !before.has(id));
      const ends = sent.flatMap(({ type, endTime }) => (type === 'tool' ? endTime : []));
      const types = [...new Set(sent.map(({ type }) => type))];
      runs.push({ failure, types, from: Math.min(...ends), to: Math.max(...ends) });
    } while (runs.at(-1)?.failure !== undefined && runs.length < 20);
    const last = runs.findIndex(({ types }) => types.includes('agent'));
    const parts = runs.slice(0, last);
    expect(parts.length).toBeGreaterThan(0);
    for (const { types } of parts) expect(types.toSorted()).toEqual(['generation', 'tool']);
    for (const [place, { to }] of parts.entries()) expect(runs[place + 1]?.from).toBeGreaterThan(to);
    expect(runs.at(-1)?.failure).toBeUndefined();
    expect(exporter.server.observations).toHaveLength(700 + 701 + 1);
    expectEachSentOnce(exporter.server);
  });

  test('may be read for longer than half of it, since the next run would have to read it again, but no other turn', async () => {
    const path = write(2, 300);
    let reads = 0;
    // The first turn has 901 lines.
    const onRead = () => {
      reads += 1;
      if (reads === 3) pass(RUN_MS * 0.6);
    };
    const first = await exporter.export(path, {}, {}, { ms: RUN_MS, observer: { onRead } });
    expect(first.failure?.text).toBe('out of time while reading');
    expect(exporter.server.roots.map(({ name }) => name)).toEqual(['Turn 1']);
    expect((await exporter.export(path)).failure).toBeUndefined();
    expect(exporter.server.roots.map(({ name }) => name)).toEqual(['Turn 1', 'Turn 2']);
    expectEachSentOnce(exporter.server);
  });
});

const CALLS = 1_500;
const IN_PARTS = { partBytes: 300_000 };

/** Exports until the user's wish to stop comes, with the first acknowledgement, as with Ctrl-C. Returns from where it has read. */
async function exportUntilAcknowledged(path: string): Promise<{ isWhole: boolean; from: number }> {
  const reads: number[] = [];
  const stop = new AbortController();
  const observer = { onRead: (offset: number) => reads.push(offset), onAcknowledged: () => stop.abort() };
  const { failure } = await exporter.export(path, {}, {}, { ...IN_PARTS, observer, stop: stop.signal });
  expect(failure).toBeUndefined();
  return { isWhole: exporter.server.roots.length > 0, from: reads[0] ?? Number.POSITIVE_INFINITY };
}

/** Exports in so many runs that the last one goes on in the middle of the turn. */
async function exportSomeParts(path: string): Promise<{ from: number }> {
  for (let run = 1; run < 4; run += 1) await exportUntilAcknowledged(path);
  return exportUntilAcknowledged(path);
}

/** What one undisturbed run on the same file sends. */
async function sentAtOnce(path: string) {
  const other = await Exporter.open();
  try {
    const copy = join(other.folder, basename(path));
    copyFileSync(path, copy);
    await other.export(copy, {}, {}, { partBytes: Number.POSITIVE_INFINITY });
    return sortById(other.server.observations);
  } finally {
    await other.close();
  }
}

const sortById = <T extends { readonly id: string }>(all: readonly T[]) =>
  all.toSorted((a, b) => a.id.localeCompare(b.id));

describe('a turn of which the runs before have sent parts', () => {
  test('is read from there on, and becomes what one undisturbed run sends', async () => {
    const path = write(1, CALLS);
    const starts: number[] = [];
    for (let isWhole = false; !isWhole && starts.length < 50; ) {
      const run = await exportUntilAcknowledged(path);
      isWhole = run.isWhole;
      starts.push(run.from);
    }
    expect(starts.length).toBeGreaterThan(3);
    for (const [place, start] of starts.slice(1).entries()) expect(start).toBeGreaterThanOrEqual(starts[place] ?? 0);
    expect(new Set(starts.slice(1, -1)).size).toBeGreaterThan((starts.length - 2) / 2);
    expect(sortById(exporter.server.observations)).toEqual(await sentAtOnce(path));
    expectEachSentOnce(exporter.server);
  });

  test('is written down in as few bytes with each acknowledgement as a short one', async () => {
    const sizes: number[] = [];
    for (const calls of [CALLS / 5, CALLS]) {
      const path = write(1, calls);
      const observer = { onAcknowledged: () => sizes.push(sizeOf(path)) };
      await exporter.export(path, {}, {}, { ...IN_PARTS, observer, force: true });
      sizes.push(sizeOf(path));
    }
    expect(sizes.length).toBeGreaterThan(5);
    expect(Math.max(...sizes)).toBeLessThan(2_000);
  });

  test('is read again if nothing is known of where the last run came to, since it was killed, and sent once', async () => {
    const path = write(1, CALLS);
    const first = await exportUntilAcknowledged(path);
    const later = await exportSomeParts(path);
    expect(later.from).toBeGreaterThan(first.from);
    rmSync(partsFile(path));
    const last = await exportUntilAcknowledged(path);
    expect(last.from).toBe(first.from);
    expect((await exporter.export(path, {}, {}, IN_PARTS)).failure).toBeUndefined();
    expect(sortById(exporter.server.observations)).toEqual(await sentAtOnce(path));
    expectEachSentOnce(exporter.server);
  });

  test('is not taken for sent up to there once everything is to be sent again, although that run is stopped at once', async () => {
    const path = write(1, CALLS);
    await exportSomeParts(path);
    expect(existsSync(partsFile(path))).toBe(true);
    const stop = AbortSignal.abort();
    expect(await exporter.export(path, {}, {}, { ...IN_PARTS, force: true, stop })).toMatchObject({ isStopped: true });
    expect(existsSync(partsFile(path))).toBe(false);
  });

  test('is read again if its lines were changed meanwhile', async () => {
    const path = write(1, CALLS);
    const first = await exportUntilAcknowledged(path);
    const later = await exportSomeParts(path);
    expect(later.from).toBeGreaterThan(first.from);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('lazy dog', 'lazy cat'));
    const last = await exportUntilAcknowledged(path);
    expect(last.from).toBe(first.from);
    expect((await exporter.export(path, {}, {}, IN_PARTS)).failure).toBeUndefined();
    expect(exporter.server.observations).toHaveLength(CALLS + CALLS + 1 + 1);
    expectEachSentOnce(exporter.server);
  });

  test('is not read again after it was sent whole, and the next turn is', async () => {
    const path = write(1, CALLS);
    await exporter.export(path, {}, {}, IN_PARTS);
    const text = readFileSync(path, 'utf8');
    const next = [user('question 2', { uuid: 'next' }), assistant('m-next', 'answer 2')];
    writeFileSync(path, text + jsonLines(next));
    const reads: number[] = [];
    const observer = { onRead: (offset: number) => reads.push(offset) };
    expect((await exporter.export(path, {}, {}, { ...IN_PARTS, observer })).failure).toBeUndefined();
    expect(Math.min(...reads, text.length)).toBeGreaterThan(text.length * 0.8);
    expect(exporter.server.roots.map(({ name }) => name)).toEqual(['Turn 1', 'Turn 2']);
    expectEachSentOnce(exporter.server);
  });

  test('has all of its agents, each once, although they follow the calls of several runs', async () => {
    const path = write(1, 300);
    const folder = join(path.replace(/\.jsonl$/, ''), 'subagents');
    mkdirSync(folder, { recursive: true });
    const calls = [...readFileSync(path, 'utf8').matchAll(/"tool_use_id":"([^"]+)"/g)].map(([, call]) => call);
    for (const [n, toolUseId] of calls.entries()) {
      const own = { isSidechain: true, agentId: `a${n}`, timestamp: new Date(Date.UTC(2026, 0, 2)).toISOString() };
      const lines = [user(`do ${n}`, { ...own, uuid: `a${n}` }), assistant(`a${n}-m`, `done ${n}`, own)];
      writeFileSync(join(folder, `agent-a${n}.jsonl`), jsonLines(lines));
      writeFileSync(join(folder, `agent-a${n}.meta.json`), JSON.stringify({ agentType: 'Explore', toolUseId }));
    }
    let runs = 0;
    for (let isWhole = false; !isWhole && runs < 50; runs += 1) isWhole = (await exportUntilAcknowledged(path)).isWhole;
    expect((await exporter.export(path, {}, {}, IN_PARTS)).failure).toBeUndefined();
    expect(runs).toBeGreaterThan(1);
    // Each call has its generation and tool, and an agent with a generation; the last answer and the root are the turn's own.
    expect(exporter.server.observations).toHaveLength(300 * 4 + 1 + 1);
    expectEachSentOnce(exporter.server);
  });
});
