import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ClaudeSession, writeFolderSettings } from '../support/claude-session.js';
import { LangfuseServer, SECRET_KEY } from '../support/langfuse-server.js';
import { type Environment, LAUNCHER, POLL, run, Workplace } from '../support/program.js';

const COMMAND = 'CC_LANGFUSE_SECRET_KEY_COMMAND';
const OUTPUT = 'what-the-command-says';
let workplace: Workplace;
let session: ClaudeSession;
let project: string;

beforeEach(async () => {
  workplace = await Workplace.open();
  project = join(workplace.home, 'work');
  session = new ClaudeSession(
    'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
    workplace.transcriptOf('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'),
    project,
  );
  writeFolderSettings(project, {});
  workplace.env = { ...workplace.env, LANGFUSE_SECRET_KEY: undefined };
  session.addTurn();
});

afterEach(() => workplace.close());

const path = (name: string) => join(workplace.home, name);
/** A command that leaves a line in a file each time it is run. */
const counting = (print: string) => `echo run >> '${path('runs')}'; ${print}`;
const countRuns = () => (existsSync(path('runs')) ? readFileSync(path('runs'), 'utf8').trim().split('\n').length : 0);

/** Runs a hook with what Claude Code passes on: the shell's variables, and those of all settings. */
function hook(payload: object, ...settings: Environment[]) {
  const env = Object.assign({}, workplace.env, { CLAUDE_PROJECT_DIR: project }, ...settings);
  return run(['hook'], env, JSON.stringify(payload), { cwd: project });
}

/** Everything in the folder of the state. */
function readStateFolder(): string {
  const names = readdirSync(workplace.stateFolder, { recursive: true, withFileTypes: true });
  return names
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('\n');
}

const pending = () => (workplace.state[session.id] as { pending?: { reason: string } }).pending?.reason;

describe("a command in the user's settings", () => {
  test('supplies the key, and is run once by each run that sends, but not at the start of a session', async () => {
    const settings = { [COMMAND]: counting(`echo ${SECRET_KEY}`), CC_LANGFUSE_SCORES: 'true' };
    writeFolderSettings(workplace.home, settings);
    expect(await hook(session.startPayload('startup'), settings)).toMatchObject({ exitCode: 0, stdout: '' });
    expect(countRuns()).toBe(0);
    expect(await hook(session.payload('Stop'), settings)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    expect(workplace.server.observations).toHaveLength(2);
    expect(workplace.server.requests.length).toBeGreaterThan(1);
    expect(countRuns()).toBe(1);
    expect(await hook(session.payload('SessionEnd'), settings)).toMatchObject({ exitCode: 0 });
    expect(countRuns()).toBe(1);
    expect(readStateFolder()).not.toMatch(new RegExp(`${SECRET_KEY}|echo run`));
  });

  test.each([
    ['fails', `echo ${OUTPUT}; echo ${OUTPUT} >&2; exit 3`, 'failed (exit code 3)'],
    ['does not exist', `${OUTPUT} --get`, 'failed (exit code 127)'],
    ['prints nothing', `echo ${OUTPUT} >&2`, 'printed nothing'],
    ['prints more than a key', `echo ${OUTPUT} and more`, 'printed something other than a key'],
    ['never ends', `echo ${OUTPUT}; exec sleep 60`, 'took more than'],
    ['waits for an answer', `echo ${OUTPUT}; read answer; exit 1`, 'failed (exit code 1)'],
  ])('that %s leaves the turn pending, and repeats none of what it prints', async (_, command, reason) => {
    const broken = { [COMMAND]: command, CC_LANGFUSE_TIMEOUT: '5000' };
    writeFolderSettings(workplace.home, broken);
    expect(await hook(session.payload('Stop'), broken)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    expect(pending()).toContain(`${COMMAND} ${reason}`);
    expect(workplace.state[session.id]).toMatchObject({ pending: { code: 'key command' } });
    expect(readStateFolder()).not.toContain(OUTPUT);
    expect(workplace.server.requests).toEqual([]);
    // The next terminal session says so.
    const other = { ...session.payload('Stop'), session_id: 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb' };
    const { stdout } = await hook(other, broken, { CLAUDE_CODE_ENTRYPOINT: 'cli' });
    expect(JSON.parse(stdout).systemMessage).toContain(`${COMMAND} ${reason}`);
    const fixed = { [COMMAND]: `printf %s ${SECRET_KEY}` };
    writeFolderSettings(workplace.home, fixed);
    await hook(session.payload('SessionEnd'), fixed);
    expect(workplace.server.observations).toHaveLength(2);
    expect(pending()).toBeUndefined();
  });

  test('is run after the end of the turn was written down: if it hangs and the hook is killed, another hook sends the turn', async () => {
    const hangs = { [COMMAND]: counting('exec sleep 60') };
    writeFolderSettings(workplace.home, hangs);
    const env = { ...workplace.env, CLAUDE_PROJECT_DIR: project, ...hangs };
    let kill = () => {};
    const killed = run(['hook'], env, JSON.stringify(session.payload('Stop')), {
      cwd: project,
      onStart: (child) => {
        kill = () => child.kill('SIGKILL');
      },
    });
    await expect.poll(countRuns, POLL).toBe(1);
    kill();
    await killed;
    const works = { [COMMAND]: `printf %s ${SECRET_KEY}` };
    writeFolderSettings(workplace.home, works);
    const other = workplace.transcriptOf('bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
    await hook(
      { ...session.payload('SessionEnd'), session_id: basename(other, '.jsonl'), transcript_path: other },
      works,
    );
    expect(workplace.server.roots.map(({ trace }) => trace.sessionId)).toEqual([session.id]);
  });

  test('is what commands that a person runs use, too', async () => {
    writeFolderSettings(workplace.home, { [COMMAND]: counting(`echo ${SECRET_KEY}`) });
    workplace.letIdle();
    const inProject = (...args: string[]) => run(args, workplace.env, '', { cwd: project });
    const report = await inProject('doctor', '--json');
    const { checks } = JSON.parse(report.stdout) as { checks: { name: string; message: string }[] };
    expect(checks.find(({ name }) => name === 'secret-key')?.message).toBe(
      `${COMMAND} prints it (from ${path('.claude/settings.json')})`,
    );
    expect(checks.find(({ name }) => name === 'keys')?.message).toBe('for the project "Embedded"');
    expect(report.stdout).not.toMatch(new RegExp(`echo run|${SECRET_KEY}`));
    expect(countRuns()).toBe(1);
    for (const args of [['preview'], ['sessions'], ['backfill', '--dry-run']]) await inProject(...args);
    expect(countRuns()).toBe(1);
    expect(await inProject('backfill', '--yes')).toMatchObject({ exitCode: 0 });
    expect(countRuns()).toBe(2);
    expect(workplace.server.observations).toHaveLength(2);
  });

  test('that fails stops a backfill before it reads anything, and doctor says so', async () => {
    writeFolderSettings(workplace.home, { [COMMAND]: `echo ${OUTPUT}; exit 9` });
    workplace.letIdle();
    const backfill = await run(['backfill', '--yes', '--all'], workplace.env);
    expect(backfill).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: `cc-langfuse: ${COMMAND} failed (exit code 9)\n`,
    });
    const { stdout, exitCode } = await run(['doctor'], workplace.env);
    expect(exitCode).toBe(1);
    expect(stdout).toContain(`${COMMAND} failed (exit code 9)`);
    expect(stdout).not.toContain(OUTPUT);
  });
});

test.each([
  ['worker', { [COMMAND]: 'echo x' }],
  ['hook', { [COMMAND]: ' ' }],
])('the launcher starts Node as a %s in the terminal with %j instead of a secret key', (expected, settings) => {
  const node = path('node');
  writeFileSync(node, `#!/bin/sh\ncat >/dev/null\necho "$2" > '${path('started')}'\n`, { mode: 0o755 });
  const env = { ...workplace.env, ...settings, CLAUDE_CODE_ENTRYPOINT: 'cli', PATH: process.env.PATH };
  spawnSync('sh', [LAUNCHER, 'Stop', node], { input: '{}', env: env as NodeJS.ProcessEnv });
  return expect
    .poll(() => existsSync(path('started')) && readFileSync(path('started'), 'utf8'), POLL)
    .toBe(`${expected}\n`);
});

describe('a command that a repository names', () => {
  const EVERY_COMMAND = [
    ['doctor'],
    ['doctor', '--json'],
    ['backfill', '--yes'],
    ['backfill', '--yes', '--all', '--force'],
    ['preview'],
    ['sessions'],
    ['mute'],
    ['unmute'],
    ['install', '--yes', '--scope', 'local', '--dry-run'],
    ['uninstall', '--scope', 'local', '--dry-run'],
  ];

  test.each([
    ['settings.json', {}],
    ['settings.local.json', {}],
    ['settings.json', { LANGFUSE_PUBLIC_KEY: 'pk-lf-theirs' }],
    ['settings.json', { LANGFUSE_SECRET_KEY: 'sk-lf-theirs' }],
  ])('in %s is never run, by hooks or by hand, with %j beside it', async (name, more) => {
    const theirs = { [COMMAND]: counting('echo x'), ...more };
    writeFolderSettings(project, theirs, name);
    workplace.letIdle();
    for (const event of ['Stop', 'SessionEnd'] as const) await hook(session.payload(event), theirs);
    await hook(session.payload('Stop'), theirs, { CLAUDE_CODE_ENTRYPOINT: 'cli' });
    for (const args of EVERY_COMMAND) await run(args, workplace.env, '', { cwd: project });
    expect(countRuns()).toBe(0);
  });

  test("does not replace the user's, which is run", async () => {
    const own = { [COMMAND]: `echo ${SECRET_KEY}` };
    const theirs = { [COMMAND]: counting('echo x') };
    writeFolderSettings(workplace.home, own);
    writeFolderSettings(project, theirs);
    await hook(session.payload('Stop'), own, theirs);
    expect(workplace.server.observations).toHaveLength(2);
    expect(countRuns()).toBe(0);
    expect(workplace.log.map(({ msg }) => msg)).toContain(
      `${COMMAND}: is ignored, because ${join(project, '.claude/settings.json')} cannot set it`,
    );
  });

  test('is not run if the repository also says where the settings of the user are', async () => {
    const theirs = { CLAUDE_CONFIG_DIR: join(project, 'theirs', '.claude'), [COMMAND]: counting('echo x') };
    writeFolderSettings(join(project, 'theirs'), theirs);
    writeFolderSettings(project, theirs);
    await hook(session.payload('Stop'), theirs);
    expect(countRuns()).toBe(0);
  });

  test('is not run if only the environment of a hook has it, from wherever', async () => {
    await hook(session.payload('Stop'), { [COMMAND]: counting('echo x') });
    expect(countRuns()).toBe(0);
    expect(workplace.log.map(({ msg }) => msg)).toContain(
      `${COMMAND}: is ignored, because only your own and managed settings can set it`,
    );
  });

  test('is not run after the user has installed keys beside it', async () => {
    writeFolderSettings(project, { [COMMAND]: counting('echo x') }, 'settings.local.json');
    const args = ['install', '--yes', '--scope', 'local', '--public-key', 'pk-lf-embedded', '--secret-key-stdin'];
    const env = { HOME: workplace.home };
    const installed = await run([...args, '--base-url', workplace.server.url], env, SECRET_KEY, { cwd: project });
    expect(installed).toMatchObject({ exitCode: 0 });
    const file = join(project, '.claude', 'settings.local.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"LANGFUSE_SECRET_KEY": "[^"]*"/, '"A": ""'));
    workplace.letIdle();
    for (const args of EVERY_COMMAND) await run(args, env, '', { cwd: project });
    expect(countRuns()).toBe(0);
  });
});

test("the key that a command prints never goes to a repository's server, and no headers do", async () => {
  const theirs = await LangfuseServer.start();
  const own = { [COMMAND]: counting(`echo ${SECRET_KEY}`), CC_LANGFUSE_HEADERS: 'x-gateway=hunter2' };
  writeFolderSettings(workplace.home, own);
  for (const variable of ['LANGFUSE_BASE_URL', 'CC_LANGFUSE_HOST']) {
    writeFolderSettings(project, { [variable]: theirs.url });
    await hook(session.payload('Stop'), own, { [variable]: theirs.url });
    workplace.letIdle();
    for (const args of [['doctor'], ['backfill', '--yes', '--dry-run']])
      await run(args, workplace.env, '', { cwd: project });
  }
  expect(theirs.requests).toEqual([]);
  await theirs.stop();
});
