import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { KEYS, Newcomer } from '../support/newcomer.js';
import { PROGRAM } from '../support/program.js';

let newcomer: Newcomer;

beforeEach(async () => {
  newcomer = await Newcomer.arrive();
});

afterEach(async () => expect(await newcomer.leave()).toEqual([]));

const commandsIn = ({ hooks }: { hooks: { [event: string]: { hooks: { command: string; timeout: number }[] }[] } }) =>
  Object.fromEntries(
    Object.entries(hooks).map(([event, groups]) => [
      event,
      groups.flatMap((group) => group.hooks.map((hook) => hook.command)),
    ]),
  );

/** Makes a folder read-only; gives what undoes it. Root may write where the mode forbids it, but not into such a mount. */
function readOnly(folder: string): (() => void) | undefined {
  if (process.getuid?.() !== 0) {
    chmodSync(folder, 0o500);
    return () => chmodSync(folder, 0o700);
  }
  const { status } = spawnSync('mount', ['--bind', '-o', 'ro', folder, folder], { stdio: 'ignore' });
  return status === 0 ? () => void execFileSync('umount', [folder]) : undefined;
}

describe('install, for scripts', () => {
  test('registers the hooks with the keys, in a file for its owner alone, and says what comes next', async () => {
    const { exitCode, stdout, stderr } = await newcomer.install();
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toBe(
      [
        `${newcomer.settingsFile} registers SessionStart, Stop, StopFailure, SessionEnd`,
        `Next: start a new session of Claude Code. After its first answer it is at ${newcomer.server.url}/project/embedded/sessions`,
        'If it is not: cc-langfuse doctor. What ran before: cc-langfuse backfill.',
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
    expect(newcomer.server.requests.map(({ path }) => path)).toEqual(['/api/public/projects']);
  });

  test('its command starts this program without a search path', async () => {
    await newcomer.install();
    const commands = commandsIn(JSON.parse(newcomer.settings));
    expect(Object.keys(commands)).toEqual(['SessionStart', 'Stop', 'StopFailure', 'SessionEnd']);
    const [command = ''] = commands.Stop ?? [];
    expect(
      execFileSync('/bin/sh', ['-c', command.replace(' hook', ' --version')], { env: {}, encoding: 'utf8' }),
    ).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(command).toContain(`"${PROGRAM}" hook`);
  });

  test('keeps what is there, a copy of it beside it, and a second time changes nothing', async () => {
    newcomer.settings = '{\n\t"hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }] }\n}\n';
    chmodSync(newcomer.settingsFile, 0o600);
    const before = newcomer.settings;
    expect((await newcomer.install()).stdout).toContain(`as it was before: ${newcomer.settingsFile}.cc-langfuse.bak\n`);
    expect(readFileSync(`${newcomer.settingsFile}.cc-langfuse.bak`, 'utf8')).toBe(before);
    expect(commandsIn(JSON.parse(newcomer.settings)).Stop).toEqual(['say done', expect.stringContaining('cc')]);
    const after = newcomer.settings;
    expect((await newcomer.install()).stdout).toMatch(/^.* has it all already; nothing was changed\n/);
    expect(newcomer.settings).toBe(after);
    expect(readFileSync(`${newcomer.settingsFile}.cc-langfuse.bak`, 'utf8')).toBe(before);
  });

  test('takes what is not given from the settings or the environment, and writes it under the name that counts', async () => {
    newcomer.settings = JSON.stringify({
      env: { CC_LANGFUSE_PUBLIC_KEY: PUBLIC_KEY, LANGFUSE_HOST: 'http://127.0.0.1:1' },
    });
    newcomer.env = { LANGFUSE_SECRET_KEY: SECRET_KEY };
    expect((await newcomer.run(['install', '--yes', '--base-url', `${newcomer.server.url}/`])).exitCode).toBe(0);
    expect(JSON.parse(newcomer.settings).env).toEqual({
      CC_LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_HOST: newcomer.server.url,
      TRACE_TO_LANGFUSE: 'true',
      LANGFUSE_SECRET_KEY: SECRET_KEY,
    });
  });

  test('asks for no keys where a Collector is named, and takes none', async () => {
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
      'Its turns go to the Collector at collector:4318, by CC_LANGFUSE_OTLP_URL\nTo try that: cc-langfuse doctor.',
    );
    expect(JSON.parse(newcomer.settings).env).toEqual({ ...variables, TRACE_TO_LANGFUSE: 'true' });
    expect(await newcomer.install()).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('CC_LANGFUSE_OTLP_URL is set, with which keys and server are not used'),
    });
  });

  test('leaves tracing off where it was turned off, and says so', async () => {
    newcomer.settings = '{"env":{"TRACE_TO_LANGFUSE":"false"}}';
    expect((await newcomer.install()).stdout).toContain(
      'TRACE_TO_LANGFUSE is false there: nothing is exported until it is true\n',
    );
    expect(JSON.parse(newcomer.settings).env.TRACE_TO_LANGFUSE).toBe('false');
  });

  test('says whether others could read the keys', async () => {
    newcomer.settings = '{}';
    chmodSync(newcomer.settingsFile, 0o644);
    expect((await newcomer.install()).stderr).toBe(
      `cc-langfuse: ${newcomer.settingsFile} holds the secret key, and others on this machine can read it: chmod 600 ${newcomer.settingsFile}\n`,
    );
  });

  test('says what sends the same turns, and what keeps hooks from being started', async () => {
    const others = {
      hooks: { Stop: [{ hooks: [{ type: 'command', command: 'pnpm dlx github:elct9620/cc-langfuse' }] }] },
      enabledPlugins: { 'langfuse-observability@langfuse-observability': true, 'cc-langfuse@team': true },
      disableAllHooks: true,
    };
    newcomer.settings = JSON.stringify(others);
    chmodSync(newcomer.settingsFile, 0o600);
    mkdirSync(join(newcomer.home, 'project', '.claude'), { recursive: true });
    const local = join(newcomer.home, 'project', '.claude', 'settings.local.json');
    writeFileSync(local, '{"enabledPlugins":{"langfuse@langfuse-observability":true}, // mine\n}');
    const args = ['install', '--yes', ...KEYS, '--base-url', newcomer.server.url];
    const { stderr } = await newcomer.run(args, SECRET_KEY, join(newcomer.home, 'project'));
    const twice = 'sends the same turns, which will come twice';
    expect(stderr.split('\n')).toEqual([
      `cc-langfuse: ${newcomer.settingsFile}: the original cc-langfuse (hooks.Stop) ${twice}; remove its command from hooks.Stop`,
      `cc-langfuse: ${newcomer.settingsFile}: Langfuse's plugin for Claude Code (enabledPlugins.langfuse-observability@langfuse-observability) ${twice}; claude plugin disable langfuse-observability@langfuse-observability`,
      `cc-langfuse: ${newcomer.settingsFile}: the plugin cc-langfuse@team starts cc-langfuse, too; one of both will do: claude plugin disable cc-langfuse@team`,
      `cc-langfuse: ${newcomer.settingsFile}: disableAllHooks is set, with which Claude Code starts no hook; remove it`,
      `cc-langfuse: ${local}: Langfuse's plugin for Claude Code (enabledPlugins.langfuse@langfuse-observability) ${twice}; claude plugin disable langfuse@langfuse-observability`,
      `cc-langfuse: ${local}: has comments or trailing commas, with which Claude Code may refuse it; it wants plain JSON`,
      '',
    ]);
  });

  test('--dry-run shows what would change without the secrets in it, changes nothing, and asks no server', async () => {
    newcomer.settings = '{\n  "env": {\n    "GITHUB_TOKEN": "hunter2hunter2"\n  }\n}\n';
    const { exitCode, stdout } = await newcomer.install('--dry-run');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`${newcomer.settingsFile} would become:\n@@ line 1\n`);
    expect(stdout).toContain('+    "LANGFUSE_SECRET_KEY": "[redacted]",\n');
    expect(stdout).not.toMatch(/hunter2|[sp]k-lf/);
    expect(newcomer.settings).not.toContain('LANGFUSE');
    expect(readdirSync(join(newcomer.home, '.claude'))).toEqual(['settings.json']);
    expect(newcomer.server.requests).toEqual([]);
  });
});

describe('install for others and elsewhere', () => {
  test('a project’s file gets neither keys nor paths', async () => {
    const { exitCode, stdout } = await newcomer.run(['install', '--scope', 'project', '--yes']);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('it has neither keys nor paths');
    const example = JSON.parse(readFileSync(new URL('../../hooks.example.json', import.meta.url), 'utf8'));
    expect(JSON.parse(readFileSync(join(newcomer.home, '.claude', 'settings.json'), 'utf8'))).toEqual({
      hooks: example.hooks,
      env: { TRACE_TO_LANGFUSE: 'true' },
    });
  });

  test('local settings hold keys, which git must not get to see', async () => {
    const file = join(newcomer.home, '.claude', 'settings.local.json');
    execFileSync('git', ['init', '-q', newcomer.home]);
    expect((await newcomer.install('--scope', 'local')).stderr).toContain(
      `${file} holds the secret key, and git does not ignore it: add settings.local.json* to ${newcomer.home}/.claude/.gitignore\n`,
    );
    expect(JSON.parse(readFileSync(file, 'utf8')).env.LANGFUSE_SECRET_KEY).toBe(SECRET_KEY);
    writeFileSync(join(newcomer.home, '.claude', '.gitignore'), 'settings.local.json*\n');
    expect((await newcomer.install('--scope', 'local')).stderr).toBe('');
  });

  test('so do the user’s, where they are a link into a repository', async () => {
    const dotfiles = join(newcomer.home, 'dotfiles');
    mkdirSync(join(dotfiles, 'claude'), { recursive: true });
    execFileSync('git', ['init', '-q', dotfiles]);
    const file = join(dotfiles, 'claude', 'settings.json');
    writeFileSync(file, '{}', { mode: 0o600 });
    mkdirSync(join(newcomer.home, '.claude'));
    symlinkSync(file, newcomer.settingsFile);
    expect((await newcomer.install()).stderr).toBe(
      `cc-langfuse: ${newcomer.settingsFile} holds the secret key, and git does not ignore it: add settings.json* to ${dotfiles}/claude/.gitignore\n`,
    );
  });

  test('the user’s keys do not go to a server that a project names', async () => {
    newcomer.env = {
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

  test('CLAUDE_CONFIG_DIR moves the user’s', async () => {
    newcomer.env = { CLAUDE_CONFIG_DIR: join(newcomer.home, 'not', 'yet', 'there') };
    expect((await newcomer.install()).exitCode).toBe(0);
    expect(existsSync(join(newcomer.home, 'not', 'yet', 'there', 'settings.json'))).toBe(true);
  });
});

describe('what cannot be installed so is told in one line, and nothing is written', () => {
  afterEach(() => expect(existsSync(`${newcomer.settingsFile}.cc-langfuse.bak`)).toBe(false));

  const failing = async (expected: { exitCode: number; told: string | RegExp }, args: string[], stdin = '') => {
    const { exitCode, stdout, stderr } = await newcomer.run(args, stdin);
    expect({ exitCode, stdout }).toEqual({ exitCode: expected.exitCode, stdout: '' });
    expect(stderr).toMatch(/^cc-langfuse: [^\n]+\n$/);
    if (typeof expected.told === 'string') expect(stderr).toBe(`cc-langfuse: ${expected.told}\n`);
    else expect(stderr).toMatch(expected.told);
  };

  test.each<[string, string[], string, string]>([
    [
      'no terminal',
      ['install'],
      '',
      'there is no terminal to ask in: give --yes, with --public-key and --secret-key-stdin',
    ],
    [
      'no keys',
      ['install', '--yes'],
      '',
      '--yes needs keys: give --public-key and --secret-key-stdin, or set them in the environment',
    ],
    [
      'a key with a space',
      ['install', '--yes', '--public-key', 'pk lf'],
      '',
      '--public-key: expected a key as Langfuse shows it, without spaces or quotes',
    ],
    [
      'a secret key with a newline in it',
      ['install', '--yes', ...KEYS],
      'sk-lf\n1',
      '--secret-key-stdin: expected a key as Langfuse shows it, without spaces or quotes',
    ],
    [
      'a key with the quotes that it had elsewhere',
      ['install', '--yes', '--public-key', '"pk-lf-1"'],
      '',
      '--public-key: expected a key as Langfuse shows it, without spaces or quotes',
    ],
    ['an empty secret key', ['install', '--yes', ...KEYS], '\n', '--secret-key-stdin: expected a key'],
    [
      'keys in each other’s place',
      ['install', '--yes', '--public-key', 'sk-lf-1'],
      '',
      '--public-key: that is a secret key; the public one begins with pk-',
    ],
    [
      'a URL that is none',
      ['install', '--yes', '--base-url', 'cloud.langfuse.com'],
      '',
      '--base-url: expected an http or https URL, such as https://cloud.langfuse.com',
    ],
    ['a scope that is none', ['install', '--scope', 'managed'], '', '--scope managed: expected user, project, local'],
    [
      'keys for a committed file',
      ['install', '--scope', 'project', ...KEYS],
      'sk',
      '--scope project: its file is committed and gets no keys; give them with --scope user or local',
    ],
    ['an operand', ['install', 'now'], '', 'now: install takes no operands; see install --help'],
    ['an option that is none', ['uninstall', '--force'], '', "Unknown option '--force'; --help lists the options"],
  ])('%s', async (_, args, stdin, told) => {
    await failing({ exitCode: 2, told }, args, stdin);
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

  test('keys that the server refuses', async () => {
    const { host } = new URL(newcomer.server.url);
    const told = `Langfuse refused the keys (401) at ${host}; nothing was changed`;
    await failing({ exitCode: 1, told }, withKeys(newcomer.server.url, 'pk-lf-other'), SECRET_KEY);
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });

  test('a server that is not there', async () => {
    const told = '127.0.0.1:1 cannot be reached: ECONNREFUSED; nothing was changed';
    await failing({ exitCode: 1, told }, withKeys('http://127.0.0.1:1'), SECRET_KEY);
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });

  test.each([
    [200, '<!doctype html><title>Welcome</title>'],
    [404, 'not found'],
    [200, '{"data":[]}'],
  ])('a server that is no Langfuse (%i %s)', async (status, body) => {
    const server = createServer((_, response) => response.writeHead(status).end(body));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const told = `${host} answers (${status}), but it is not Langfuse; nothing was changed`;
    await failing({ exitCode: 1, told }, withKeys(`http://${host}`), SECRET_KEY);
    server.close();
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });

  test.each(['install', 'uninstall'])('%s into settings that are no JSON', async (command) => {
    newcomer.settings = '{\n  "model": "opus"\n  "env": {}\n}\n';
    const told = `${newcomer.settingsFile} is no JSON that Claude Code could read (line 3, column 3: comma expected); correct it first`;
    await failing({ exitCode: 1, told }, [command, '--yes', ...(command === 'install' ? KEYS : [])], SECRET_KEY);
    expect(newcomer.settings).toBe('{\n  "model": "opus"\n  "env": {}\n}\n');
  });

  test.each(['install', 'uninstall'])('%s where a folder stands in the place of the file', async (command) => {
    mkdirSync(newcomer.settingsFile, { recursive: true });
    await failing({ exitCode: 1, told: /settings\.json cannot be read \(not a regular file\); make it a file/ }, [
      command,
      '--yes',
    ]);
  });

  test('settings of another shape than Claude Code’s', async () => {
    newcomer.settings = '{"hooks":{"Stop":"say done"}}';
    const told = `${newcomer.settingsFile}: hooks.Stop is not as Claude Code has it; correct or remove it first`;
    await failing({ exitCode: 1, told }, withKeys(newcomer.server.url), SECRET_KEY);
  });

  test('a home that is read-only', async ({ skip }) => {
    newcomer.settings = '{}';
    const undo =
      readOnly(join(newcomer.settingsFile, '..')) ?? skip('root needs the right to mount to have a read-only folder');
    try {
      const told = new RegExp(
        `${newcomer.settingsFile} cannot be written \\((?:EROFS|EACCES)\\); nothing was changed\n$`,
      );
      await failing({ exitCode: 1, told }, withKeys(newcomer.server.url), SECRET_KEY);
      expect(newcomer.settings).toBe('{}');
    } finally {
      undo();
    }
  });

  test('a home that is a file', async () => {
    newcomer.env = { CLAUDE_CONFIG_DIR: PROGRAM };
    await failing(
      { exitCode: 1, told: /cli\.cjs\/settings\.json cannot be read \(ENOTDIR\)/ },
      withKeys(newcomer.server.url),
      SECRET_KEY,
    );
  });
});
