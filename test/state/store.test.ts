import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { takeLock } from '../../src/state/lock.js';
import { StateStore } from '../../src/state/store.js';
import { mount } from '../support/mount.js';

let folder: string;
let corrupt: string[];
let store: StateStore;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'cc-langfuse-state-')), 'state');
  corrupt = [];
  store = new StateStore(folder, (keptAs) => corrupt.push(keptAs));
});

afterEach(() => {
  rmSync(join(folder, '..'), { recursive: true, force: true });
});

const agent = { lastLine: 1, bytes: 9, trace: 't', traceName: 'n', traceMetadata: { a: { b: 'c' }, keptAsIt_is: 1 } };
const file = () => join(folder, 'cc-langfuse_state.json');

describe('the state file', () => {
  test('begins empty and keeps changes', async () => {
    expect(store.read('a')).toBeUndefined();
    await store.update('a', { lastLine: 7, turnCount: 2, path: '/x' });
    expect(store.read('a')).toEqual({
      lastLine: 7,
      turnCount: 2,
      acknowledged: false,
      path: '/x',
      runs: [],
      updated: expect.stringMatching(/^20/),
    });
    await store.update('a', { turnCount: 3 });
    expect(store.read('a')).toMatchObject({ lastLine: 7, turnCount: 3 });
  });

  // Windows has no modes.
  test.skipIf(process.platform === 'win32')('is readable only by its owner', async () => {
    await store.update('a', { lastLine: 1 });
    expect([statSync(folder).mode & 0o777, statSync(file()).mode & 0o777]).toEqual([0o700, 0o600]);
  });

  test('has a version, and an entry for each session in snake_case', async () => {
    await store.update('a', { lastLine: 7, agents: { x: agent }, runs: [{ fromLine: 3, toLine: 9, seed: 's' }] });
    await store.update('a', { pending: { since: 'then', attempts: 1, reason: 'why', closedLine: 5 } });
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toEqual({
      version: 3,
      a: {
        updated: expect.stringMatching(/^20/),
        settled: false,
        acknowledged: false,
        pending: { since: 'then', attempts: 1, reason: 'why', closed_line: 5 },
        last_line: 7,
        turn_count: 0,
        agents: {
          x: { last_line: 1, bytes: 9, trace: 't', trace_name: 'n', trace_metadata: { a: { b: 'c' }, keptAsIt_is: 1 } },
        },
        runs: [{ from_line: 3, to_line: 9, seed: 's' }],
      },
    });
    expect(new StateStore(folder, () => {}).read('a')).toMatchObject({
      agents: { x: agent },
      pending: { closedLine: 5 },
    });
  });

  test('of an earlier version, without a version number, is read, and converted by the next change', async () => {
    await store.update('other', {});
    const line = (id: string, extra: object) =>
      JSON.stringify({ [id]: { last_line: 4, turn_count: 1, updated: '2026-01-01', ...extra } }).slice(1, -1);
    const b = { turn_line: 2, ended: false, destination: 'd', given: { LANGFUSE_TAGS: 't' } };
    writeFileSync(file(), `{\n${[line('a', { ended: true }), line('b', b)].join(',\n')}\n}\n`);
    expect(store.all().map(([id]) => id)).toEqual(['a', 'b']);
    expect(store.unsettled()).toEqual([
      [
        'b',
        {
          lastLine: 4,
          turnCount: 1,
          acknowledged: true,
          updated: '2026-01-01',
          turnLine: 2,
          destination: 'd',
          runs: [{ fromLine: 1, destination: 'd', given: { LANGFUSE_TAGS: 't' } }],
        },
      ],
    ]);
    await store.update('b', { turnCount: 2 });
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toMatchObject({
      version: 3,
      a: { settled: true, runs: [{ from_line: 1, to_line: 4 }] },
      b: { turn_count: 2 },
    });
    expect(corrupt).toEqual([]);
  });

  test('of the first cc-langfuse is read', async () => {
    await store.update('other', {});
    writeFileSync(file(), JSON.stringify({ a: { last_line: 12, turn_count: 3, updated: '2026-02-01T00:00:00.000Z' } }));
    expect(store.read('a')).toEqual({
      lastLine: 12,
      turnCount: 3,
      acknowledged: true,
      runs: [{ fromLine: 1, toLine: 12 }],
      updated: '2026-02-01T00:00:00.000Z',
    });
  });

  test('keeps fields and entries that this version does not know', async () => {
    await store.update('a', {});
    writeFileSync(
      file(),
      JSON.stringify({ a: { last_line: 1, turn_count: 1, updated: 'x', newer: [1] }, b: 'of the future' }),
    );
    await store.update('a', { lastLine: 2 });
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toEqual({
      version: 3,
      a: {
        updated: expect.any(String),
        settled: true,
        last_line: 2,
        turn_count: 1,
        acknowledged: true,
        runs: [{ from_line: 1, to_line: 1 }],
        newer: [1],
      },
      b: 'of the future',
    });
  });

  test.each(['{"a": {"last_li', '[]', 'null', ''])('that is corrupt (%j) is set aside and replaced', async (text) => {
    await store.update('a', { lastLine: 5 });
    writeFileSync(file(), text);
    expect(store.read('a')).toBeUndefined();
    await store.update('a', { lastLine: 6 });
    expect(corrupt).toHaveLength(1);
    expect(readFileSync(corrupt[0] ?? '', 'utf8')).toBe(text);
    expect(store.read('a')).toMatchObject({ lastLine: 6 });
  });

  test('that was cut off is read with the entries that are complete, and keeps them', async () => {
    for (const session of ['a', 'b', 'c']) await store.update(session, { lastLine: 5, agents: { x: agent, y: agent } });
    const text = readFileSync(file(), 'utf8');
    writeFileSync(file(), text.slice(0, text.indexOf('"c":') + 40));
    const expected = [5, 5, undefined, undefined];
    expect(['a', 'b', 'c', 'd'].map((session) => store.read(session)?.lastLine)).toEqual(expected);
    expect([store.isCorrupt, store.unsettled(), corrupt]).toEqual([true, [], []]);
    await store.update('d', { lastLine: 1 });
    expect(['a', 'b', 'c', 'd'].map((session) => store.read(session)?.lastLine)).toEqual([5, 5, undefined, 1]);
    expect(store.read('b')).toMatchObject({ agents: { x: agent, y: agent } });
    expect(corrupt).toHaveLength(1);
  });

  test('is never written in part on a full disk (needs the right to mount)', async ({ skip }) => {
    const disk = join(folder, 'disk');
    const unmount = mount(disk, 'size=300k') ?? skip();
    try {
      const small = new StateStore(disk, () => corrupt.push('corrupt'));
      const entry = { lastLine: 1, path: 'x'.repeat(2_000) };
      for (let n = 0; n < 30; n += 1) await small.update(`s${n}`, entry);
      writeFileSync(join(disk, 'other'), Buffer.alloc(300_000 - 65_536 - 80_000));
      await expect(small.checkWritable()).rejects.toThrow('the disk of the state folder is full');
      for (let n = 30; n < 60; n += 1) await small.update(`s${n}`, entry).catch(() => {});
      expect(new StateStore(disk, () => corrupt.push('corrupt')).read('s29')).toMatchObject(entry);
      expect(corrupt).toEqual([]);
    } finally {
      unmount();
    }
  });

  test('loses the temporary files of killed processes after a while', async () => {
    await store.update('a', { lastLine: 1 });
    for (const name of [`${file()}.123`, `${file()}.456`, `${file()}.corrupt-1`]) writeFileSync(name, '');
    const before = new Date(Date.now() - 7_200_000);
    for (const name of [`${file()}.123`, `${file()}.corrupt-1`]) utimesSync(name, before, before);
    store.tidy();
    expect(readdirSync(folder).toSorted()).toEqual([
      'cc-langfuse_state.json',
      'cc-langfuse_state.json.456',
      'cc-langfuse_state.json.corrupt-1',
    ]);
  });

  test.each([{ last_line: -1 }, { last_line: 1.5 }, { last_line: '7' }, { turn_count: null }])(
    'is read without an entry that has an impossible value: %j',
    async (wrong) => {
      await store.update('b', { lastLine: 3 });
      const all = JSON.parse(readFileSync(file(), 'utf8'));
      writeFileSync(file(), JSON.stringify({ ...all, a: { last_line: 1, turn_count: 1, updated: 'x', ...wrong } }));
      expect(store.read('a')).toBeUndefined();
      expect(store.read('b')).toMatchObject({ lastLine: 3 });
    },
  );

  test('is read without a field that has an impossible value', async () => {
    await store.update('a', { lastLine: 3, turnCount: 1 });
    const all = JSON.parse(readFileSync(file(), 'utf8'));
    writeFileSync(file(), JSON.stringify({ a: { ...all.a, pending: 'oops', offset: 'foo', time: -1, updated: 7 } }));
    expect(store.read('a')).toMatchObject({ lastLine: 3, turnCount: 1, pending: undefined, offset: undefined });
  });

  test('is a JSON object of all sessions after any changes, whatever their ids and texts contain', async () => {
    const id = fc.constantFrom('a', 'aa', 'ä "b":', '语\\', '{', '\n');
    const path = fc.string({ unit: 'grapheme', maxLength: 8 });
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ id, path }) },
      { weight: 1, arbitrary: fc.record({ id }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        rmSync(file(), { force: true });
        const expected = new Map<string, unknown>();
        for (const { id: sessionId, path: to } of steps.map((each) => ({ path: undefined, ...each }))) {
          if (to === undefined) expected.delete(sessionId);
          else {
            const entry = { lastLine: 0, turnCount: 0, acknowledged: false, runs: [], path: to };
            expected.set(sessionId, { ...entry, updated: expect.any(String) });
          }
          await (to === undefined ? store.remove([sessionId]) : store.update(sessionId, { path: to }));
        }
        const afresh = new StateStore(folder, (keptAs) => corrupt.push(keptAs));
        expect(new Map(afresh.all())).toEqual(expected);
        const { version, ...onDisk } = steps.length > 0 ? JSON.parse(readFileSync(file(), 'utf8')) : { version: 3 };
        expect([version, Object.keys(onDisk).toSorted()]).toEqual([3, [...expected.keys()].toSorted()]);
        expect(corrupt).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  test('finds the sessions that are not settled, whatever their texts contain', async () => {
    const closed = [{ fromLine: 1, toLine: 2, destination: 'd' }];
    const pending = { since: 's', attempts: 1, reason: 'r' };
    const open = {
      runs: [{ fromLine: 1, given: { LANGFUSE_METADATA: '{"settled":true}' } }],
      path: '/x","settled":true,"y',
    };
    await store.update('open', { ...open, agents: { x: { ...agent, traceMetadata: { settled: true } } } });
    await store.update('closed', { runs: closed });
    await store.update('failed', { runs: closed, pending });
    await store.update('failed elsewhere', { runs: closed, pending }, 'd');
    await store.update('failed elsewhere', { lastLine: 2 }, 'another');
    await store.update('failed, but nothing is for there any more', { pending }, 'd');
    const bound = closed.map((run) => ({ ...run, destination: 'another' }));
    await store.update('failed, but nothing is for there any more', { runs: bound }, 'another');
    expect(store.unsettled().map(([id]) => id)).toEqual(['open', 'failed', 'failed elsewhere']);
  });

  test('loses no change when many are made at once', async () => {
    const sessions = Array.from({ length: 25 }, (_, n) => `session-${n}`);
    await Promise.all(sessions.map((session, n) => store.update(session, { lastLine: n })));
    expect(sessions.map((session) => store.read(session)?.lastLine)).toEqual(sessions.map((_, n) => n));
    expect(readdirSync(folder)).toEqual(['cc-langfuse_state.json']);
  });
});

describe('a lock', () => {
  const path = () => join(folder, 'some.lock');

  test('is held by one process at a time', async () => {
    const lock = await takeLock(path(), Date.now());
    expect(lock).toBeDefined();
    expect(await takeLock(path(), Date.now() + 50)).toBeUndefined();
    lock?.release();
    expect(await takeLock(path(), Date.now())).toBeDefined();
  });

  test('of a process that no longer runs is free', async () => {
    await store.update('a', {});
    const pid = execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }).trim();
    writeFileSync(path(), `${pid} ${hostname()} 1.1`);
    expect(await takeLock(path(), Date.now() + 50)).toBeDefined();
  });

  test.skipIf(!existsSync('/proc/self/stat'))(
    'of a process that was killed is free, even if its parent has not noticed',
    async () => {
      await store.update('a', {});
      // The shell becomes a program that waits for nobody.
      const parent = spawn('/bin/sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], {
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      try {
        const [pid] = await once(parent.stdout, 'data');
        writeFileSync(path(), `${String(pid).trim()} ${hostname()} 1.1`);
        expect(await takeLock(path(), Date.now())).toBeUndefined();
        process.kill(Number(pid), 'SIGKILL');
        expect(await takeLock(path(), Date.now() + 1_000)).toBeDefined();
      } finally {
        parent.kill('SIGKILL');
      }
    },
  );

  test('of another host is held as long as its file is touched, since its process id means nothing here', async () => {
    await store.update('a', {});
    writeFileSync(path(), '999999999 elsewhere 1.1');
    expect(await takeLock(path(), Date.now() + 50)).toBeUndefined();
    utimesSync(path(), new Date(), new Date(Date.now() - 61_000));
    expect(await takeLock(path(), Date.now() + 50)).toBeDefined();
  });

  test('of a running process is held, even before the process has written its id', async () => {
    await store.update('a', {});
    writeFileSync(path(), `${process.ppid} ${hostname()} 1.1`);
    expect(await takeLock(path(), Date.now() + 50)).toBeUndefined();
    writeFileSync(path(), '');
    expect(await takeLock(path(), Date.now() + 50)).toBeUndefined();
  });

  test('without a process id is free after a second, since its process died before it could write one', async () => {
    await store.update('a', {});
    writeFileSync(path(), '');
    utimesSync(path(), new Date(), new Date(Date.now() - 1_500));
    expect(await takeLock(path(), Date.now() + 50)).toBeDefined();
  });

  test('from before the machine was started is free, even if a process has its id now', async () => {
    await store.update('a', {});
    writeFileSync(path(), `${process.ppid} ${hostname()} 1.1`);
    const beforeTheBoot = new Date(Date.now() - uptime() * 1_000 - 5_000);
    utimesSync(path(), beforeTheBoot, beforeTheBoot);
    expect(await takeLock(path(), Date.now() + 50)).toBeDefined();
  });

  test('is held or free as before if the clock is set back', async () => {
    await store.update('a', {});
    const inAnHour = new Date(Date.now() + 3_600_000);
    writeFileSync(path(), `${process.ppid} ${hostname()} 1.1`);
    utimesSync(path(), inAnHour, inAnHour);
    expect(await takeLock(path(), Date.now() + 50)).toBeUndefined();
    const pid = execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }).trim();
    writeFileSync(path(), `${pid} ${hostname()} 1.1`);
    utimesSync(path(), inAnHour, inAnHour);
    expect(await takeLock(path(), Date.now() + 50)).toBeDefined();
  });

  test('of another host that is dated in the future is free a minute after that was seen, if it is not touched', async () => {
    await store.update('a', {});
    writeFileSync(path(), '999999999 elsewhere 1.1');
    const inAnHour = new Date(Date.now() + 3_600_000);
    utimesSync(path(), inAnHour, inAnHour);
    expect(await takeLock(path(), Date.now() + 50)).toBeUndefined();
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 59_000 });
    try {
      expect(await takeLock(path(), Date.now())).toBeUndefined();
      vi.setSystemTime(Date.now() + 2_000);
      expect(await takeLock(path(), Date.now())).toBeDefined();
    } finally {
      vi.useRealTimers();
    }
  });

  test('of an owner whose clock is ahead is held as long as its file is touched', async () => {
    await store.update('a', {});
    writeFileSync(path(), '999999999 elsewhere 1.1');
    try {
      for (let minutes = 0; minutes < 5; minutes += 1) {
        vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 });
        const ahead = new Date(Date.now() + 3_600_000);
        utimesSync(path(), ahead, ahead);
        expect(await takeLock(path(), Date.now())).toBeUndefined();
      }
    } finally {
      vi.useRealTimers();
    }
  });

  test('knows when it was lost', async () => {
    const lock = await takeLock(path(), Date.now());
    expect(lock?.isHeld()).toBe(true);
    writeFileSync(path(), `${process.ppid} ${hostname()} 1.1`);
    expect(lock?.isHeld()).toBe(false);
  });

  test('is not released by a process that has lost it', async () => {
    const lock = await takeLock(path(), Date.now());
    writeFileSync(path(), `${process.ppid} ${hostname()} 1.1`);
    lock?.release();
    expect(readFileSync(path(), 'utf8')).toBe(`${process.ppid} ${hostname()} 1.1`);
  });
});
