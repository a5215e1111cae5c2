import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { findGlobalPrefix } from '../../../src/commands/setup/program-path.js';
import { findSharingProblem } from '../../../src/commands/setup/shared-program.js';
import type * as SettingsPaths from '../../../src/config/settings-paths.js';
import { version } from '../../../src/shared/version.js';
import { LangfuseServer, PUBLIC_KEY } from '../../support/langfuse-server.js';
import { withStdin } from '../../support/with-stdin.js';

const COMMAND = ['--public-key', PUBLIC_KEY, '--secret-key-command', 'pass langfuse'];
const EVENTS = ['SessionStart', 'Stop', 'StopFailure', 'SessionEnd'];
let folder: string;
let file: string;
let program: string;
let printed: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
  chmodSync(folder, 0o755);
  file = join(folder, 'ClaudeCode', 'managed-settings.d', '50-cc-langfuse.json');
  program = join(folder, 'lib', 'node_modules', 'cc-langfuse', 'dist', 'cli.cjs');
  mkdirSync(dirname(program), { recursive: true });
  writeFileSync(program, 'usage: cc-langfuse hook', { mode: 0o755 });
  writeFileSync(join(dirname(program), 'hook.sh'), '#!/bin/sh\n# cc-langfuse_sessions', { mode: 0o755 });
  // The Node that runs this test may belong to one user.
  const node = join(folder, 'node');
  cpSync(process.execPath, node);
  vi.spyOn(process, 'execPath', 'get').mockReturnValue(node);
  vi.spyOn(process, 'argv', 'get').mockReturnValue([node, program]);
  printed = '';
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((text, ...more) => {
      printed += text;
      for (const callback of more) if (typeof callback === 'function') callback();
      return true;
    });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.doUnmock('../../../src/config/settings-paths.js');
  vi.resetModules();
  rmSync(folder, { recursive: true });
});

/** The commands, with the managed settings in a folder that anyone may write to. */
async function commands() {
  vi.resetModules();
  vi.doMock('../../../src/config/settings-paths.js', async (importActual) => {
    const actual = await importActual<typeof SettingsPaths>();
    return {
      ...actual,
      settingsPath: (...args: Parameters<typeof actual.settingsPath>) =>
        args[0] === 'managed' ? file : actual.settingsPath(...args),
    };
  });
  const { run: install } = await import('../../../src/commands/setup/install.lazy.js');
  const { run: upgrade } = await import('../../../src/commands/setup/upgrade.lazy.js');
  const { run: uninstall } = await import('../../../src/commands/setup/uninstall.lazy.js');
  const env = { HOME: join(folder, 'home'), CLAUDE_CONFIG_DIR: join(folder, 'home', '.claude'), PATH: '' };
  return {
    install: (...args: string[]) =>
      install(['--scope', 'managed', ...args], { ...env, LANGFUSE_SECRET_KEY: 'sk-lf-own' }),
    upgrade: (...args: string[]) => upgrade(['--scope', 'managed', ...args], { ...env, PATH: join(folder, 'bin') }),
    uninstall: (...args: string[]) => uninstall(['--scope', 'managed', '--yes', ...args], env),
  };
}

const read = () => JSON.parse(readFileSync(file, 'utf8'));

test('install writes a file of its own, which everyone can read, with the full paths and the command for the key', async () => {
  const { install } = await commands();
  const before = process.umask(0o077);
  try {
    expect(await install(...COMMAND, '--base-url', 'https://langfuse.example')).toBe(0);
  } finally {
    process.umask(before);
  }
  const { env, hooks } = read();
  expect(env).toEqual({
    TRACE_TO_LANGFUSE: 'true',
    LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
    LANGFUSE_BASE_URL: 'https://langfuse.example',
    CC_LANGFUSE_SECRET_KEY_COMMAND: 'pass langfuse',
  });
  expect(Object.keys(hooks)).toEqual(EVENTS);
  const launcher = join(dirname(program), 'hook.sh');
  expect(hooks.Stop).toEqual([
    { hooks: [{ type: 'command', command: `exec "${launcher}" Stop "${process.execPath}"`, timeout: 15 }] },
  ]);
  expect(statSync(file).mode & 0o777).toBe(0o644);
  for (const each of [dirname(file), dirname(dirname(file))]) expect(statSync(each).mode & 0o777).toBe(0o755);
  expect(printed).not.toContain('sk-lf-own');
  expect(await install(...COMMAND, '--base-url', 'https://langfuse.example')).toBe(0);
  expect(printed).toContain(`${file} is up to date; nothing was changed`);
});

test('a pasted page of the project names it, since keys for ingestion do not', async () => {
  const { install } = await commands();
  expect(await install(...COMMAND, '--base-url', 'https://langfuse.example/project/p-1/traces')).toBe(0);
  expect(read().env).toMatchObject({
    LANGFUSE_BASE_URL: 'https://langfuse.example',
    CC_LANGFUSE_PROJECT_ID: 'p-1',
  });
});

test('without keys everyone needs keys of their own, and the keys of the administrator are not written', async () => {
  const { install } = await commands();
  expect(await install()).toBe(0);
  expect(read().env).toEqual({ TRACE_TO_LANGFUSE: 'true' });
  expect(printed).toContain('It has no keys: everyone needs LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY');
});

test("everyone's user is their own address in git if that is wanted, and nobody asks", async () => {
  const { install } = await commands();
  expect(await install('--user', 'git')).toBe(0);
  expect(read().env).toEqual({ TRACE_TO_LANGFUSE: 'true', LANGFUSE_USER_ID: 'git' });
  expect(await install('--user', 'none')).toBe(0);
  expect(read().env).toEqual({ TRACE_TO_LANGFUSE: 'true' });
});

test('nothing is written if the server refuses the keys', async () => {
  const server = await LangfuseServer.start();
  const { install } = await commands();
  const keys = ['--public-key', 'pk-lf-wrong', '--secret-key-stdin', '--base-url', server.url];
  const refused = 'Langfuse refused the keys (401)';
  await withStdin('sk-lf-wrong', () => expect(install(...keys)).rejects.toThrow(refused));
  expect(existsSync(join(folder, 'ClaudeCode'))).toBe(false);
  await server.stop();
});

test('a dry run changes nothing', async () => {
  const { install } = await commands();
  expect(await install(...COMMAND, '--dry-run')).toBe(0);
  expect(printed).toContain('would change');
  expect(existsSync(join(folder, 'ClaudeCode'))).toBe(false);
});

test('uninstall removes the file, but keeps what somebody else has written into it', async () => {
  const { install, uninstall } = await commands();
  await install(...COMMAND);
  expect(await uninstall()).toBe(0);
  expect(existsSync(file)).toBe(false);
  await install(...COMMAND);
  writeFileSync(file, JSON.stringify({ ...read(), model: 'opus' }));
  expect(await uninstall()).toBe(0);
  expect(read()).toEqual({ model: 'opus' });
});

describe('upgrade', () => {
  const NEWER = '99.0.0';
  const describePackage = (version: string) =>
    writeFileSync(join(dirname(program), '..', 'package.json'), JSON.stringify({ version }));

  /** Puts an npm on the path that knows a version, and installs it with some commands. */
  const putNpm = (newest: string, install = '') => {
    const npm = join(folder, 'bin', 'npm');
    mkdirSync(dirname(npm), { recursive: true });
    const script = `#!/bin/sh
PATH=/usr/bin:/bin
echo "$npm_config_prefix $*" >> "${folder}/calls"
case $1 in
view) echo '"${newest}"' ;;
*) ${install || 'exit 1'} ;;
esac
`;
    writeFileSync(npm, script, { mode: 0o755 });
  };
  /** The calls of npm, each with the prefix that was set. */
  const calls = () => readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n');
  const register = (change: (settings: { hooks: { [event: string]: unknown } }) => void) => {
    const settings = read();
    change(settings);
    writeFileSync(file, JSON.stringify(settings));
  };

  test('lets npm install the newest version where this one is, and that version registers its hooks', async () => {
    // The package that npm puts in place writes down how it is started.
    const started = join(folder, 'started');
    const next = `require("fs").writeFileSync("${started}", process.argv.slice(2).join(" "))`;
    putNpm(
      NEWER,
      `echo '${next}' > "${program}"; echo '{"version":"${NEWER}"}' > "${dirname(program)}/../package.json"`,
    );
    const { install, upgrade } = await commands();
    await install(...COMMAND);
    const before = read();
    expect(await upgrade()).toBe(0);
    expect(calls()).toEqual([
      'view cc-langfuse version --json --fetch-retries=0',
      `${folder} install --global --ignore-scripts cc-langfuse@${NEWER}`,
    ]);
    expect(printed).toContain(`installed ${NEWER} in ${folder}, in place of ${version}\n`);
    expect(readFileSync(started, 'utf8')).toBe('upgrade --scope managed');
    expect(read()).toEqual(before);
  });

  test('registers what this version registers, and keeps everything else, if npm has nothing newer', async () => {
    putNpm(version);
    const { install, upgrade } = await commands();
    await install(...COMMAND, '--user', 'git');
    const whole = read();
    register(({ hooks }) => {
      delete hooks.StopFailure;
      hooks.Stop = [{ hooks: [{ type: 'command', command: 'exec "/old/cc-langfuse/dist/hook.sh" Stop "/old/node"' }] }];
    });
    expect(await upgrade()).toBe(0);
    expect(printed).toContain(`this is ${version}, and npm has nothing newer (${version})\n`);
    expect(printed).toContain(`registered the hooks of ${version} in ${file}, for everyone on this machine\n`);
    expect(read()).toEqual(whole);
    expect(await upgrade()).toBe(0);
    expect(printed).toContain(`${file} is up to date; nothing was changed in it\n`);
  });

  test('leaves hooks without a path as they are, and adds the hook for turns that are seen while they run', async () => {
    putNpm(version);
    const { install, upgrade } = await commands();
    await install(...COMMAND);
    const portable = (event: string, timeout: number) => [
      { hooks: [{ type: 'command', command: `exec cc-langfuse-hook ${event}`, timeout }] },
    ];
    writeFileSync(file, JSON.stringify({ env: { CC_LANGFUSE_LIVE: 'true' }, hooks: { Stop: portable('Stop', 15) } }));
    chmodSync(join(folder, 'lib'), 0o700);
    expect(await upgrade()).toBe(0);
    expect(read().hooks).toEqual({
      Stop: portable('Stop', 15),
      SessionStart: portable('SessionStart', 5),
      StopFailure: portable('StopFailure', 15),
      SessionEnd: portable('SessionEnd', 15),
      UserPromptSubmit: portable('UserPromptSubmit', 5),
    });
  });

  test('--print prints the settings, asks nobody, and changes nothing', async () => {
    const { install, upgrade } = await commands();
    await install(...COMMAND);
    const whole = read();
    register(({ hooks }) => {
      hooks.StopFailure = [];
    });
    const before = readFileSync(file, 'utf8');
    printed = '';
    expect(await upgrade('--print')).toBe(0);
    expect(JSON.parse(printed)).toEqual(whole);
    expect(readFileSync(file, 'utf8')).toBe(before);
  });

  test.each<[string, string, () => void, RegExp]>([
    [
      'npm cannot install it',
      NEWER,
      () => {},
      /npm did not install 99\.0\.0 in .*; .* stays; run it as an administrator/,
    ],
    ['the managed settings have no hook of it', NEWER, () => writeFileSync(file, '{}'), /starts no cc-langfuse; run: /],
    [
      'others can change the program',
      version,
      () => chmodSync(join(folder, 'lib'), 0o777),
      /every user can change .*lib, so/,
    ],
  ])('fails and changes nothing if %s', async (_, newest, spoil, problem) => {
    putNpm(newest);
    describePackage(version);
    const { install, upgrade } = await commands();
    await install(...COMMAND);
    spoil();
    const before = readFileSync(file, 'utf8');
    await expect(upgrade()).rejects.toThrow(problem);
    expect(readFileSync(file, 'utf8')).toBe(before);
  });

  test.each([
    ['/usr/local/lib/node_modules/cc-langfuse/dist/cli.cjs', 'linux', '/usr/local'],
    ['/opt/homebrew/lib/node_modules/cc-langfuse/dist/cli.cjs', 'darwin', '/opt/homebrew'],
    ['C:\\Program Files\\nodejs\\node_modules\\cc-langfuse\\dist\\cli.cjs', 'win32', 'C:\\Program Files\\nodejs'],
    ['/work/app/node_modules/cc-langfuse/dist/cli.cjs', 'linux', undefined],
    ['/root/.npm/_npx/0123/node_modules/cc-langfuse/dist/cli.cjs', 'linux', undefined],
    ['C:\\npm-cache\\_npx\\0123\\node_modules\\cc-langfuse\\dist\\cli.cjs', 'win32', undefined],
    ['/src/cc-langfuse/dist/cli.cjs', 'darwin', undefined],
  ] as const)('knows where npm has installed %s on %s', (path, platform, prefix) => {
    expect(findGlobalPrefix(path, platform)).toBe(prefix);
  });
});

describe('a program that not everyone can run, or that others can change,', () => {
  const refusal = /so the hooks of others could not start it, or its owner could change what they run/;

  test.each([
    ['is in a folder of one user', () => chmodSync(join(folder, 'lib'), 0o700), /not every user can read .*lib, so/],
    [
      'is in a folder that everyone can change',
      () => chmodSync(join(folder, 'lib'), 0o777),
      /every user can change .*lib, so/,
    ],
    ['cannot be read', () => chmodSync(program, 0o700), /not every user can read .*cli\.cjs, so/],
    [
      'is a link to such a folder',
      () => {
        cpSync(dirname(program), join(folder, 'own', 'dist'), { recursive: true });
        chmodSync(join(folder, 'own'), 0o700);
        rmSync(dirname(program), { recursive: true });
        symlinkSync(join(folder, 'own', 'dist'), dirname(program));
      },
      /not every user can read .*own, so/,
    ],
  ])('is refused if it %s, and --print uses the search path then', async (_, spoil, problem) => {
    spoil();
    const { install } = await commands();
    const installed = install(...COMMAND);
    await expect(installed).rejects.toThrow(problem);
    await expect(installed).rejects.toThrow(refusal);
    expect(existsSync(join(folder, 'ClaudeCode'))).toBe(false);
    expect(await install(...COMMAND, '--print')).toBe(0);
    expect(printed).toContain('"command": "exec cc-langfuse-hook Stop"');
    expect(printed).toContain('look for cc-langfuse-hook and node on the PATH of each user');
  });

  test.each([
    '/root/cc-langfuse/dist/cli.cjs',
    '/home/me/.nvm/bin/node',
    '/Users/me/x/cli.cjs',
    'C:\\Users\\me\\cli.cjs',
  ])('is known by its place in a home directory: %s', (path) => {
    expect(findSharingProblem(path)).toBe(`${path} is in a home directory`);
  });
});
