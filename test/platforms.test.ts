import type * as ChildProcess from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import type * as Os from 'node:os';
import { tmpdir } from 'node:os';
import { join, win32 } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Finding } from '../src/commands/doctor/finding.js';
import { version } from '../src/shared/version.js';
import { removeFolder } from './support/remove-folder.js';

// What is done differently on macOS and Windows, as far as another platform, other paths and another home can show it here.

const PLATFORM = Object.getOwnPropertyDescriptor(process, 'platform') ?? {};
const WINDOWS_HOME = 'C:\\Users\\me';
let folder: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cc-langfuse-')));
});

afterEach(async () => {
  Object.defineProperty(process, 'platform', PLATFORM);
  for (const name of ['node:path', 'node:os', 'node:child_process']) vi.doUnmock(name);
  vi.restoreAllMocks();
  vi.resetModules();
  await removeFolder(folder);
});

/** Lets the modules that are imported from now on believe that this is another system. */
function pretend(platform: NodeJS.Platform): void {
  vi.resetModules();
  Object.defineProperty(process, 'platform', { ...PLATFORM, value: platform });
}

/** The same, with the paths and the home of Windows. */
function pretendWindowsPaths(): void {
  pretend('win32');
  vi.doMock('node:path', () => ({ ...win32, default: win32 }));
  vi.doMock('node:os', async (importActual) => ({ ...(await importActual<typeof Os>()), homedir: () => WINDOWS_HOME }));
}

describe('the settings that an administrator distributes', () => {
  test.each([
    ['linux', '/etc/claude-code/managed-settings.d/50-cc-langfuse.json'],
    ['darwin', '/Library/Application Support/ClaudeCode/managed-settings.d/50-cc-langfuse.json'],
  ] as const)('are looked for on %s in %s', async (platform, path) => {
    pretend(platform);
    const { settingsPath } = await import('../src/config/settings-paths.js');
    expect(settingsPath('managed', {}, '')).toBe(path);
  });

  test('are looked for on Windows in Program Files, and the others below the home and the project', async () => {
    pretendWindowsPaths();
    const { settingsPath } = await import('../src/config/settings-paths.js');
    expect(
      (['user', 'project', 'local', 'managed'] as const).map((scope) => settingsPath(scope, {}, 'D:\\work')),
    ).toEqual([
      'C:\\Users\\me\\.claude\\settings.json',
      'D:\\work\\.claude\\settings.json',
      'D:\\work\\.claude\\settings.local.json',
      'C:\\Program Files\\ClaudeCode\\managed-settings.d\\50-cc-langfuse.json',
    ]);
  });
});

describe('the folder of the state', () => {
  test.each<[NodeJS.ProcessEnv, string]>([
    // Git Bash sets HOME, too.
    [{ USERPROFILE: WINDOWS_HOME, HOME: '/c/Users/me' }, 'C:\\Users\\me\\.claude\\state'],
    [{ USERPROFILE: WINDOWS_HOME, CLAUDE_CONFIG_DIR: 'D:\\claude' }, 'D:\\claude\\state'],
    [{ USERPROFILE: WINDOWS_HOME, CC_LANGFUSE_STATE_DIR: 'D:/state' }, 'D:\\state'],
    [{ USERPROFILE: WINDOWS_HOME, CC_LANGFUSE_STATE_DIR: '\\\\server\\share' }, '\\\\server\\share\\'],
    [{ USERPROFILE: WINDOWS_HOME, CC_LANGFUSE_STATE_DIR: 'state' }, 'C:\\Users\\me\\.claude\\state'],
    [{}, 'C:\\Users\\me\\.claude\\state'],
  ])('of %j on Windows is %s', async (env, expected) => {
    pretendWindowsPaths();
    const { stateFolder } = await import('../src/config/claude-folder.js');
    expect(stateFolder(env)).toBe(expected);
  });
});

describe('a folder is excluded', () => {
  test.each([
    ['C:\\Work\\Secret\\App', 'c:\\work\\secret', true],
    ['C:\\Work\\Secret\\App', 'C:/Work/Secret/', true],
    ['C:\\Work\\Secret', 'C:\\Work\\*', true],
    ['C:\\Work\\Secret\\App', '**/secret', true],
    ['C:\\Users\\me\\customers\\a', '~/Customers/*', true],
    ['\\\\server\\share\\work', '//server/share', true],
    ['C:\\Work', 'C:\\', true],
    ['C:\\', 'C:/', true],
    ['C:\\Work\\Secret', 'C:\\Work\\Sec', false],
    ['\\\\server\\shared\\work', '//server/share', false],
    ['C:\\Work', 'D:\\Work', false],
    ['C:\\Work', 'C:\\Work\\Secret', false],
  ])('on Windows: %s by %s is %s', async (path, list, isExcluded) => {
    pretendWindowsPaths();
    const { findExcluding } = await import('../src/config/excluded-folders.lazy.js');
    expect(findExcluding(path, list) !== undefined).toBe(isExcluded);
  });

  test.each([
    ['darwin', true],
    ['linux', false],
  ] as const)('whatever the case of its letters on %s: %s', async (platform, isExcluded) => {
    pretend(platform);
    const { findExcluding } = await import('../src/config/excluded-folders.lazy.js');
    expect(findExcluding('/Users/me/Work/App', '/users/me/work') !== undefined).toBe(isExcluded);
    expect(findExcluding('/Users/me/Work/App', '/users/me/W*') !== undefined).toBe(isExcluded);
    expect(findExcluding('/Users/me/Work\\App', '/Users/me/Work')).toBeUndefined();
  });
});

test('variables have one name on Windows, however it is written', async () => {
  const held = { HOOK_SH_HELD_Path: 'mine', Node_Options: '--inspect' };
  const look = async (platform: NodeJS.Platform) => {
    pretend(platform);
    const { startsDifferently, withHeldVariables } = await import('../src/config/node-start.js');
    return {
      isTheSameStart: !startsDifferently(held, { NODE_OPTIONS: '--inspect' }),
      path: withHeldVariables(held, new Set(['HOOK_SH_HELD_PATH'])).Path,
    };
  };
  expect(await look('win32')).toEqual({ isTheSameStart: true, path: undefined });
  expect(await look('linux')).toEqual({ isTheSameStart: false, path: 'mine' });
});

describe('a command that the user may copy', () => {
  const program = 'C:\\Users\\my self\\.claude\\cc-langfuse\\current\\cli.cjs';

  test.each([
    ['win32', `node "${program}"`],
    ['darwin', `'${program}'`],
  ] as const)(
    'has the quotes of the shell on %s, and names Node where files cannot be executed',
    async (platform, command) => {
      pretend(platform);
      const { ownCommand } = await import('../src/cli/own-command.js');
      expect(ownCommand(program)).toBe(command);
    },
  );
});

describe('a page is opened', () => {
  test.each<[NodeJS.Platform, NodeJS.ProcessEnv, readonly string[]]>([
    ['darwin', {}, ['open', 'https://langfuse.example/a?b&c']],
    ['win32', {}, ['rundll32', 'url.dll,FileProtocolHandler', 'https://langfuse.example/a?b&c']],
    ['linux', { DISPLAY: ':0' }, ['xdg-open', 'https://langfuse.example/a?b&c']],
    ['linux', {}, []],
    ['darwin', { SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' }, []],
    ['freebsd', { DISPLAY: ':0' }, []],
  ])('on %s with %j by %j, without a shell', async (platform, env, expected) => {
    pretend(platform);
    const started: string[] = [];
    vi.doMock('node:child_process', () => ({
      spawn: (command: string, args: readonly string[], { shell = false }: ChildProcess.SpawnOptions) => {
        started.push(command, ...args);
        expect(shell).toBe(false);
        return { on: () => {}, unref: () => {} };
      },
    }));
    const isTerminal = Object.getOwnPropertyDescriptor(process.stdout, 'isTTY');
    Object.defineProperty(process.stdout, 'isTTY', { value: true, configurable: true });
    try {
      const { openUrl } = await import('../src/cli/open-url.js');
      openUrl('https://langfuse.example/a?b&c', env);
    } finally {
      if (isTerminal) Object.defineProperty(process.stdout, 'isTTY', isTerminal);
      else Reflect.deleteProperty(process.stdout, 'isTTY');
    }
    expect(started).toEqual(expected);
  });
});

describe('what modes allow', () => {
  const fixes = (findings: Iterable<Finding>) => Array.from(findings, ({ fix }) => fix);

  test.each([
    ['linux', [`chmod 600 FILE`]],
    ['darwin', [`chmod 600 FILE`]],
    ['win32', []],
  ] as const)(
    'of a file with a key is looked at on %s only if modes mean something there',
    async (platform, expected) => {
      const file = join(folder, 'settings.json');
      writeFileSync(file, '{}', { mode: 0o644 });
      pretend(platform);
      const { checkExposure } = await import('../src/commands/doctor/checks/settings.js');
      expect(fixes(checkExposure(file)).map((fix) => fix?.replace(file, 'FILE'))).toEqual(expected);
    },
  );

  test.each([
    ['darwin', /^every user can change /],
    ['win32', undefined],
  ] as const)('others to do with the program is looked at on %s in the same way', async (platform, expected) => {
    const file = join(folder, 'cli.cjs');
    writeFileSync(file, '');
    chmodSync(folder, 0o777);
    pretend(platform);
    const { findSharingProblem } = await import('../src/commands/setup/shared-program.js');
    const problem = findSharingProblem(file);
    if (expected === undefined) expect(problem).toBeUndefined();
    else expect(problem).toMatch(expected);
  });
});

describe('the installed program', () => {
  const program = process.argv[1] ?? '';

  afterEach(() => {
    process.argv[1] = program;
  });

  test('is a junction on Windows, with its whole path, which another version replaces', async () => {
    pretend('win32');
    const { installProgram } = await import('../src/commands/setup/program-copy.js');
    const link = join(folder, 'claude', 'cc-langfuse', 'current');
    const install = (text: string) => {
      mkdirSync(join(folder, 'dist'), { recursive: true });
      for (const name of ['cli.cjs', 'hook.sh']) writeFileSync(join(folder, 'dist', name), text);
      process.argv[1] = join(folder, 'dist', 'cli.cjs');
      installProgram({ CLAUDE_CONFIG_DIR: join(folder, 'claude') });
      return readlinkSync(link);
    };
    expect(install('one')).toBe(join(folder, 'claude', 'cc-langfuse', version));
    expect(install('two')).toBe(join(folder, 'claude', 'cc-langfuse', `${version}+2`));
    expect(readdirSync(join(folder, 'claude', 'cc-langfuse'))).toEqual([version, `${version}+2`, 'current']);
    expect(statSync(link).isDirectory()).toBe(true);
  });
});

test('npm is a script of the shell on Windows: upgrade gives it nothing that needs quotes', async () => {
  pretend('win32');
  const calls: { readonly args: readonly string[]; readonly shell: unknown; readonly prefix: unknown }[] = [];
  vi.doMock('node:child_process', async (importActual) => ({
    ...(await importActual<typeof ChildProcess>()),
    spawnSync: (command: string, args: readonly string[], { shell, env }: ChildProcess.SpawnSyncOptions) => {
      calls.push({ args: [command, ...args], shell, prefix: env?.npm_config_prefix });
      return { status: 0, stdout: '"99.0.0"', stderr: '' };
    },
  }));
  const hooks = { Stop: [{ hooks: [{ type: 'command', command: 'exec cc-langfuse-hook Stop' }] }] };
  const file = join(folder, '50-cc-langfuse.json');
  writeFileSync(file, JSON.stringify({ hooks }));
  vi.doMock('../src/config/settings-paths.js', () => ({ settingsPath: () => file }));
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const own = process.argv[1] ?? '';
  const program = join(folder, 'cli.cjs');
  writeFileSync(program, '');
  process.argv[1] = program;
  try {
    const { run } = await import('../src/commands/setup/upgrade.lazy.js');
    await expect(run(['--scope', 'managed'], {})).rejects.toThrow('install 99.0.0 as it was installed');
  } finally {
    process.argv[1] = own;
    vi.doUnmock('../src/config/settings-paths.js');
  }
  expect(calls).toEqual([
    { args: ['npm', 'view', 'cc-langfuse', 'version', '--json', '--fetch-retries=0'], shell: true, prefix: undefined },
  ]);
});
