import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ClaudeSession, writeFolderSettings } from '../support/claude-session.js';
import { type Environment, LAUNCHER, POLL, run, Workplace } from '../support/program.js';
import { sessionFile } from '../support/state-files.js';

const STATE_DIR = 'CC_LANGFUSE_STATE_DIR';
const ID = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
let workplace: Workplace;
let session: ClaudeSession;
let project: string;
let folder: string;

beforeEach(async () => {
  workplace = await Workplace.open();
  project = join(workplace.home, 'work');
  folder = join(workplace.home, 'own', 'state folder');
  session = new ClaudeSession(ID, workplace.transcriptOf(ID), project);
  session.addTurn();
});

afterEach(() => workplace.close());

function hook(payload: object, env: Environment = {}) {
  const all = { ...workplace.env, CLAUDE_PROJECT_DIR: project, ...env };
  return run(['hook'], all, JSON.stringify(payload), { cwd: workplace.home });
}

const namesIn = (path: string) => (existsSync(path) ? readdirSync(path).toSorted() : []);

test('everything is kept in the folder that the shell names, readable by its owner alone', async () => {
  workplace.server.misbehave = () => ({ status: 500 });
  await hook(session.startPayload('startup'), { [STATE_DIR]: folder });
  await hook(session.payload('Stop'), { [STATE_DIR]: folder, CC_LANGFUSE_TIMEOUT: '1000' });
  expect(namesIn(workplace.stateFolder)).toEqual([]);
  expect(namesIn(folder)).toEqual(
    expect.arrayContaining(['cc-langfuse_due', 'cc-langfuse_hook.log', 'cc-langfuse_sessions']),
  );
  expect(statSync(folder).mode & 0o077).toBe(0);
  for (const name of namesIn(folder)) expect([name, statSync(join(folder, name)).mode & 0o022]).toEqual([name, 0]);
});

test('the table of the docs has every kind of file that is there while something waits, and afterwards', async () => {
  const { server, stateFolder } = workplace;
  const docs = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8');
  const [, table = ''] = /## What the state holds\n(.*?)\n## /s.exec(docs) ?? [];
  const kindOf = (path: string) =>
    path
      .replace('cc-langfuse_', '')
      .replaceAll(ID, '<id>')
      .replaceAll(/[0-9a-f]{16}/g, '<destination>')
      .replace(/slot\d/, 'slot<n>');
  const unknown = () =>
    readdirSync(stateFolder, { recursive: true, encoding: 'utf8' })
      .filter((path) => !statSync(join(stateFolder, path)).isDirectory())
      .map(kindOf)
      .filter(
        (kind) => ![kind, `cc-langfuse_${kind}`, kind.split('/').at(-1)].some((name) => table.includes(`\`${name}\``)),
      );
  await hook(session.startPayload('startup'));
  server.misbehave = () => ({ status: 500 });
  await hook(session.payload('Stop'), { CC_LANGFUSE_TIMEOUT: '1000' });
  expect(unknown()).toEqual([]);
  server.misbehave = () => undefined;
  await hook(session.payload('SessionEnd'));
  expect(unknown()).toEqual([]);
});

test('commands that only look change nothing in it, whatever waits', async () => {
  await hook(session.startPayload('startup'));
  workplace.server.misbehave = () => ({ status: 500 });
  await hook(session.payload('Stop'), { CC_LANGFUSE_TIMEOUT: '1000' });
  session.addTurn();
  workplace.server.misbehave = () => undefined;
  const files = () => {
    const names = readdirSync(workplace.stateFolder, { recursive: true, encoding: 'utf8' });
    const paths = names.map((name) => join(workplace.stateFolder, name)).filter((path) => statSync(path).isFile());
    return Object.fromEntries(paths.map((path) => [path, readFileSync(path, 'utf8')]));
  };
  const before = files();
  for (const args of [
    ['status'],
    ['sessions'],
    ['doctor'],
    ['preview', ID],

    ['backfill', '--all', '--dry-run'],
  ]) {
    const { stdout } = await run(args, workplace.env, '', { cwd: workplace.home });
    expect([args, stdout]).not.toEqual([args, '']);
    // What each session has used is computed once, and what Langfuse asks for it is asked once a day.
    const kept = ['cc-langfuse_index', 'cc-langfuse_causes', 'cc-langfuse_models.json'].map((name) =>
      join(workplace.stateFolder, name),
    );
    const after = Object.fromEntries(Object.entries(files()).filter(([path]) => !kept.includes(path)));
    expect([args, after]).toEqual([args, before]);
  }
});

test('commands that a person runs find it in the settings of the user', async () => {
  await hook(session.payload('Stop'), { [STATE_DIR]: folder });
  const isExported = async () => (await run(['sessions', '--json'], workplace.env)).stdout.includes('"exported"');
  workplace.letIdle();
  expect(await isExported()).toBe(false);
  writeFolderSettings(workplace.home, { [STATE_DIR]: folder });
  expect(await isExported()).toBe(true);
  expect((await run(['mute', ID], workplace.env)).stdout).toContain('muted: ');
  expect(namesIn(workplace.stateFolder)).toEqual([]);
  const { stdout } = await run(['doctor'], workplace.env, '', { cwd: workplace.home });
  expect(stdout).toContain(join(folder, 'cc-langfuse_sessions').replace(workplace.home, '~'));
});

describe('a project', () => {
  test.each(['settings.json', 'settings.local.json'])('cannot move the state, in %s', async (name) => {
    writeFolderSettings(project, { [STATE_DIR]: folder }, name);
    await hook(session.payload('Stop'), { [STATE_DIR]: folder });
    workplace.letIdle();
    for (const args of [['sessions'], ['backfill', '--yes'], ['mute'], ['doctor']])
      await run(args, workplace.env, '', { cwd: project });
    await hook({ ...session.payload('Stop') }, { [STATE_DIR]: folder, TRACE_TO_LANGFUSE: 'false' });
    expect(namesIn(folder)).toEqual([]);
    expect(namesIn(workplace.stateFolder)).toContain('cc-langfuse_sessions');
    expect(workplace.server.roots).toHaveLength(1);
    const { stdout } = await run(['doctor', '--json'], workplace.env, '', { cwd: project });
    expect(JSON.parse(stdout).checks).toContainEqual(
      expect.objectContaining({
        name: 'ignored',
        message: `${STATE_DIR}: is ignored, because ${join(project, '.claude', name)} cannot set it`,
      }),
    );
  });
});

describe("a project that names another folder as Claude Code's", () => {
  test.each(['settings.json', 'settings.local.json'])('moves nothing, and widens nothing, in %s', async (name) => {
    const theirs = { CLAUDE_CONFIG_DIR: folder, CC_LANGFUSE_CAPTURE: 'full', CC_LANGFUSE_REDACT: 'false' };
    writeFolderSettings(workplace.home, { CC_LANGFUSE_CAPTURE: 'metadata' });
    writeFolderSettings(project, theirs, name);
    await hook(session.startPayload('startup'), theirs);
    await hook(session.payload('Stop'), theirs);
    expect(workplace.server.roots.map(({ name: turn, input }) => [turn, input])).toEqual([['Turn 1', undefined]]);
    expect(namesIn(join(folder, 'state'))).toEqual([]);
    expect(workplace.log.map(({ msg }) => msg)).toContain(
      `CLAUDE_CONFIG_DIR: is ignored, because ${join(project, '.claude', name)} cannot set it`,
    );
    expect((await run(['mute', ID], workplace.env)).stdout).toContain('muted: ');
    session.addTurn();
    await hook(session.payload('Stop'), theirs);
    expect(workplace.server.roots).toHaveLength(1);
  });
});

test('a relative path is reported, and the usual folder is used', async () => {
  await hook(session.payload('Stop'), { [STATE_DIR]: 'state' });
  expect(workplace.log.map(({ msg }) => msg)).toContain(`${STATE_DIR}: expected an absolute path`);
  expect(existsSync(join(workplace.home, 'state'))).toBe(false);
  expect(workplace.state[ID]).toBeDefined();
});

test('the launcher looks there for sessions that were traced', async () => {
  const launch = (env: Environment, payload: object) =>
    spawnSync('sh', [LAUNCHER, 'Stop', process.execPath], {
      input: JSON.stringify(payload),
      env: {
        PATH: process.env.PATH,
        ...workplace.env,
        [STATE_DIR]: folder,
        CLAUDE_CODE_SESSION_ID: ID,
        ...env,
      } as NodeJS.ProcessEnv,
    });
  const runs = async () => {
    const { stdout } = await run(['sessions', '--json'], { ...workplace.env, [STATE_DIR]: folder });
    return stdout;
  };
  launch({}, session.payload('Stop'));
  await expect.poll(() => existsSync(sessionFile(folder, ID, 'open')), POLL).toBe(true);
  await expect.poll(runs, POLL).toContain('"exported"');
  launch({ TRACE_TO_LANGFUSE: 'false' }, session.payload('Stop'));
  await expect.poll(() => existsSync(sessionFile(folder, ID, 'open')), POLL).toBe(false);
});

test.each([STATE_DIR, 'CLAUDE_CONFIG_DIR'])(
  'a project that turns tracing off ends the run, though it names another folder: %s',
  async (name) => {
    const theirs = { [name]: folder, TRACE_TO_LANGFUSE: 'false' };
    const open = sessionFile(workplace.stateFolder, ID, 'open');
    for (const start of [
      () => hook(session.payload('Stop'), theirs),
      async () =>
        spawnSync('sh', [LAUNCHER, 'Stop', process.execPath], {
          input: JSON.stringify(session.payload('Stop')),
          env: {
            PATH: process.env.PATH,
            ...workplace.env,
            ...theirs,
            CLAUDE_CODE_SESSION_ID: ID,
            CLAUDE_PROJECT_DIR: project,
          } as NodeJS.ProcessEnv,
        }),
    ]) {
      writeFolderSettings(project, {});
      await hook(session.payload('Stop'));
      expect(existsSync(open)).toBe(true);
      writeFolderSettings(project, theirs);
      await start();
      await expect.poll(() => existsSync(open), POLL).toBe(false);
    }
    expect(namesIn(folder)).toEqual([]);
  },
);

test('doctor warns if others could put something into it', async () => {
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o777);
  const check = async () => {
    const { stdout } = await run(['doctor', '--json'], { ...workplace.env, [STATE_DIR]: folder }, '', {
      cwd: workplace.home,
    });
    const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; fix?: string }[] };
    return checks.find(({ name }) => name === 'state-folder');
  };
  expect(await check()).toMatchObject({ status: 'warning', fix: `chmod 700 '${folder}'` });
  chmodSync(folder, 0o700);
  expect(await check()).toMatchObject({ status: 'ok' });
});
