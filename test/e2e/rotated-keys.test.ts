import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readSettings } from '../../src/config/settings.js';
import { fingerprint } from '../../src/langfuse/open-destination.js';
import { writeFolderSettings } from '../support/claude-session.js';
import { PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { Newcomer } from '../support/newcomer.js';
import { type Environment, run } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { TracedRuns } from '../support/traced-runs.js';

// Langfuse cannot renew a pair of keys: a new pair is created, and the old one expires or is deleted.
const ROTATED = { LANGFUSE_PUBLIC_KEY: 'pk-lf-rotated', LANGFUSE_SECRET_KEY: 'sk-lf-rotated' };
const SAME_PROJECT = { CC_LANGFUSE_PROJECT_KEYS: `${PUBLIC_KEY},pk-lf-rotated,pk-lf-third` };
let runs: TracedRuns;

beforeEach(async () => {
  runs = await TracedRuns.open();
});

afterEach(() => runs.close());

const { LANGFUSE_PUBLIC_KEY: publicKey, LANGFUSE_SECRET_KEY: secretKey } = ROTATED;

/** A session has a turn from before the old keys expired, and one from after that. Then there are new keys, maybe for ingestion only. */
async function rotate(mayRead = true): Promise<void> {
  await runs.once('startup');
  runs.server.keys.delete(`${PUBLIC_KEY}:${SECRET_KEY}`);
  await runs.once('resume');
  expect(runs.turns()).toEqual(['a Turn 1 with words']);
  runs.server.keys.set(`${publicKey}:${secretKey}`, { mayRead });
}

describe('a turn from the time in which the keys were expired', () => {
  const ways: [string, boolean, (env: Environment) => Promise<unknown>, string[]][] = [
    ['the next run of its session', true, (env) => runs.once('resume', { env }), ['a Turn 3 with words']],
    [
      'the next hook of another session',
      true,
      (env) => runs.once('startup', { env }, runs.other),
      ['b Turn 1 with words'],
    ],
    ['a backfill', true, (env) => runs.backfillAll(env), []],
    [
      'a hook with keys for ingestion only',
      false,
      (env) => runs.once('startup', { env }, runs.other),
      ['b Turn 1 with words'],
    ],
  ];

  test.each(ways)('is sent once by %s', async (_, mayRead, send, more) => {
    await rotate(mayRead);
    await send({ ...ROTATED, ...SAME_PROJECT });
    expect(runs.turns().toSorted()).toEqual(['a Turn 1 with words', 'a Turn 2 with words', ...more]);
    expectEachSentOnce(runs.server);
    expect(runs.state[runs.session.id]).not.toHaveProperty('pending');
  });

  test('is sent after a second rotation, too: the setting names the keys of both', async () => {
    await rotate();
    await runs.once('resume', { env: { ...ROTATED, ...SAME_PROJECT } });
    runs.server.keys.delete(`${publicKey}:${secretKey}`);
    await runs.once('resume', { env: { ...ROTATED, ...SAME_PROJECT } });
    runs.server.keys.set('pk-lf-third:sk-lf-third', { mayRead: true });
    const third = { LANGFUSE_PUBLIC_KEY: 'pk-lf-third', LANGFUSE_SECRET_KEY: 'sk-lf-third', ...SAME_PROJECT };
    await runs.once('startup', { env: third }, runs.other);
    expect(runs.turns().toSorted()).toEqual(
      [1, 2, 3, 4].map((n) => `a Turn ${n} with words`).concat('b Turn 1 with words'),
    );
    expectEachSentOnce(runs.server);
  });

  test('is a warning of doctor as long as nobody says that the new keys are of the same project', async () => {
    await rotate();
    const pending = async (env: Environment) => {
      const { stdout } = await run(['doctor', '--json'], { ...runs.env, ...env });
      const { checks } = JSON.parse(stdout) as { checks: { name: string; message: string; fix?: string }[] };
      return checks.find(({ name }) => name === 'pending');
    };
    expect(await pending(ROTATED)).toMatchObject({
      message: expect.stringContaining('for another project'),
      fix: expect.stringContaining('CC_LANGFUSE_PROJECT_KEYS if these are its new keys'),
    });
    expect((await pending({ ...ROTATED, ...SAME_PROJECT }))?.message).not.toContain('another project');
  });

  test('stays on the machine if nobody says that the new keys are of the same project, or only a repository does', async () => {
    await rotate();
    await runs.once('startup', { env: ROTATED }, runs.other);
    const project = join(runs.home, 'work');
    writeFolderSettings(project, SAME_PROJECT);
    const env = { ...runs.env, ...ROTATED, ...SAME_PROJECT, CLAUDE_PROJECT_DIR: project };
    runs.other.addTurn();
    await run(['hook'], env, JSON.stringify(runs.other.payload('Stop')), { cwd: project });
    expect(runs.turns().filter((turn) => turn.startsWith('a'))).toEqual(['a Turn 1 with words']);
  });
});

test('a folder with keys of another project has a destination of its own', async () => {
  const destinationOf = async (keys: Environment) => {
    const { destination } = await readSettings({ ...runs.env, ...SAME_PROJECT, ...keys });
    return destination && fingerprint(destination);
  };
  const [first, rotated, another] = await Promise.all([
    destinationOf({}),
    destinationOf(ROTATED),
    destinationOf({ LANGFUSE_PUBLIC_KEY: 'pk-lf-another', LANGFUSE_SECRET_KEY: 'sk-lf-another' }),
  ]);
  expect(rotated).toBe(first);
  expect(another).not.toBe(first);
});

describe('install with new keys', () => {
  let newcomer: Newcomer;

  beforeEach(async () => {
    newcomer = await Newcomer.arrive();
    await newcomer.install();
    newcomer.server.keys.clear();
  });

  afterEach(() => newcomer.close());

  const variables = () => JSON.parse(newcomer.settings).env;
  const renew = (mayRead = true) => {
    newcomer.server.keys.set(`${publicKey}:${secretKey}`, { mayRead });
    return newcomer.run(['install', '--yes', '--public-key', publicKey, '--secret-key-stdin'], secretKey);
  };

  test('of the same project notes the keys of both, also when it is repeated', async () => {
    const { stdout } = await renew();
    expect(stdout).toContain('The new keys are of the same project: what waits for the old ones is sent with them.\n');
    const keys = { CC_LANGFUSE_PROJECT_KEYS: `${PUBLIC_KEY},${publicKey}` };
    const expected = { ...ROTATED, ...keys, TRACE_TO_LANGFUSE: 'true', LANGFUSE_BASE_URL: newcomer.server.url };
    expect(variables()).toEqual(expected);
    expect((await renew()).stdout).not.toContain('same project');
    expect(variables()).toEqual(expected);
    // The page of the project is known by its first key.
    const pages = readFileSync(join(newcomer.home, '.claude', 'state', 'cc-langfuse_projects.json'), 'utf8');
    expect(Object.keys(JSON.parse(pages))).toHaveLength(1);
  });

  test('that do not tell their project says what to add', async () => {
    expect((await renew(false)).stdout).toContain(`\n"CC_LANGFUSE_PROJECT_KEYS": "${PUBLIC_KEY},${publicKey}"\n`);
    expect(variables()).not.toHaveProperty('CC_LANGFUSE_PROJECT_KEYS');
  });

  test('of another project forgets those of the first one', async () => {
    await renew();
    const another = await Newcomer.arrive();
    try {
      const { exitCode } = await newcomer.install('--base-url', another.server.url);
      expect(exitCode).toBe(0);
      expect(variables()).not.toHaveProperty('CC_LANGFUSE_PROJECT_KEYS');
    } finally {
      await another.close();
    }
  });
});
