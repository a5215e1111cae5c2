import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { buildAbsoluteCommands, buildCommand, findLastingPath } from '../../../src/commands/setup/program-path.js';
import {
  BUDGET_HOOK_SECONDS,
  findOwnHooks,
  HOOK_SECONDS,
  LIVE_HOOK_SECONDS,
} from '../../../src/config/claude-hooks.js';

/** Those of these systems that this machine has. On macOS a command may run in zsh, which people use there. */
const SHELLS = ([['/bin/sh'], ['/bin/dash'], ['/bin/bash'], ['/bin/busybox', 'sh'], ['/bin/zsh']] as const).filter(
  ([path]) => existsSync(path),
);

let folder: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cc-langfuse-')));
});

afterEach(() => rmSync(folder, { recursive: true }));

describe('the path to node', () => {
  const put = (...path: string[]) => {
    const file = join(folder, ...path);
    mkdirSync(join(file, '..'), { recursive: true });
    return file;
  };
  let node: string;

  beforeEach(() => {
    node = put('Cellar', 'node', '24.1.0', 'bin', 'node');
    writeFileSync(node, '');
  });

  test('is the link on the PATH that survives an upgrade', () => {
    const link = put('bin', 'node');
    symlinkSync(node, link);
    expect(findLastingPath(node, `/nowhere:${join(folder, 'bin')}`)).toBe(link);
  });

  test.each(['fnm_multishells/123/bin', 'project/node_modules/.bin'])(
    'is not a link in %s, which is temporary',
    (passing) => {
      symlinkSync(node, put(passing, 'node'));
      expect(findLastingPath(node, join(folder, passing))).toBe(node);
    },
  );

  test('is the running one’s if the PATH has only another node, a shim or a relative folder', () => {
    writeFileSync(put('shims', 'node'), '#!/bin/sh');
    expect(findLastingPath(node, `${join(folder, 'shims')}:bin:`)).toBe(node);
  });
});

describe('the command that install registers', () => {
  const stop = (programFolder: string) => buildAbsoluteCommands(programFolder, {})('Stop').command;

  test.each(['cc-langfuse', 'my code', "o'brien", 'a$HOME`id`"b\\c', 'two\nlines'])(
    'starts a launcher below %j',
    (name) => {
      const launcher = join(folder, name, 'hook.sh');
      mkdirSync(join(launcher, '..'));
      writeFileSync(launcher, '#!/bin/sh\nprintf "%s|" "$0" "$@"');
      chmodSync(launcher, 0o755);
      writeFileSync(join(folder, name, 'cli.cjs'), '');
      const command = stop(join(folder, name));
      for (const [shell, ...args] of SHELLS)
        expect(execFileSync(shell, [...args, '-c', command], { env: {}, encoding: 'utf8' })).toBe(
          [launcher, 'Stop', process.execPath, ''].join('|'),
        );
    },
  );

  test('names cc-langfuse in a comment if its path does not', () => {
    expect(stop('/opt/cc-langfuse/dist')).toBe(`exec "/opt/cc-langfuse/dist/hook.sh" Stop "${process.execPath}"`);
    expect(stop('/src/mine/dist')).toMatch(/ # cc-langfuse$/);
  });

  const start = {
    node: 'C:\\Program Files\\nodejs\\node.exe',
    program: 'C:\\npm\\cc-langfuse\\dist\\cli.cjs',
    launcher: '/opt/cc-langfuse/dist/hook.sh',
  };

  test.each(['2.1.139', '2.1.326', '3.0.0'])(
    'is a list of arguments on Windows with Claude Code %s',
    (claudeVersion) => {
      expect(buildCommand('Stop', { ...start, platform: 'win32', claudeVersion })).toEqual({
        command: start.node,
        args: [start.program, 'hook'],
      });
    },
  );

  test.each(['2.1.138', '2.1.90', '1.0.128', undefined])(
    'is a command for Git Bash on Windows with Claude Code %s, which ignores arguments, or may',
    (claudeVersion) => {
      expect(buildCommand('Stop', { ...start, platform: 'win32', claudeVersion })).toEqual({
        command: 'exec "C:/Program Files/nodejs/node.exe" "C:/npm/cc-langfuse/dist/cli.cjs" hook',
      });
    },
  );

  test.each(['linux', 'darwin'] as const)('has no list of arguments on %s, whatever the version', (platform) => {
    for (const claudeVersion of [undefined, '2.1.138', '2.1.326'])
      expect(buildCommand('Stop', { ...start, node: '/bin/node', platform, claudeVersion })).toEqual({
        command: 'exec "/opt/cc-langfuse/dist/hook.sh" Stop "/bin/node"',
      });
  });

  test.each(['linux', 'darwin', 'win32'] as const)('is recognised as its own on %s, for each event', (platform) => {
    for (const claudeVersion of [undefined, '2.1.138', '2.1.139'])
      for (const event of Object.keys({ ...HOOK_SECONDS, ...LIVE_HOOK_SECONDS, ...BUDGET_HOOK_SECONDS })) {
        const hook = buildCommand(event, { ...start, platform, claudeVersion });
        expect(findOwnHooks({ hooks: { [event]: [{ hooks: [hook] }] } })).toHaveLength(1);
      }
  });

  test.each(['my code', "o'brien", 'a"b', 'a\\b', 'a`id`', 'a$HOME', 'tools\\'])(
    'is recognised as its own for a program below %s',
    (name) => {
      const command = stop(`/opt/${name}/cc-langfuse/dist`);
      const [hook] = findOwnHooks({ hooks: { Stop: [{ hooks: [{ command }] }] } });
      expect(hook?.words).toEqual(['exec', `/opt/${name}/cc-langfuse/dist/hook.sh`, 'Stop', process.execPath]);
    },
  );
});
