import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
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
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BEGINNING } from '../../src/shared/place.js';
import { findDue, listDue } from '../../src/state/due.js';
import { newSession } from '../../src/state/entry.js';
import type { Fact } from '../../src/state/facts.js';
import { takeLock } from '../../src/state/lock.js';
import { StateStore } from '../../src/state/store.js';
import { mount } from '../support/mount.js';
import { sessionFile } from '../support/state-files.js';

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
const file = (session: string, name = 'session.json') => sessionFile(folder, session, name);
const read = (session: string, name?: string) => JSON.parse(readFileSync(file(session, name), 'utf8'));
const began = (destination?: string): Fact => ({
  kind: 'start',
  at: 1,
  after: BEGINNING,
  source: 'startup',
  run: { destination },
  alive: [],
});
const ended = (destination?: string): Fact => ({
  kind: 'end',
  at: 2,
  after: { bytes: 3, hash: 'x' },
  run: { destination },
  alive: [],
});
const due = () =>
  existsSync(join(folder, 'cc-langfuse_due')) ? readdirSync(join(folder, 'cc-langfuse_due')).toSorted() : [];

describe('the state', () => {
  test('begins empty and keeps what is known of a session, and its progress at each destination', async () => {
    expect([store.read('a', 'd'), store.readSession('a'), store.all()]).toEqual([undefined, undefined, []]);
    await store.update('a', { path: '/x', lastLine: 7, turnCount: 2 }, 'd');
    await store.update('a', { turnCount: 3 }, 'd');
    await store.update('a', { lastLine: 1 }, 'e');
    const at = { updated: expect.stringMatching(/^20/) };
    const session = { ...newSession('a'), path: '/x' };
    expect(store.read('a', 'd')).toEqual({ ...session, lastLine: 7, turnCount: 3, ...at });
    expect(store.all()).toEqual([
      {
        session,
        progress: new Map([
          ['d', { lastLine: 7, turnCount: 3, ...at }],
          ['e', { lastLine: 1, turnCount: 0, ...at }],
        ]),
      },
    ]);
    expect(store.read('a', 'f')).toEqual({ ...session, lastLine: 0, turnCount: 0, updated: '' });
  });

  // Windows has no modes.
  test.skipIf(process.platform === 'win32')('is readable only by its owner', async () => {
    await store.update('a', { lastLine: 1, facts: [began('d')], path: '/x' }, 'd');
    const paths = [folder, join(folder, 'cc-langfuse_sessions'), file('a', ''), join(folder, 'cc-langfuse_due')];
    expect(paths.map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700, 0o700, 0o700]);
    const files = [file('a'), file('a', 'd.json'), join(folder, 'cc-langfuse_due', 'd.a')];
    expect(files.map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600, 0o600]);
  });

  test('has the fields of the first cc-langfuse in its names', async () => {
    await store.update('a', { lastLine: 7, agents: { x: agent }, facts: [began('d')] }, 'd');
    expect(read('a')).toEqual({ version: 1, id: 'a', facts: [began('d')] });
    expect(read('a', 'd.json')).toEqual({
      version: 1,
      last_line: 7,
      turn_count: 0,
      updated: expect.stringMatching(/^20/),
      agents: { x: agent },
    });
  });

  test('of the first cc-langfuse is read, and taken over by the first destination that the session is sent to', async () => {
    const updated = '2026-02-01T00:00:00.000Z';
    mkdirSync(folder, { recursive: true });
    const seeds = {
      a: { last_line: 12, turn_count: 3, updated },
      b: 'of the future',
      c: { last_line: -1, turn_count: 1 },
    };
    writeFileSync(join(folder, 'cc-langfuse_state.json'), JSON.stringify(seeds));
    const known = {
      ...newSession('a'),
      lastLine: 12,
      turnCount: 3,
      updated,
      acknowledged: true,
      seedLine: 12,
    };
    expect([store.read('a', 'd'), store.read('a', 'e'), store.read('b', 'd'), store.read('c', 'd')]).toEqual([
      known,
      known,
      undefined,
      undefined,
    ]);
    await store.update('a', { path: '/x' });
    await store.update('a', { turnCount: 4 }, 'd');
    expect(store.read('a', 'd')).toMatchObject({ lastLine: 12, turnCount: 4, seedLine: 12 });
    expect(store.read('a', 'e')).toMatchObject({ lastLine: 0, turnCount: 0, seedLine: 12 });
  });

  test.each([
    '{"last_line":',
    '[]',
    'null',
    '',
    '{"version":2}',
    '{"last_line":-1,"turn_count":0}',
    '{"last_line":"7"}',
  ])('of which the progress is corrupt (%j) is set aside, and sent again', async (text) => {
    await store.update('a', { lastLine: 5 }, 'd');
    writeFileSync(file('a', 'd.json'), text);
    expect(store.read('a', 'd')).toMatchObject({ lastLine: 0 });
    await store.update('a', { lastLine: 6 }, 'd');
    expect(corrupt).toHaveLength(1);
    expect(readFileSync(corrupt[0] ?? '', 'utf8')).toBe(text);
    expect(store.read('a', 'd')).toMatchObject({ lastLine: 6 });
  });

  test.each([
    '{"runs":',
    '[]',
    'null',
    '',
    '{"id":"a"}',
    '{"version":2,"id":"a","facts":[]}',
    '{"id":"a","facts":[{}]}',
    '{"id":"a","facts":[{"kind":"of the future","at":1}]}',
  ])(
    'of which what is known of the session is corrupt (%j) says nothing, since it may say what must not be sent',
    async (text) => {
      await store.update('a', { path: '/x' });
      await store.update('b', { path: '/y' });
      writeFileSync(file('a'), text);
      expect(() => store.read('a', 'd')).toThrow(`${file('a')} is corrupt`);
      await expect(store.update('a', { path: '/z' })).rejects.toThrow(`${file('a')} is corrupt`);
      const unreadable: string[] = [];
      expect(store.all((path) => unreadable.push(path)).map(({ session }) => session.id)).toEqual(['b']);
      expect(unreadable).toEqual([file('a')]);
    },
  );

  test('is read without a field that has an impossible value', async () => {
    await store.update('a', { lastLine: 3, turnCount: 1 }, 'd');
    const odd = { pending: 'oops', offset: 'foo', time: -1, updated: 7 };
    writeFileSync(file('a', 'd.json'), JSON.stringify({ ...read('a', 'd.json'), ...odd }));
    expect(store.read('a', 'd')).toMatchObject({ lastLine: 3, turnCount: 1, pending: undefined, offset: undefined });
  });

  test('is never written in part on a full disk (needs the right to mount)', async ({ skip }) => {
    const disk = join(folder, 'disk');
    const unmount = mount(disk, 'size=500k') ?? skip();
    try {
      const small = new StateStore(disk, () => corrupt.push('corrupt'));
      const change = { lastLine: 1, path: 'x'.repeat(2_000) };
      for (let n = 0; n < 10; n += 1) await small.update(`s${n}`, change, 'd');
      writeFileSync(join(disk, 'other'), Buffer.alloc(360_000));
      expect(() => small.checkWritable()).toThrow('the disk of the state folder is full');
      for (let n = 0; n < 60; n += 1) await small.update(`s${n}`, { path: `${n}`.repeat(2_000) }, 'd').catch(() => {});
      const afresh = new StateStore(disk, () => corrupt.push('corrupt'));
      const unreadable: string[] = [];
      expect(afresh.all((path) => unreadable.push(path)).length).toBeGreaterThanOrEqual(10);
      expect([unreadable, corrupt]).toEqual([[], []]);
    } finally {
      unmount();
    }
  });

  test('loses neither a mute nor an end if several processes change a session at once', async () => {
    const change = (fact: Fact, lastLine: number, destination: string) =>
      new StateStore(folder, undefined, 'async').update('a', { facts: [fact], lastLine }, destination);
    const muted: Fact = { kind: 'mute', at: 3, after: { bytes: 3, hash: 'x' } };
    await Promise.all([change(began('d'), 1, 'd'), change(ended('d'), 2, 'e'), change(muted, 3, 'f')]);
    const { runs, mutes } = store.readSession('a') ?? {};
    expect([runs, mutes]).toEqual([
      [{ destination: 'd', from: BEGINNING, to: { bytes: 3, hash: 'x' }, startedAt: 1, endedAt: 2 }],
      [{ from: { bytes: 3, hash: 'x' }, since: 3 }],
    ]);
    expect(['d', 'e', 'f'].map((each) => store.read('a', each)?.lastLine)).toEqual([1, 2, 3]);
  });

  test('loses no change when many are made at once', async () => {
    const numbers = Array.from({ length: 25 }, (_, n) => n);
    const part = (n: number) => ({ from: { bytes: n, hash: '' }, to: { bytes: n + 1, hash: '' } });
    const fact = (n: number): Fact => ({ kind: 'took', at: n, run: {}, ...part(n) });
    const add = (n: number) => store.update('a', { facts: [fact(n)], agents: { [`x${n}`]: agent } }, 'd');
    await Promise.all(numbers.map(add));
    expect(store.readSession('a')?.runs).toEqual(numbers.map(part));
    expect(Object.keys(store.read('a', 'd')?.agents ?? {})).toHaveLength(25);
    expect(readdirSync(file('a', '')).toSorted()).toEqual(['d.json', 'session.json']);
  });

  test('knows in which order things happened, even if the clock was set back meanwhile', async () => {
    const at = (fact: Fact, time: number) => store.update('a', { facts: [{ ...fact, at: time }] });
    const [from, to] = [
      { bytes: 3, hash: 'x' },
      { bytes: 5, hash: 'y' },
    ];
    await at(began('d'), 9_000);
    await at(ended('d'), 5_000);
    await at({ kind: 'mute', at: 0, after: from }, 8_000);
    await at({ kind: 'unmute', at: 0, after: to }, 7_000);
    await at({ kind: 'mute', at: 0, after: to }, 1_000);
    const { runs, mutes } = store.readSession('a') ?? {};
    expect([runs, mutes]).toEqual([
      [{ destination: 'd', from: BEGINNING, to: from, startedAt: 9_000, endedAt: 5_000 }],
      [
        { from, since: 8_000, to, until: 7_000 },
        { from: to, since: 1_000 },
      ],
    ]);
  });

  test('has a file for what is due at each destination, as long as a run is open or something is left', async () => {
    const pending = { since: 's', attempts: 1, reason: 'r' };
    await store.update('a', { path: '/x', facts: [began('d')] });
    await store.update('b', { path: '/y', facts: [began()] });
    await store.update('c', { path: '/z', facts: [began('d'), ended('d')], pending }, 'd');
    // Nothing of the session is for there.
    await store.update('c', { pending }, 'e');
    expect(due()).toEqual(['d.a', 'd.c', 'none.b']);
    expect([...findDue(listDue(folder), 'd')].map(({ sessionId, path }) => [sessionId, path])).toEqual([
      ['a', '/x'],
      ['c', '/z'],
    ]);
    await store.update('a', { facts: [ended('d')] });
    await store.update('b', { facts: [{ kind: 'adopt', at: 2, wrong: '', right: 'e' }] });
    await store.update('c', { pending: undefined }, 'd');
    expect(due()).toEqual(['e.b']);
    await store.update('b', { facts: [ended('e')] });
    expect(due()).toEqual([]);
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
