import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { findOwnHooks } from '../../src/config/claude-hooks.js';
import { version } from '../../src/shared/version.js';
import { SECRET_KEY } from '../support/langfuse-server.js';
import { appendTurn, SESSION } from '../support/lines.js';
import { KEYS, Newcomer } from '../support/newcomer.js';
import { execute, pack, Registry } from '../support/package.js';
import { POLL } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { withSilentServer } from '../support/silent-server.js';

const NEWER = '99.0.0';
const NEWEST = '99.1.0';
let packages: string;
let tarballs: { readonly [version: string]: string };
let newcomer: Newcomer;
let registry: Registry;
let cwd: string;

beforeAll(() => {
  packages = mkdtempSync(join(tmpdir(), 'cc-langfuse-packages-'));
  tarballs = Object.fromEntries([version, NEWER, NEWEST].map((each) => [each, pack(packages, each)]));
});

afterAll(() => rmSync(packages, { recursive: true }));

/** A home and an npm cache with nothing in them. */
beforeEach(async () => {
  newcomer = await Newcomer.arrive();
  registry = await Registry.start();
  cwd = join(newcomer.home, 'project');
  mkdirSync(cwd);
});

afterEach(async () => {
  await registry.stop();
  await newcomer.close();
});

const environment = () => ({
  PATH: process.env.PATH,
  HOME: newcomer.home,
  npm_config_cache: cache(),
  npm_config_registry: registry.url,
  npm_config_update_notifier: 'false',
});
const cache = () => join(newcomer.home, 'npm-cache');
const publish = (each: string) => {
  registry.tarballs[each] = tarballs[each] ?? '';
};
const npx = (...args: string[]) => execute('npx', ['--yes', ...args], { env: environment(), cwd, stdin: SECRET_KEY });
const withKeys = () => ['install', '--yes', ...KEYS, '--base-url', newcomer.server.url];
const current = (...args: string[]) =>
  execute(join(newcomer.program, 'current', 'cli.cjs'), args, { env: environment(), cwd });
const installed = () => readdirSync(newcomer.program).toSorted();
const transcript = () => newcomer.transcriptOf(SESSION);
const turns = () => newcomer.server.roots.map(({ name }) => name).toSorted();

/** Starts a hook as Claude Code does, with nothing but HOME and the `env` block. */
function hook(event: string, env: object = {}) {
  const settings = JSON.parse(newcomer.settings);
  const { command = '' } = findOwnHooks(settings).find((each) => each.event === event) ?? {};
  const payload = { session_id: SESSION, transcript_path: transcript(), hook_event_name: event, source: 'startup' };
  return execute('/bin/sh', ['-c', command], {
    env: { HOME: newcomer.home, ...settings.env, ...env },
    cwd,
    stdin: JSON.stringify(payload),
  });
}

const SILENT = { exitCode: 0, stdout: '', stderr: '' };

test('npx installs from the tarball, and the hooks work after npx has deleted its copy', async () => {
  const tarball = join(cwd, 'cc-langfuse.tgz');
  cpSync(tarballs[version] ?? '', tarball);
  const { exitCode, stdout } = await npx('./cc-langfuse.tgz', ...withKeys());
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: [
      'Connected to project "Embedded" (organization "Acme").',
      `installed ${version} in ${newcomer.program}/${version}`,
      `registered SessionStart, Stop, StopFailure, SessionEnd in ${newcomer.settingsFile}`,
      `Next: start a new Claude Code session. After its first answer it appears at ${newcomer.server.url}/project/embedded/sessions`,
      'If it does not: npx cc-langfuse doctor. To send earlier sessions there: npx cc-langfuse backfill.',
      'Installed.',
      '',
    ].join('\n'),
  });
  for (const copy of [cache(), tarball]) rmSync(copy, { recursive: true });
  await hook('SessionStart');
  await expect.poll(() => newcomer.readRuns(), POLL).toBeDefined();
  appendTurn(transcript(), 1);
  expect(await hook('Stop')).toEqual(SILENT);
  await expect.poll(turns, POLL).toEqual(['Turn 1']);
  expect((await current('doctor')).stdout).toMatch(/\nNothing is broken\.\n$/);
  expect(await current('uninstall', '--yes', '--purge')).toMatchObject({ exitCode: 0, stderr: '' });
  expect(readdirSync(join(newcomer.home, '.claude'))).toEqual(['projects']);
});

test('upgrade replaces the program while a hook runs, which ends with its own version, and no turn is lost', async () => {
  publish(version);
  await npx('cc-langfuse', ...withKeys());
  const settings = newcomer.settings;
  expect((await current('upgrade')).stdout).toBe(`${version} is installed, and npm has nothing newer (${version})\n`);

  let release = () => {};
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  let requests = 0;
  newcomer.server.misbehave = () => {
    requests += 1;
    return requests === 1 ? { after: isReleased, status: 418 } : undefined;
  };
  await hook('SessionStart');
  await expect.poll(() => newcomer.readRuns(), POLL).toBeDefined();
  appendTurn(transcript(), 1);
  const running = hook('Stop', { CC_LANGFUSE_WAIT: '1' });
  await expect.poll(() => requests, POLL).toBe(1);

  publish(NEWER);
  const { exitCode, stdout } = await current('upgrade');
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: `installed ${NEWER} in ${newcomer.program}/${NEWER}, in place of ${version}\n`,
  });
  expect(installed()).toEqual([version, NEWER, 'current'].toSorted());
  expect((await current('--version')).stdout).toBe(`${NEWER}\n`);
  expect(newcomer.settings).toBe(settings);

  // What it needs only now, such as the log, is a module that it has not loaded yet.
  release();
  expect(await running).toEqual(SILENT);
  expect(newcomer.log).toMatchObject([{ level: 'warn' }]);
  appendTurn(transcript(), 2);
  expect(await hook('SessionEnd')).toEqual(SILENT);
  expect(turns()).toEqual(['Turn 1', 'Turn 2']);
  expectEachSentOnce(newcomer.server);
});

test('a newer npx … install replaces the program, an older one does, too, and doctor says if the hooks start an older one', async () => {
  for (const each of [NEWER, NEWEST]) publish(each);
  await npx(`cc-langfuse@${NEWER}`, ...withKeys());
  const settings = newcomer.settings;
  const doctor = await npx('cc-langfuse@latest', 'doctor', '--json');
  const { checks } = JSON.parse(doctor.stdout);
  expect(checks.filter(({ name }: { name: string }) => name === 'hook-program')).toMatchObject([
    {
      status: 'warning',
      message: `${newcomer.settingsFile} starts ${NEWER}, but this is ${NEWEST}`,
      fix: 'npx cc-langfuse install',
    },
  ]);
  const replace = async (to: string) =>
    (await npx(`cc-langfuse@${to}`, 'install', '--yes')).stdout.replace(/^Connected .*\n/, '').split('\n');
  expect((await replace('latest')).slice(0, 2)).toEqual([
    `installed ${NEWEST} in ${newcomer.program}/${NEWEST}, in place of ${NEWER}`,
    `${newcomer.settingsFile} is up to date; nothing was changed in it`,
  ]);
  expect((await replace(NEWER))[0]).toBe(`installed ${NEWER} in ${newcomer.program}/${NEWER}, in place of ${NEWEST}`);
  expect(realpathSync(join(newcomer.program, 'current'))).toBe(realpathSync(join(newcomer.program, NEWER)));
  expect(newcomer.settings).toBe(settings);
});

test('upgrade asks the registry of the user, not one that the project in this directory names', async () => {
  publish(version);
  await npx('cc-langfuse', ...withKeys());
  publish(NEWER);
  const { npm_config_registry: _, ...env } = environment();
  writeFileSync(join(newcomer.home, '.npmrc'), `registry=${registry.url}\n`);
  writeFileSync(join(cwd, '.npmrc'), 'registry=http://127.0.0.1:1/\n');
  const ended = await execute(join(newcomer.program, 'current', 'cli.cjs'), ['upgrade'], { env, cwd });
  expect(ended).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(`^installed ${NEWER} in `) });
});

test('upgrade fails with one line and changes nothing if npm cannot be asked, or nothing is installed', async () => {
  publish(version);
  const { exitCode, stderr } = await npx('cc-langfuse', 'upgrade');
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: 'cc-langfuse: no version is installed to upgrade; run: npx cc-langfuse install\n',
  });
  await npx('cc-langfuse', ...withKeys());
  await registry.stop();
  registry = await Registry.start();
  expect(await current('upgrade')).toEqual({
    exitCode: 1,
    stdout: '',
    stderr: 'cc-langfuse: npm does not say which version is the newest (E404); nothing was changed\n',
  });
  const program = join(newcomer.program, 'current', 'cli.cjs');
  const upgradeWith = (env: object) =>
    execute(process.execPath, [program, 'upgrade'], { env: { ...environment(), ...env }, cwd });
  const startedAt = performance.now();
  await withSilentServer(async (url) => {
    expect(await upgradeWith({ npm_config_registry: url })).toEqual({
      exitCode: 1,
      stdout: '',
      stderr:
        'cc-langfuse: npm has not answered for 9 s; nothing was changed; try again when its registry can be reached\n',
    });
  });
  // npm itself would try for minutes.
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  expect(await upgradeWith({ PATH: '/nowhere' })).toEqual({
    exitCode: 1,
    stdout: '',
    stderr: 'cc-langfuse: npm cannot be run (ENOENT); nothing was changed\n',
  });
  expect(installed()).toEqual([version, 'current'].toSorted());
});
