import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { PROGRAM, run, Workplace } from '../support/program.js';
import { runInTerminal } from '../support/terminal.js';

let workplace: Workplace;
let settingsFile: string;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { HOME: workplace.home };
  settingsFile = join(workplace.home, '.claude', 'settings.json');
});

afterEach(async () => {
  const sent = workplace.server.observations;
  await workplace.close();
  expect(sent, 'nothing is exported by setting up').toEqual([]);
});

const cli = (args: readonly string[], stdin = '') => run(args, workplace.env, stdin, { cwd: workplace.home });
const KEYS = ['--public-key', PUBLIC_KEY, '--secret-key-stdin'];
const install = (...args: string[]) =>
  cli(['install', '--yes', ...KEYS, '--base-url', workplace.server.url, ...args], `${SECRET_KEY}\n`);
const put = (text: string) => {
  mkdirSync(join(settingsFile, '..'), { recursive: true });
  writeFileSync(settingsFile, text);
};
const read = () => readFileSync(settingsFile, 'utf8');
const json = (file = settingsFile) => JSON.parse(readFileSync(file, 'utf8'));
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
    const { exitCode, stdout, stderr } = await install();
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toBe(
      [
        `${settingsFile} registers SessionStart, Stop, StopFailure, SessionEnd`,
        `Next: start a new session of Claude Code. After its first answer it is at ${workplace.server.url}/project/embedded/sessions`,
        'If it is not: cc-langfuse doctor. What ran before: cc-langfuse backfill.',
        '',
      ].join('\n'),
    );
    expect(json().env).toEqual({
      TRACE_TO_LANGFUSE: 'true',
      LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_BASE_URL: workplace.server.url,
    });
    expect(statSync(settingsFile).mode & 0o777).toBe(0o600);
    expect(workplace.server.requests.map(({ path }) => path)).toEqual(['/api/public/projects']);
  });

  test('its command starts this program without a search path', async () => {
    await install();
    const commands = commandsIn(json());
    expect(Object.keys(commands)).toEqual(['SessionStart', 'Stop', 'StopFailure', 'SessionEnd']);
    const [command = ''] = commands.Stop ?? [];
    expect(
      execFileSync('/bin/sh', ['-c', command.replace(' hook', ' --version')], { env: {}, encoding: 'utf8' }),
    ).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(command).toContain(`"${PROGRAM}" hook`);
  });

  test('keeps what is there, a copy of it beside it, and a second time changes nothing', async () => {
    put('{\n\t"hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }] }\n}\n');
    chmodSync(settingsFile, 0o600);
    const before = read();
    expect((await install()).stdout).toContain(`as it was before: ${settingsFile}.cc-langfuse.bak\n`);
    expect(readFileSync(`${settingsFile}.cc-langfuse.bak`, 'utf8')).toBe(before);
    expect(commandsIn(json()).Stop).toEqual(['say done', expect.stringContaining('cc')]);
    const after = read();
    expect((await install()).stdout).toMatch(/^.* has it all already; nothing was changed\n/);
    expect(read()).toBe(after);
    expect(readFileSync(`${settingsFile}.cc-langfuse.bak`, 'utf8')).toBe(before);
  });

  test('takes what is not given from the settings or the environment, and writes it under the name that counts', async () => {
    put(JSON.stringify({ env: { CC_LANGFUSE_PUBLIC_KEY: PUBLIC_KEY, LANGFUSE_HOST: 'http://127.0.0.1:1' } }));
    workplace.env = { ...workplace.env, LANGFUSE_SECRET_KEY: SECRET_KEY };
    expect((await cli(['install', '--yes', '--base-url', `${workplace.server.url}/`])).exitCode).toBe(0);
    expect(json().env).toEqual({
      CC_LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_HOST: workplace.server.url,
      TRACE_TO_LANGFUSE: 'true',
      LANGFUSE_SECRET_KEY: SECRET_KEY,
    });
  });

  test('leaves tracing off where it was turned off, and says so', async () => {
    put('{"env":{"TRACE_TO_LANGFUSE":"false"}}');
    expect((await install()).stdout).toContain(
      'TRACE_TO_LANGFUSE is false there: nothing is exported until it is true\n',
    );
    expect(json().env.TRACE_TO_LANGFUSE).toBe('false');
  });

  test('says whether others could read the keys', async () => {
    put('{}');
    chmodSync(settingsFile, 0o644);
    expect((await install()).stderr).toBe(
      `cc-langfuse: ${settingsFile} holds the secret key, and others on this machine can read it: chmod 600 ${settingsFile}\n`,
    );
  });

  test('says what sends the same turns, and what keeps hooks from being started', async () => {
    const others = {
      hooks: { Stop: [{ hooks: [{ type: 'command', command: 'pnpm dlx github:elct9620/cc-langfuse' }] }] },
      enabledPlugins: { 'langfuse-observability@langfuse-observability': true, 'cc-langfuse@team': true },
      disableAllHooks: true,
    };
    put(JSON.stringify(others));
    chmodSync(settingsFile, 0o600);
    mkdirSync(join(workplace.home, 'project', '.claude'), { recursive: true });
    const local = join(workplace.home, 'project', '.claude', 'settings.local.json');
    writeFileSync(local, '{"enabledPlugins":{"langfuse@langfuse-observability":true}, // mine\n}');
    const { stderr } = await run(
      ['install', '--yes', ...KEYS, '--base-url', workplace.server.url],
      workplace.env,
      SECRET_KEY,
      { cwd: join(workplace.home, 'project') },
    );
    const twice = 'sends the same turns, which will come twice';
    expect(stderr.split('\n')).toEqual([
      `cc-langfuse: ${settingsFile}: the first cc-langfuse (hooks.Stop) ${twice}; take its command out of hooks.Stop`,
      `cc-langfuse: ${settingsFile}: Langfuse's plugin for Claude Code (enabledPlugins.langfuse-observability@langfuse-observability) ${twice}; claude plugin disable langfuse-observability@langfuse-observability`,
      `cc-langfuse: ${settingsFile}: the plugin cc-langfuse@team starts cc-langfuse, too; one of both will do: claude plugin disable cc-langfuse@team`,
      `cc-langfuse: ${settingsFile}: disableAllHooks is set, with which Claude Code starts no hook; remove it`,
      `cc-langfuse: ${local}: Langfuse's plugin for Claude Code (enabledPlugins.langfuse@langfuse-observability) ${twice}; claude plugin disable langfuse@langfuse-observability`,
      `cc-langfuse: ${local}: has comments or trailing commas, with which Claude Code may refuse it; it wants plain JSON`,
      '',
    ]);
  });

  test('--dry-run shows what would change without the secrets in it, changes nothing, and asks no server', async () => {
    put('{\n  "env": {\n    "GITHUB_TOKEN": "hunter2hunter2"\n  }\n}\n');
    const { exitCode, stdout } = await install('--dry-run');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`${settingsFile} would become:\n@@ line 1\n`);
    expect(stdout).toContain('+    "LANGFUSE_SECRET_KEY": "[redacted]",\n');
    expect(stdout).not.toMatch(/hunter2|[sp]k-lf/);
    expect(read()).not.toContain('LANGFUSE');
    expect(readdirSync(join(workplace.home, '.claude'))).toEqual(['settings.json']);
    expect(workplace.server.requests).toEqual([]);
  });
});

describe('install for others and elsewhere', () => {
  test('a project’s file gets neither keys nor paths', async () => {
    const { exitCode, stdout } = await cli(['install', '--scope', 'project', '--yes']);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('it has neither keys nor paths');
    const example = JSON.parse(readFileSync(new URL('../../hooks.example.json', import.meta.url), 'utf8'));
    expect(json(join(workplace.home, '.claude', 'settings.json'))).toEqual({
      hooks: example.hooks,
      env: { TRACE_TO_LANGFUSE: 'true' },
    });
  });

  test('local settings hold keys, which git must not get to see', async () => {
    const file = join(workplace.home, '.claude', 'settings.local.json');
    execFileSync('git', ['init', '-q', workplace.home]);
    expect((await install('--scope', 'local')).stderr).toContain(
      `${file} holds the secret key, and git does not ignore it: add .claude/settings.local.json* to .gitignore\n`,
    );
    expect(json(file).env.LANGFUSE_SECRET_KEY).toBe(SECRET_KEY);
    writeFileSync(join(workplace.home, '.gitignore'), '.claude/settings.local.json*\n');
    expect((await install('--scope', 'local')).stderr).toBe('');
  });

  test('CLAUDE_CONFIG_DIR moves the user’s', async () => {
    workplace.env = { ...workplace.env, CLAUDE_CONFIG_DIR: join(workplace.home, 'not', 'yet', 'there') };
    expect((await install()).exitCode).toBe(0);
    expect(existsSync(join(workplace.home, 'not', 'yet', 'there', 'settings.json'))).toBe(true);
  });
});

describe('what cannot be installed so is told in one line, and nothing is written', () => {
  afterEach(() => expect(existsSync(`${settingsFile}.cc-langfuse.bak`)).toBe(false));

  const failing = async (expected: { exitCode: number; told: string | RegExp }, args: string[], stdin = '') => {
    const { exitCode, stdout, stderr } = await cli(args, stdin);
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
      '--public-key: expected a key, without spaces in it',
    ],
    [
      'a secret key with a newline in it',
      ['install', '--yes', ...KEYS],
      'sk-lf\n1',
      '--secret-key-stdin: expected a key, without spaces in it',
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
    ['an option that is none', ['uninstall', '--force'], '', "Unknown option '--force'; --help tells which there are"],
  ])('%s', async (_, args, stdin, told) => {
    await failing({ exitCode: 2, told }, args, stdin);
    expect(existsSync(settingsFile)).toBe(false);
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
    const { host } = new URL(workplace.server.url);
    const told = `Langfuse refused the keys (401) at ${host}; nothing was changed`;
    await failing({ exitCode: 1, told }, withKeys(workplace.server.url, 'pk-lf-other'), SECRET_KEY);
    expect(existsSync(settingsFile)).toBe(false);
  });

  test('a server that is not there', async () => {
    const told = '127.0.0.1:1 cannot be reached: ECONNREFUSED; nothing was changed';
    await failing({ exitCode: 1, told }, withKeys('http://127.0.0.1:1'), SECRET_KEY);
    expect(existsSync(settingsFile)).toBe(false);
  });

  test.each([
    [200, '<!doctype html><title>Welcome</title>'],
    [404, 'not found'],
    [200, '{"data":[]}'],
  ])('a server that is no Langfuse (%i %s)', async (status, body) => {
    const server = createServer((_, response) => response.writeHead(status).end(body));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const told = `${host} answers (${status}), but not as Langfuse does; nothing was changed`;
    await failing({ exitCode: 1, told }, withKeys(`http://${host}`), SECRET_KEY);
    server.close();
    expect(existsSync(settingsFile)).toBe(false);
  });

  test.each(['install', 'uninstall'])('%s into settings that are no JSON', async (command) => {
    put('{\n  "model": "opus"\n  "env": {}\n}\n');
    const told = `${settingsFile} is no JSON that Claude Code could read (line 3, column 3: comma expected); correct it first`;
    await failing({ exitCode: 1, told }, [command, '--yes', ...(command === 'install' ? KEYS : [])], SECRET_KEY);
    expect(read()).toBe('{\n  "model": "opus"\n  "env": {}\n}\n');
  });

  test.each(['install', 'uninstall'])('%s where a folder stands in the place of the file', async (command) => {
    mkdirSync(settingsFile, { recursive: true });
    await failing({ exitCode: 1, told: /settings\.json cannot be read \(not a regular file\); make it a file/ }, [
      command,
      '--yes',
    ]);
  });

  test('settings of another shape than Claude Code’s', async () => {
    put('{"hooks":{"Stop":"say done"}}');
    const told = `${settingsFile}: hooks.Stop is not as Claude Code has it; correct or remove it first`;
    await failing({ exitCode: 1, told }, withKeys(workplace.server.url), SECRET_KEY);
  });

  test('a home that is read-only', async ({ skip }) => {
    put('{}');
    const undo = readOnly(join(settingsFile, '..')) ?? skip('root needs the right to mount to have a read-only folder');
    try {
      const told = new RegExp(`${settingsFile} cannot be written \\((?:EROFS|EACCES)\\); nothing was changed\n$`);
      await failing({ exitCode: 1, told }, withKeys(workplace.server.url), SECRET_KEY);
      expect(read()).toBe('{}');
    } finally {
      undo();
    }
  });

  test('a home that is a file', async () => {
    workplace.env = { ...workplace.env, CLAUDE_CONFIG_DIR: PROGRAM };
    await failing(
      { exitCode: 1, told: /cli\.cjs\/settings\.json cannot be read \(ENOTDIR\)/ },
      withKeys(workplace.server.url),
      SECRET_KEY,
    );
  });
});

describe('uninstall', () => {
  test('takes out its own, and says what stays', async () => {
    put(
      '{\n  "env": { "EDITOR": "vi" },\n  "hooks": {\n    "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }]\n  }\n}\n',
    );
    const before = read();
    await install();
    const { exitCode, stdout, stderr } = await cli(['uninstall', '--yes']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toBe(
      [
        `${settingsFile} starts cc-langfuse no more`,
        `as it was before, keys included: ${settingsFile}.cc-langfuse.bak`,
        `State and log stay; to remove them: rm -r ${workplace.home}/.claude/state/cc-langfuse_*`,
        '',
      ].join('\n'),
    );
    expect(read()).toBe(before);
  });

  test('of settings that have nothing of it changes nothing', async () => {
    expect((await cli(['uninstall', '--yes'])).stdout).toMatch(/has nothing of cc-langfuse; nothing was changed\n/);
    expect(existsSync(settingsFile)).toBe(false);
  });

  test('leaves keys that another exporter may use, and names where it is registered still', async () => {
    await install();
    const settings = json();
    settings.enabledPlugins = { 'langfuse-observability@claude-plugins-official': true };
    put(JSON.stringify(settings));
    await cli(['install', '--scope', 'local', '--yes']);
    const { stdout } = await cli(['uninstall', '--yes']);
    expect(stdout).toContain(`its keys stay: another exporter in ${settingsFile} may use them\n`);
    expect(stdout).toContain('settings.local.json: cc-langfuse uninstall --scope local\n');
    expect(json()).toEqual({ env: settings.env, enabledPlugins: settings.enabledPlugins });
  });

  test('--dry-run shows what would go; without a terminal it wants a --yes', async () => {
    await install();
    const before = read();
    const { stdout } = await cli(['uninstall', '--dry-run']);
    expect(stdout).toContain('-    "LANGFUSE_SECRET_KEY": "[redacted]",\n');
    expect(await cli(['uninstall'])).toMatchObject({
      exitCode: 2,
      stderr: 'cc-langfuse: there is no terminal to ask in: give --yes\n',
    });
    expect(read()).toBe(before);
  });
});

describe('in a terminal', () => {
  const inTerminal = (args: readonly string[], typed: { readonly [shown: string]: string }) =>
    runInTerminal(args, workplace, typed).then(({ exitCode, screen }) => ({
      exitCode,
      screen: stripVTControlCharacters(screen),
    }));

  test('install asks for the server and the keys, shows no secret, tries them, and asks again where they are wrong', async () => {
    const { exitCode, screen } = await inTerminal(['install'], {
      'A number, or the URL of your own [1]: ': 'langfuse\r',
      'an http or https URL, such as https://cloud.langfuse.com': `${workplace.server.url}\r`,
      'Public key: ': ` ${PUBLIC_KEY} \r`,
      'Secret key (stays hidden): ': 'sk-lf-mistaken-123456\r',
      [`A number, or the URL of your own [${workplace.server.url}]: `]: '\r',
      'Public key [': '\r',
      'Secret key (stays hidden) [sk-lf-…3456]: ': `${SECRET_KEY}\r`,
    });
    expect(screen).toContain('Langfuse refused the keys (401)');
    expect(screen).toContain('They open the project Embedded.');
    expect(screen).not.toContain('mistaken');
    expect(screen).not.toContain(SECRET_KEY);
    expect(exitCode).toBe(0);
    expect(json().env).toMatchObject({ LANGFUSE_SECRET_KEY: SECRET_KEY, LANGFUSE_BASE_URL: workplace.server.url });
  });

  test('what the settings have is offered, and a server that is away may be taken all the same', async () => {
    put(
      JSON.stringify({
        env: {
          LANGFUSE_PUBLIC_KEY: 'pk-lf-0123456789',
          LANGFUSE_SECRET_KEY: 'sk-lf-0123456789',
          LANGFUSE_HOST: 'http://127.0.0.1:1',
        },
      }),
    );
    const { exitCode, screen } = await inTerminal(['install'], {
      '[http://127.0.0.1:1]: ': '\r',
      'Public key [pk-lf-…6789]: ': '\r',
      'Secret key (stays hidden) [sk-lf-…6789]: ': '\r',
      'Take them all the same? [y/N] ': 'y\r',
    });
    expect(screen).toContain('127.0.0.1:1 cannot be reached: ECONNREFUSED.');
    expect(exitCode).toBe(0);
    expect(json().hooks.Stop).toHaveLength(1);
  });

  test.each(['\u0003', '\u0004'])('left at a question (%j) all is as it was', async (key) => {
    put('{"env":{"LANGFUSE_SECRET_KEY":"sk-lf-0123456789"}}');
    for (const question of ['the URL of your own [1]: ', 'Public key: ', 'Secret key (stays hidden) [sk-lf-…6789]: ']) {
      const typed = { 'the URL of your own [1]: ': '\r', 'Public key: ': `${PUBLIC_KEY}\r`, [question]: key };
      const { exitCode, screen } = await inTerminal(['install'], typed);
      expect(exitCode).toBe(130);
      expect(screen).toContain('stopped; nothing was done');
    }
    expect(read()).toBe('{"env":{"LANGFUSE_SECRET_KEY":"sk-lf-0123456789"}}');
    expect(workplace.server.requests).toEqual([]);
  });

  test('uninstall shows what goes and asks', async () => {
    await install();
    const before = read();
    expect((await inTerminal(['uninstall'], { 'Take it out? [y/N] ': '\r' })).exitCode).toBe(0);
    expect(read()).toBe(before);
    const { screen } = await inTerminal(['uninstall'], { 'Take it out? [y/N] ': 'y\r' });
    expect(screen).not.toContain(SECRET_KEY);
    expect(read()).toBe('{}\n');
  });
});
