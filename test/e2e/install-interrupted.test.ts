import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findOwnHooks } from '../../src/config/claude-hooks.js';
import { version } from '../../src/shared/version.js';
import { appendTurn, SESSION } from '../support/lines.js';
import { mount } from '../support/mount.js';
import { Newcomer } from '../support/newcomer.js';
import { execute } from '../support/package.js';
import { POLL, PROGRAM, run } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';

let newcomer: Newcomer;

beforeEach(async () => {
  newcomer = await Newcomer.arrive();
});

afterEach(() => newcomer.close());

const listFiles = (folder: string) => readdirSync(folder).filter((name) => name !== 'compiled');
/** The files of a program with their contents. What is compiled of them may be missing. */
const read = (folder: string) =>
  Object.fromEntries(listFiles(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
const built = () => read(dirname(PROGRAM));
const current = () => join(newcomer.program, 'current');
const unfinished = () => readdirSync(newcomer.program).filter((name) => name.startsWith('.new-'));

test('whenever install is killed, the program in force is whole, and the next install succeeds', async () => {
  let killed = 0;
  await newcomer.install();
  const { ms } = await newcomer.install();
  for (let n = 1; n <= 12; n += 1) {
    // Damaged, so that it is copied again.
    writeFileSync(join(realpathSync(current()), 'shared.cjs'), `${n}`);
    const before = read(current());
    const { exitCode } = await run(
      ['install', '--yes'],
      { HOME: newcomer.home, CC_LANGFUSE_OTLP_URL: 'http://127.0.0.1:1' },
      '',
      { onStart: async (install) => void (await sleep((n * ms) / 12).then(() => install.kill('SIGKILL'))) },
    );
    if (exitCode === null) killed += 1;
    expect([before, built()]).toContainEqual(read(current()));
    expect(findOwnHooks(JSON.parse(newcomer.settings))).toHaveLength(4);
  }
  expect(killed).toBeGreaterThan(0);
  expect((await newcomer.install()).exitCode).toBe(0);
  expect(read(current())).toEqual(built());
});

test('of several installs at once each succeeds, and the program is there once', async () => {
  const ended = await Promise.all([1, 2, 3, 4].map(() => newcomer.install()));
  expect(ended.map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toEqual(
    ended.map(() => ({ exitCode: 0, stderr: '' })),
  );
  expect(readdirSync(newcomer.program)).toEqual([version, 'current']);
  expect(read(current())).toEqual(built());
  expect(findOwnHooks(JSON.parse(newcomer.settings))).toHaveLength(4);
});

test('while the program is replaced again and again, every hook is silent, and each turn is sent once', async () => {
  await newcomer.install();
  const path = newcomer.transcriptOf(SESSION);
  const { env, ...settings } = JSON.parse(newcomer.settings);
  const hook = (event: string) => {
    const { command = '' } = findOwnHooks(settings).find((each) => each.event === event) ?? {};
    const payload = { session_id: SESSION, transcript_path: path, hook_event_name: event, source: 'startup' };
    return execute('/bin/sh', ['-c', command], {
      env: { HOME: newcomer.home, PATH: process.env.PATH, CC_LANGFUSE_WAIT: '1', ...env },
      cwd: newcomer.home,
      stdin: JSON.stringify(payload),
    });
  };
  await hook('SessionStart');
  await expect.poll(() => newcomer.readRuns(), POLL).toBeDefined();
  let isDone = false;
  let replaced = 0;
  const replacing = (async () => {
    for (; !isDone; replaced += 1) {
      writeFileSync(join(realpathSync(current()), 'shared.cjs'), `${replaced}`);
      await newcomer.install();
    }
  })();
  let turns = 0;
  while (replaced < 6) {
    turns += 1;
    appendTurn(path, turns);
    expect(await hook('Stop')).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  }
  expect(newcomer.server.roots).toHaveLength(turns);
  isDone = true;
  await replacing;
  expectEachSentOnce(newcomer.server);
});

test('on a full disk install fails with one line, and the program in force stays (needs the right to mount)', async ({
  skip,
}) => {
  const unmount = mount(join(newcomer.home, '.claude'), 'size=1600k') ?? skip();
  try {
    expect((await newcomer.install()).exitCode).toBe(0);
    const settings = newcomer.settings;
    writeFileSync(join(current(), 'shared.cjs'), 'damaged');
    const before = read(current());
    expect(await newcomer.install()).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: `cc-langfuse: ${newcomer.program} cannot be written (ENOSPC); nothing was changed\n`,
    });
    expect(read(current())).toEqual(before);
    expect(unfinished()).toEqual([]);
    expect(newcomer.settings).toBe(settings);
  } finally {
    unmount();
  }
});
