import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { version } from '../../src/shared/version.js';
import { PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { KEYS, Newcomer } from '../support/newcomer.js';
import { POLL, PROGRAM } from '../support/program.js';

let newcomer: Newcomer;

beforeEach(async () => {
  newcomer = await Newcomer.arrive();
});

afterEach(async () => expect(await newcomer.leave()).toEqual([]));

const findCommands = ({ hooks }: { hooks: { [event: string]: { hooks: { command: string; timeout: number }[] }[] } }) =>
  Object.fromEntries(
    Object.entries(hooks).map(([event, groups]) => [
      event,
      groups.flatMap((group) => group.hooks.map((hook) => hook.command)),
    ]),
  );

/** Makes a folder read-only. Returns what undoes it. A mode does not stop root, but such a mount does. */
function makeReadOnly(folder: string): (() => void) | undefined {
  if (process.getuid?.() !== 0) {
    chmodSync(folder, 0o500);
    return () => chmodSync(folder, 0o700);
  }
  const { status } = spawnSync('mount', ['--bind', '-o', 'ro', folder, folder], { stdio: 'ignore' });
  return status === 0 ? () => void execFileSync('umount', [folder]) : undefined;
}

describe('install --yes', () => {
  test('with --live also registers the hook for turns that run, keeps it when it is run again, and uninstall removes it', async () => {
    await newcomer.install('--live');
    const events = () => Object.keys(JSON.parse(newcomer.settings).hooks ?? {});
    const all = ['SessionStart', 'Stop', 'StopFailure', 'SessionEnd', 'UserPromptSubmit'];
    expect(events()).toEqual(all);
    expect(JSON.parse(newcomer.settings).env).toMatchObject({ CC_LANGFUSE_LIVE: 'true' });
    await newcomer.install();
    expect(events()).toEqual(all);
    await newcomer.run(['uninstall', '--yes']);
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });

  test('with --live and a budget in the file also registers the hook after each tool, and uninstall removes it', async () => {
    const env = { CC_LANGFUSE_BUDGET: 'turn=5' };
    mkdirSync(dirname(newcomer.settingsFile), { recursive: true });
    writeFileSync(newcomer.settingsFile, JSON.stringify({ env }));
    await newcomer.install();
    const events = () => Object.keys(JSON.parse(newcomer.settings).hooks ?? {});
    expect(events()).not.toContain('PostToolUse');
    const { stdout } = await newcomer.install('--live');
    const all = ['SessionStart', 'Stop', 'StopFailure', 'SessionEnd', 'UserPromptSubmit', 'PostToolUse'];
    expect(stdout).toContain(`registered ${all.join(', ')} in ${newcomer.settingsFile}\n`);
    expect(events()).toEqual(all);
    await newcomer.run(['uninstall', '--yes']);
    expect(JSON.parse(newcomer.settings)).toEqual({});
  });

  test('registers the hooks and the keys in a file for its owner alone, and says what to do next', async () => {
    const { exitCode, stdout, stderr } = await newcomer.install();
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toBe(
      [
        'Connected to project "Embedded" (organization "Acme").',
        `installed ${version} in ${newcomer.program}/${version}`,
        `registered SessionStart, Stop, StopFailure, SessionEnd in ${newcomer.settingsFile}`,
        `Next: start a new Claude Code session. After its first answer it appears at ${newcomer.server.url}/project/embedded/sessions`,
        'If it does not: cc-langfuse doctor. To send earlier sessions there: cc-langfuse backfill.',
        'Installed.',
        '',
      ].join('\n'),
    );
    expect(JSON.parse(newcomer.settings).env).toEqual({
      TRACE_TO_LANGFUSE: 'true',
      LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_BASE_URL: newcomer.server.url,
    });
    expect(statSync(newcomer.settingsFile).mode & 0o777).toBe(0o600);
    expect(newcomer.server.requests.map(({ path, spans }) => `${path} ${spans}`)).toEqual([
      '/api/public/projects 0',
      '/api/public/otel/v1/traces 0',
    ]);
  });

  test('registers a command that starts the installed copy without a PATH', async () => {
    await newcomer.install();
    const commands = findCommands(JSON.parse(newcomer.settings));
    expect(Object.keys(commands)).toEqual(['SessionStart', 'Stop', 'StopFailure', 'SessionEnd']);
    for (const [event, [command = '']] of Object.entries(commands))
      expect(command).toMatch(new RegExp(`^exec "${newcomer.program}/current/hook.sh" ${event} "/[^"]*node"$`));
    const [command = ''] = commands.Stop ?? [];
    const input = 'no payload';
    execFileSync('/bin/sh', ['-c', command], { env: { HOME: newcomer.home, TRACE_TO_LANGFUSE: 'true' }, input });
    await expect.poll(() => newcomer.log, POLL).toMatchObject([{ msg: 'stdin is not JSON' }]);
  });

  test('keeps the other settings and a backup, and changes nothing the second time', async () => {
    newcomer.settings = '{\n\t"hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }] }\n}\n';
    chmodSync(newcomer.settingsFile, 0o600);
    const before = newcomer.settings;
    expect((await newcomer.install()).stdout).toContain(`\nbackup: ${newcomer.settingsFile}.cc-langfuse.bak\n`);
    expect(readFileSync(`${newcomer.settingsFile}.cc-langfuse.bak`, 'utf8')).toBe(before);
    expect(findCommands(JSON.parse(newcomer.settings)).Stop).toEqual(['say done', expect.stringContaining('cc')]);
    const after = newcomer.settings;
    expect((await newcomer.install()).stdout).toMatch(/^Connected .*\n.* is up to date; nothing was changed\n/);
    expect(newcomer.settings).toBe(after);
    expect(readFileSync(`${newcomer.settingsFile}.cc-langfuse.bak`, 'utf8')).toBe(before);
  });

  test('keeps the backup from before the first installation if it is run again with other keys', async () => {
    newcomer.settings = '{"model":"opus"}';
    await newcomer.install();
    newcomer.settings = newcomer.settings.replace(PUBLIC_KEY, 'pk-lf-before');
    const { stdout } = await newcomer.install();
    expect(stdout).toMatch(/^Connected .*\nregistered /);
    expect(stdout).not.toContain('backup');
    expect(readFileSync(`${newcomer.settingsFile}.cc-langfuse.bak`, 'utf8')).toBe('{"model":"opus"}');
  });

  test('makes no backup of a file that it created itself', async () => {
    await newcomer.install();
    newcomer.settings = newcomer.settings.replace(PUBLIC_KEY, 'pk-lf-before');
    await newcomer.install();
    expect(readdirSync(join(newcomer.home, '.claude'))).toEqual(['cc-langfuse', 'settings.json', 'state']);
  });

  test('takes missing keys from the settings or the environment, and keeps the names of variables', async () => {
    newcomer.settings = JSON.stringify({
      env: { CC_LANGFUSE_PUBLIC_KEY: PUBLIC_KEY, LANGFUSE_HOST: 'http://127.0.0.1:1' },
    });
    newcomer.env = { ...newcomer.env, LANGFUSE_SECRET_KEY: SECRET_KEY };
    expect((await newcomer.run(['install', '--yes', '--base-url', `${newcomer.server.url}/`])).exitCode).toBe(0);
    expect(JSON.parse(newcomer.settings).env).toEqual({
      CC_LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_HOST: newcomer.server.url,
      TRACE_TO_LANGFUSE: 'true',
      LANGFUSE_SECRET_KEY: SECRET_KEY,
    });
  });

  test("takes the address of any page of a project as the server's", async () => {
    const pasted = `${newcomer.server.url}/project/embedded/traces?peek=1`;
    expect(await newcomer.install('--base-url', pasted)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(newcomer.settings).env.LANGFUSE_BASE_URL).toBe(newcomer.server.url);
    newcomer.settings = newcomer.settings.replace(newcomer.server.url, pasted);
    expect((await newcomer.run(['install', '--yes'])).stdout).toMatch(/^Connected .*\nregistered /);
    expect(JSON.parse(newcomer.settings).env.LANGFUSE_BASE_URL).toBe(newcomer.server.url);
  });

  test('takes keys that may only write, and knows their project only from the address of a page', async () => {
    newcomer.server.keys.set(`${PUBLIC_KEY}:${SECRET_KEY}`, { mayRead: false });
    const connected =
      'Connected: these keys are for ingestion only: they write, and read nothing (403). So Langfuse does not say to which project.\n';
    const { exitCode, stdout, stderr } = await newcomer.install();
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout.startsWith(connected)).toBe(true);
    expect(stdout).toContain(`After its first answer it appears at ${newcomer.server.url}/\n`);
    const page = `${newcomer.server.url}/project/embedded`;
    expect((await newcomer.install('--base-url', page)).stdout).toContain(`it appears at ${page}/sessions\n`);
    const pages = readFileSync(join(newcomer.home, '.claude', 'state', 'cc-langfuse_projects.json'), 'utf8');
    expect(Object.values(JSON.parse(pages))).toEqual([page]);
  });

  test('needs and accepts no keys if CC_LANGFUSE_OTLP_URL names a Collector', async () => {
    const variables = {
      CC_LANGFUSE_OTLP_URL: 'http://collector:4318',
      CC_LANGFUSE_OTLP_HEADERS: 'authorization=Bearer%20hunter2',
    };
    newcomer.settings = JSON.stringify({ env: variables });
    const { stdout: shown } = await newcomer.run(['install', '--dry-run']);
    expect(shown).toContain('"CC_LANGFUSE_OTLP_HEADERS":"[redacted]"');
    expect(shown).not.toMatch(/hunter2|keys/);
    const { exitCode, stdout, stderr } = await newcomer.run(['install']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toContain(
      'Its turns go to the Collector at collector:4318 (CC_LANGFUSE_OTLP_URL).\nTo test that: cc-langfuse doctor.',
    );
    expect(JSON.parse(newcomer.settings).env).toEqual({ ...variables, TRACE_TO_LANGFUSE: 'true' });
    expect(await newcomer.install()).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('CC_LANGFUSE_OTLP_URL is set, so keys and server are not used'),
    });
  });

  test('leaves tracing off if it was turned off, and says so', async () => {
    newcomer.settings = '{"env":{"TRACE_TO_LANGFUSE":"false"}}';
    expect((await newcomer.install()).stdout).toContain(
      'TRACE_TO_LANGFUSE is false in that file: nothing is exported until it is true\n',
    );
    expect(JSON.parse(newcomer.settings).env.TRACE_TO_LANGFUSE).toBe('false');
  });

  test('warns if others can read the keys', async () => {
    newcomer.settings = '{}';
    chmodSync(newcomer.settingsFile, 0o644);
    expect((await newcomer.install()).stderr).toBe(
      `cc-langfuse: ${newcomer.settingsFile} contains the secret key, and others on this machine can read it. Fix: chmod 600 ${newcomer.settingsFile}\n`,
    );
  });

  test('warns of what sends the same turns, and of what stops the hooks', async () => {
    const others = {
      hooks: { Stop: [{ hooks: [{ type: 'command', command: 'pnpm dlx github:elct9620/cc-langfuse' }] }] },
      enabledPlugins: { 'langfuse-observability@langfuse-observability': true, 'cc-langfuse@team': true },
      disableAllHooks: true,
    };
    newcomer.settings = JSON.stringify(others);
    chmodSync(newcomer.settingsFile, 0o600);
    mkdirSync(join(newcomer.home, 'project', '.claude'), { recursive: true });
    const project = join(newcomer.home, 'project', '.claude', 'settings.json');
    writeFileSync(project, '{"enabledPlugins":{"langfuse@langfuse-observability":true}}');
    const local = join(newcomer.home, 'project', '.claude', 'settings.local.json');
    writeFileSync(local, '{"enabledPlugins":{}, // mine\n}');
    const args = ['install', '--yes', ...KEYS, '--base-url', newcomer.server.url];
    const user = newcomer.settingsFile;
    const twice = 'sends the same turns, so each appears twice in Langfuse';
    const warnings = [
      `${local} has comments or trailing commas (line 1, column 23: invalid comment token), so Claude Code ignores it. Fix: remove them from ${local}`,
      `"disableAllHooks" in ${user} stops Claude Code from starting the hooks. Fix: remove "disableAllHooks" from ${user}`,
      `registered in 2 ways (${user}): each turn is still sent once, but 2 processes run. Fix: claude plugin disable cc-langfuse@team`,
      `the original cc-langfuse (${user}) ${twice}. Fix: remove its command from hooks.Stop`,
      `Langfuse's plugin for Claude Code (${user}) ${twice}. Fix: claude plugin disable langfuse-observability@langfuse-observability`,
      `Langfuse's plugin for Claude Code (${project}) ${twice}. Fix: claude plugin disable langfuse@langfuse-observability`,
    ].map((warning) => `cc-langfuse: ${warning}`);
    for (const command of [[...args, '--dry-run'], args]) {
      const { stderr } = await newcomer.run(command, SECRET_KEY, join(newcomer.home, 'project'));
      expect(stderr.split('\n')).toEqual([...warnings, '']);
    }
  });

  test('with --dry-run shows the change without secrets, changes nothing, and asks no server', async () => {
    newcomer.settings = '{\n  "env": {\n    "GITHUB_TOKEN": "hunter2hunter2"\n  }\n}\n';
    const { exitCode, stdout } = await newcomer.install('--dry-run');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`${newcomer.settingsFile} would change:\n@@ line 1\n`);
    expect(stdout).toContain('+    "LANGFUSE_SECRET_KEY": "[redacted]",\n');
    expect(stdout).not.toMatch(/hunter2|[sp]k-lf/);
    expect(newcomer.settings).not.toContain('LANGFUSE');
    expect(readdirSync(join(newcomer.home, '.claude'))).toEqual(['settings.json']);
    expect(newcomer.server.requests).toEqual([]);
  });
});

describe('install --user', () => {
  const user = () => JSON.parse(newcomer.settings).env;

  test('sets the user under the name that the file already uses, none removes it, and uninstall removes it', async () => {
    await newcomer.install('--user', 'dev-7');
    expect(user()).toMatchObject({ LANGFUSE_USER_ID: 'dev-7' });
    await newcomer.install();
    expect(user()).toMatchObject({ LANGFUSE_USER_ID: 'dev-7' });
    newcomer.settings = newcomer.settings.replace('LANGFUSE_USER_ID', 'CC_LANGFUSE_USER_ID');
    await newcomer.install('--user', ' git ');
    expect(user()).toEqual({
      TRACE_TO_LANGFUSE: 'true',
      LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_BASE_URL: newcomer.server.url,
      CC_LANGFUSE_USER_ID: 'git',
    });
    await newcomer.install('--user', 'none');
    expect(Object.keys(user()).filter((name) => name.includes('USER'))).toEqual([]);
    await newcomer.install('--user', 'dev-7');
    await newcomer.run(['uninstall', '--yes']);
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });

  test('is shown by --dry-run', async () => {
    newcomer.settings = '{"env":{"LANGFUSE_USER_ID":"dev-7"}}';
    expect((await newcomer.install('--dry-run', '--user', 'none')).stdout).toMatch(/^-.*"LANGFUSE_USER_ID":"dev-7"/m);
    expect((await newcomer.install('--dry-run', '--user', 'git')).stdout).toMatch(/^\+.*"LANGFUSE_USER_ID":"git"/m);
  });

  test('with a file for everyone takes git, which is each one’s own address', async () => {
    const { exitCode } = await newcomer.run(['install', '--scope', 'project', '--yes', '--user', 'git']);
    expect(exitCode).toBe(0);
    expect(user()).toEqual({ TRACE_TO_LANGFUSE: 'true', LANGFUSE_USER_ID: 'git' });
  });
});

describe('install --scope', () => {
  test('project writes neither keys nor paths', async () => {
    const { exitCode, stdout } = await newcomer.run(['install', '--scope', 'project', '--yes']);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('it contains neither keys nor paths');
    const example = JSON.parse(readFileSync(new URL('../../hooks.example.json', import.meta.url), 'utf8'));
    expect(JSON.parse(readFileSync(join(newcomer.home, '.claude', 'settings.json'), 'utf8'))).toEqual({
      hooks: example.hooks,
      env: { TRACE_TO_LANGFUSE: 'true' },
    });
  });

  test('local warns unless git ignores the file with the keys', async () => {
    const file = join(newcomer.home, '.claude', 'settings.local.json');
    execFileSync('git', ['init', '-q', newcomer.home]);
    expect((await newcomer.install('--scope', 'local')).stderr).toContain(
      `${file} contains the secret key, and git does not ignore it. Fix: add settings.local.json* to ${newcomer.home}/.claude/.gitignore\n`,
    );
    expect(JSON.parse(readFileSync(file, 'utf8')).env.LANGFUSE_SECRET_KEY).toBe(SECRET_KEY);
    writeFileSync(join(newcomer.home, '.claude', '.gitignore'), 'settings.local.json*\n');
    expect((await newcomer.install('--scope', 'local')).stderr).toBe('');
  });

  test.each([
    ['local', 'settings.local.json'],
    ['project', 'settings.json'],
  ])('%s warns unless git ignores the backup', async (scope, name) => {
    const folder = join(newcomer.home, '.claude');
    execFileSync('git', ['init', '-q', newcomer.home]);
    mkdirSync(folder);
    // Claude Code makes git ignore only its own file.
    writeFileSync(join(folder, '.gitignore'), 'settings.local.json\n');
    writeFileSync(join(folder, name), '{}', { mode: 0o600 });
    const install = () =>
      scope === 'local' ? newcomer.install('--scope', scope) : newcomer.run(['install', '--yes', '--scope', scope]);
    expect((await install()).stderr).toBe(
      `cc-langfuse: git does not ignore the backup ${folder}/${name}.cc-langfuse.bak. Fix: add ${name}.cc-langfuse.bak to ${folder}/.gitignore\n`,
    );
    rmSync(join(folder, `${name}.cc-langfuse.bak`));
    writeFileSync(join(folder, '.gitignore'), `settings.local.json\n${name}.cc-langfuse.bak\n`);
    writeFileSync(join(folder, name), '{}');
    expect((await install()).stderr).toBe('');
  });

  test('user warns, too, if the file is a link into a repository', async () => {
    const dotfiles = join(newcomer.home, 'dotfiles');
    mkdirSync(join(dotfiles, 'claude'), { recursive: true });
    execFileSync('git', ['init', '-q', dotfiles]);
    const file = join(dotfiles, 'claude', 'settings.json');
    writeFileSync(file, '{}', { mode: 0o600 });
    mkdirSync(join(newcomer.home, '.claude'));
    symlinkSync(file, newcomer.settingsFile);
    expect((await newcomer.install()).stderr).toBe(
      `cc-langfuse: ${newcomer.settingsFile} contains the secret key, and git does not ignore it. Fix: add settings.json* to ${dotfiles}/claude/.gitignore\n`,
    );
  });

  test('local does not send the user’s keys to a server that the project names', async () => {
    newcomer.env = {
      ...newcomer.env,
      LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_HOST: 'http://127.0.0.1:1',
    };
    newcomer.settings = '{}';
    writeFileSync(
      join(newcomer.home, '.claude', 'settings.local.json'),
      JSON.stringify({ env: { LANGFUSE_BASE_URL: newcomer.server.url, LANGFUSE_PUBLIC_KEY: PUBLIC_KEY } }),
    );
    const { stderr } = await newcomer.run(['install', '--scope', 'local', '--yes']);
    expect(stderr).toBe('cc-langfuse: 127.0.0.1:1 cannot be reached: ECONNREFUSED; nothing was changed\n');
    expect(newcomer.server.requests).toEqual([]);
  });

  test('user writes to CLAUDE_CONFIG_DIR', async () => {
    newcomer.env = { ...newcomer.env, CLAUDE_CONFIG_DIR: join(newcomer.home, 'not', 'yet', 'there') };
    expect((await newcomer.install()).exitCode).toBe(0);
    expect(existsSync(join(newcomer.home, 'not', 'yet', 'there', 'settings.json'))).toBe(true);
  });
});

describe('install fails with one line and writes nothing', () => {
  afterEach(() => expect(existsSync(`${newcomer.settingsFile}.cc-langfuse.bak`)).toBe(false));

  const failing = async (expected: { exitCode: number; message: string | RegExp }, args: string[], stdin = '') => {
    const { exitCode, stdout, stderr } = await newcomer.run(args, stdin);
    expect({ exitCode, stdout }).toEqual({ exitCode: expected.exitCode, stdout: '' });
    expect(stderr).toMatch(/^cc-langfuse: [^\n]+\n$/);
    if (typeof expected.message === 'string') expect(stderr).toBe(`cc-langfuse: ${expected.message}\n`);
    else expect(stderr).toMatch(expected.message);
  };

  test.each<[string, string[], string, string]>([
    [
      'without a terminal',
      ['install'],
      '',
      'there is no terminal to ask in: use --yes, with --public-key and --secret-key-stdin',
    ],
    [
      'if the secret key contains a newline',
      ['install', '--yes', ...KEYS],
      'sk-lf\n1',
      '--secret-key-stdin: expected a key as Langfuse shows it, without spaces or quotes',
    ],
    ['if the secret key is empty', ['install', '--yes', ...KEYS], '\n', '--secret-key-stdin: expected a key'],
  ])('%s', async (_, args, stdin, message) => {
    await failing({ exitCode: 2, message }, args, stdin);
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });

  const withKeys = (url: string, key = PUBLIC_KEY) => [
    'install',
    '--yes',
    '--public-key',
    key,
    '--secret-key-stdin',
    '--base-url',
    url,
  ];

  test('if the server refuses the keys', async () => {
    const { host } = new URL(newcomer.server.url);
    const words = "Invalid credentials. Confirm that you've configured the correct host";
    const message = `Langfuse refused the keys (401) at ${host}: "${words}"; nothing was changed`;
    await failing({ exitCode: 1, message }, withKeys(newcomer.server.url, 'pk-lf-other'), SECRET_KEY);
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });

  test('if nothing listens at the server’s address', async () => {
    const message = '127.0.0.1:1 cannot be reached: ECONNREFUSED; nothing was changed';
    await failing({ exitCode: 1, message }, withKeys('http://127.0.0.1:1'), SECRET_KEY);
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });

  test.each([
    [200, '<!doctype html><title>Welcome</title>'],
    [404, 'not found'],
    [200, '{"data":[]}'],
  ])('if the server is not Langfuse (%i %s)', async (status, body) => {
    const server = createServer((_, response) => response.writeHead(status).end(body));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const message = `${host} answers (${status}), but it is not Langfuse; set LANGFUSE_BASE_URL to the address of your project's page in a browser; nothing was changed`;
    await failing({ exitCode: 1, message }, withKeys(`http://${host}`), SECRET_KEY);
    server.close();
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });

  test.each(['install', 'uninstall'])('if the settings are not JSON (%s)', async (command) => {
    newcomer.settings = '{\n  "model": "opus"\n  "env": {}\n}\n';
    const message = `${newcomer.settingsFile} is not JSON that Claude Code can read (line 3, column 3: comma expected); fix it first`;
    await failing({ exitCode: 1, message }, [command, '--yes', ...(command === 'install' ? KEYS : [])], SECRET_KEY);
    expect(newcomer.settings).toBe('{\n  "model": "opus"\n  "env": {}\n}\n');
  });

  test.each([
    ['{\n  // mine\n  "model": "opus"\n}\n', 'line 2, column 3: invalid comment token'],
    ['{\n  "model": "opus",\n}\n', 'line 3, column 1: property name expected'],
  ])('if Claude Code would ignore the settings (%j)', async (text, problem) => {
    newcomer.settings = text;
    const message = `${newcomer.settingsFile} has comments or trailing commas (${problem}), so Claude Code ignores it; remove them first`;
    await failing({ exitCode: 1, message }, withKeys(newcomer.server.url), SECRET_KEY);
    await failing({ exitCode: 1, message }, ['install', '--dry-run']);
    expect(newcomer.settings).toBe(text);
    expect(newcomer.server.requests).toEqual([]);
  });

  test.each(['install', 'uninstall'])('if a folder is in the place of the file (%s)', async (command) => {
    mkdirSync(newcomer.settingsFile, { recursive: true });
    await failing(
      { exitCode: 1, message: /settings\.json cannot be read \(not a regular file\); replace it with a readable file/ },
      [command, '--yes'],
    );
  });

  test('if the settings have another shape than Claude Code’s', async () => {
    newcomer.settings = '{"hooks":{"Stop":"say done"}}';
    const message = `${newcomer.settingsFile}: hooks.Stop is not what Claude Code expects; fix or remove it first`;
    await failing({ exitCode: 1, message }, withKeys(newcomer.server.url), SECRET_KEY);
  });

  test('if the home is read-only (for root this needs the right to mount)', async ({ skip }) => {
    newcomer.settings = '{}';
    const undo = makeReadOnly(join(newcomer.settingsFile, '..')) ?? skip();
    try {
      const message = new RegExp(
        `${newcomer.program} cannot be written \\((?:EROFS|EACCES)\\); nothing was changed\n$`,
      );
      await failing({ exitCode: 1, message }, withKeys(newcomer.server.url), SECRET_KEY);
      expect(newcomer.settings).toBe('{}');
    } finally {
      undo();
    }
  });

  test('if the configuration folder is a file', async () => {
    newcomer.env = { ...newcomer.env, CLAUDE_CONFIG_DIR: PROGRAM };
    await failing(
      { exitCode: 1, message: /cli\.cjs\/settings\.json cannot be read \(ENOTDIR\)/ },
      withKeys(newcomer.server.url),
      SECRET_KEY,
    );
  });
});
