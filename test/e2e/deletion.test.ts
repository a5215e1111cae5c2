import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DoctorHome, SETTINGS } from '../support/doctor.js';
import { sessionIdOf, writeNthSession } from '../support/generated.js';
import { jsonLines, user } from '../support/lines.js';
import { run } from '../support/program.js';
import { runInTerminal } from '../support/terminal.js';

/** Claude Code deletes a transcript `cleanupPeriodDays` after its last change: 30 if nothing is said. */

let home: DoctorHome;

beforeEach(async () => {
  home = await DoctorHome.open();
  home.setUp();
});

afterEach(() => home.close());

const DAY_MS = 86_400_000;
const command = (...args: string[]) => run(args, { TZ: 'UTC', ...home.env }, '', { cwd: home.project });

/** Writes the nth session, whose transcript was last changed so many days ago. */
function write(n: number, daysAgo: number): string {
  const path = writeNthSession(home.projects, n);
  return age(path, daysAgo);
}

function age(path: string, daysAgo: number): string {
  const changed = new Date(Date.now() - daysAgo * DAY_MS);
  utimesSync(path, changed, changed);
  return path;
}

const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
const numberOf = (id: string) => Number.parseInt(id.slice(0, 8), 16);
const row = async () => /^only here +(.*\n.*)\n$/m.exec((await command('status')).stdout)?.[1]?.split(/\n */);
const deletion = async () => (await home.check()).of('deletion');
const setDays = (cleanupPeriodDays: unknown, scope: 'user' | 'project' | 'local') => {
  const own = scope === 'user' ? JSON.parse(readFileSync(join(home.home, SETTINGS.user), 'utf8')) : {};
  home.writeSettings({ ...own, cleanupPeriodDays }, scope);
};

const SENDS = 'cc-langfuse backfill --expiring sends what goes within 7 days';
const goes = (sessions: string, when: string, days = 30) =>
  `${sessions} not wholly in Langfuse; Claude Code deletes ${sessions.startsWith('1 ') ? 'it' : 'the first of them'} ${when} (cleanupPeriodDays: ${days})`;
/** Without the time of day. */
const plain = (text = '') => text.replaceAll(/(\d{4}-\d\d-\d\d) \d\d:\d\d/g, '$1');

describe('status, sessions and doctor', () => {
  test('say how many sessions are not wholly in Langfuse, and when the first of them goes', async () => {
    for (const [n, days] of [
      [1, 1],
      [2, 20],
      [3, 28],
      [4, 29],
    ] as const)
      write(n, days);
    await run(['backfill', '--yes', sessionIdOf(4)], home.env);
    const message = goes('3 sessions are', `after ${inDays(2)}`);
    expect((await row())?.map(plain)).toEqual([message, `→ ${SENDS}`]);
    expect((await deletion()).map((found) => ({ ...found, message: plain(found.message) }))).toEqual([
      { status: 'none', message: `${message}; ${SENDS}` },
    ]);
    const { stdout, stderr } = await command('sessions');
    expect(plain(stderr)).toBe(`${message}; ${SENDS}\n`);
    expect(
      plain(stdout)
        .match(/· (?:not )?exported[^·]*/g)
        ?.map((state) => state.trim()),
    ).toEqual(['· not exported', '· not exported', `· not exported, deleted after ${inDays(2)}`, '· exported']);
    const listed = JSON.parse((await command('sessions', '--json')).stdout) as { [field: string]: string }[];
    expect(listed.map((each) => each.deletedAfter?.slice(0, 10))).toEqual([
      inDays(29),
      inDays(10),
      inDays(2),
      undefined,
    ]);
    expect(JSON.parse((await command('status', '--json')).stdout).unsent).toEqual({
      sessions: 3,
      firstDeletedAfter: listed[2]?.deletedAfter,
    });
  });

  test('warn if one of them waits for the server, and goes soon', async () => {
    home.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
    write(1, 3);
    write(2, 31);
    for (const n of [1, 2]) await run(['backfill', '--yes', sessionIdOf(n)], home.env);
    expect(await deletion()).toEqual([
      {
        status: 'warning',
        message: `${goes('2 sessions are', 'at its next start')}; 1 of them waits to be sent, and goes within 7 days`,
        fix: 'cc-langfuse backfill --expiring',
      },
    ]);
  });

  test('say nothing of sessions that nothing would be sent of', async () => {
    write(1, 29);
    await run(['backfill', '--yes', '--all'], home.env);
    const muted = sessionIdOf(2);
    write(2, 29);
    await run(['mute', muted], home.env);
    write(3, 0);
    const empty = join(home.projects, '-home-dev-one', `${sessionIdOf(4)}.jsonl`);
    writeFileSync(empty, jsonLines([user('never answered', { cwd: '/home/dev/one' })]));
    age(empty, 29);
    expect(await row()).toBeUndefined();
    expect(await deletion()).toEqual([]);
    expect((await command('sessions')).stderr).toBe('');
    expect(JSON.parse((await command('status', '--json')).stdout).unsent).toBeUndefined();
    write(5, 29);
    home.setUp({ CC_LANGFUSE_EXCLUDE: '/home/dev/*' });
    expect(await row()).toBeUndefined();
  });
});

describe('the time after which Claude Code deletes', () => {
  const days = async () => /cleanupPeriodDays: (\d+)/.exec((await row())?.[0] ?? '')?.[1];

  beforeEach(() => {
    write(1, 1);
  });

  test.each([
    ['the default', [], '30'],
    ['the user’s', [['user', 90]], '90'],
    ['so long that the date has no end', [['user', 999_999_999_999]], '999999999999'],
    [
      'a project’s, if it is shorter',
      [
        ['user', 90],
        ['project', 10],
      ],
      '10',
    ],
    [
      'not a project’s that is longer: Claude Code deletes those of all projects wherever it starts',
      [['local', 365]],
      '30',
    ],
    [
      'not what Claude Code refuses',
      [
        ['user', 0],
        ['project', '5'],
        ['local', -1],
      ],
      '30',
    ],
  ] as const)('is %s', async (_, values, expected) => {
    for (const [scope, value] of values) setDays(value, scope);
    expect(await days()).toBe(expected);
  });
});

describe('backfill --expiring', () => {
  const sent = () => [...new Set(home.server.roots.map(({ trace }) => numberOf(String(trace.sessionId))))].toSorted();

  beforeEach(() => {
    for (const [n, days] of [
      [1, 1],
      [2, 22],
      [3, 24],
      [4, 40],
    ] as const)
      write(n, days);
  });

  test('sends just those that go within 7 days, of all projects', async () => {
    expect(await command('backfill', '--expiring', '--yes', '--quiet')).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: '',
    });
    expect(sent()).toEqual([3, 4]);
    expect((await row())?.map(plain)[0]).toBe(goes('2 sessions are', `after ${inDays(8)}`));
  });

  test('goes by the settings, and can be narrowed', async () => {
    setDays(5, 'project');
    await command('backfill', '--expiring', '--limit', '2', '--yes');
    expect(sent()).toEqual([1, 2]);
    await command('backfill', '--expiring', '--project', '/nowhere', '--yes');
    expect(sent()).toEqual([1, 2]);
  });

  test('lists them, and asks before it sends what ran without tracing', async () => {
    const place = { env: home.env, home: home.project };
    const { exitCode, screen } = await runInTerminal(['backfill', '--expiring'], place, { 'Send? [y/N]': 'n\r' });
    const words = stripVTControlCharacters(screen).replace(/\s+/g, ' ');
    expect(exitCode).toBe(0);
    expect(words.match(/\w{8}-0000-4000-8000-0{12}/g)).toEqual([sessionIdOf(3), sessionIdOf(4)]);
    expect(words).toContain('4 turns of 2 sessions (4 traces, 24 observations, 0 scores) will be sent');
    expect(words).toContain('All of them ran without tracing. Send? [y/N]');
    expect(sent()).toEqual([]);
    expect(await command('backfill', '--expiring')).toMatchObject({ exitCode: 2, stdout: '' });
  });

  test('says that nothing goes', async () => {
    setDays(3650, 'user');
    expect(await command('backfill', '--expiring', '--yes')).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: 'Claude Code deletes no such session within 7 days\n',
    });
  });

  test('is not for sessions that are named', async () => {
    expect(await command('backfill', '--expiring', sessionIdOf(1))).toMatchObject({
      exitCode: 2,
      stderr: `cc-langfuse: --expiring and ${sessionIdOf(1)}: name sessions or select them, not both\n`,
    });
  });
});
