import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  acceptedSettings,
  commandEnvironment,
  parseClaudeSettings,
  readSettingsAt,
  readSettingsFiles,
} from '../../src/config/claude-settings.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

test('settings are read from the user, the project, the user in the project, and the machine', () => {
  const env = { CLAUDE_CONFIG_DIR: join(folder, 'config') };
  mkdirSync(join(folder, 'project', '.claude'), { recursive: true });
  const local = join(folder, 'project', '.claude', 'settings.local.json');
  writeFileSync(local, '{"env":{"A":"b"}}');
  const files = readSettingsFiles(env, join(folder, 'project'));
  expect(files.slice(0, 3)).toEqual([
    { scope: 'user', path: join(folder, 'config', 'settings.json'), content: { kind: 'absent' } },
    { scope: 'project', path: join(folder, 'project', '.claude', 'settings.json'), content: { kind: 'absent' } },
    {
      scope: 'local',
      path: local,
      content: { kind: 'settings', text: '{"env":{"A":"b"}}', settings: { env: { A: 'b' } }, problem: undefined },
    },
  ]);
  expect(files.slice(3).map(({ scope }) => scope)).toContain('managed');
  expect(readSettingsFiles({}, folder)[0]?.path).toBe(join(homedir(), '.claude', 'settings.json'));
});

test('in the home directory the file of the user and of the project is read once', () => {
  const paths = readSettingsFiles({ CLAUDE_CONFIG_DIR: join(folder, '.claude') }, folder).map(({ path }) => path);
  expect(paths.filter((path) => path === join(folder, '.claude', 'settings.json'))).toHaveLength(1);
});

test("a command's environment is the shell's over the user's settings", () => {
  const user = join(folder, 'settings.json');
  const env = { CLAUDE_CONFIG_DIR: folder, A: 'shell', B: '' };
  expect(commandEnvironment(env)).toEqual({ CLAUDE_CONFIG_DIR: folder, A: 'shell' });
  writeFileSync(user, '{"env":{"A":"user","B":"user","C":"user","D":1,"E":false,"F":null}}');
  expect(commandEnvironment(env)).toEqual({
    CLAUDE_CONFIG_DIR: folder,
    A: 'shell',
    B: 'user',
    C: 'user',
    D: '1',
    E: 'false',
  });
  // Claude Code ignores this file, too.
  writeFileSync(user, '{"env":{"C":"user"} /* why */}');
  expect(commandEnvironment(env)).toEqual({ CLAUDE_CONFIG_DIR: folder, A: 'shell' });
});

test('settings with comments are not accepted', () => {
  const read = (text: string) => ({ scope: 'user' as const, path: '/s', content: parseClaudeSettings(text) });
  expect(acceptedSettings([read('{"a":1}'), read('{"a":2} // why'), read('{')])).toEqual([
    { ...read('{"a":1}'), settings: { a: 1 } },
  ]);
});

describe('a settings file', () => {
  test.each([
    ['{\n  // why\n  "a": [1,],\n}\n', 'line 2, column 3: invalid comment token'],
    ['{\n  "a": [1],\n}\n', 'line 3, column 1: property name expected'],
    ['{\n  "a": [\n    1,\n  ]\n}\n', 'line 4, column 3: value expected'],
  ])('with comments or trailing commas (%j) is parsed, but has a problem', (text, problem) => {
    expect(parseClaudeSettings(text)).toMatchObject({ kind: 'settings', settings: { a: [1] }, problem });
  });

  test('may begin with a byte order mark or be empty', () => {
    expect(parseClaudeSettings('\uFEFF{"a":1}')).toMatchObject({
      kind: 'settings',
      settings: { a: 1 },
      problem: undefined,
    });
    expect(parseClaudeSettings(' \n')).toMatchObject({ kind: 'settings', settings: {}, problem: undefined });
  });

  test.each([
    ['{"a":1', 'line 1, column 7: close brace expected'],
    ['{\n  "a": 1\n  "b": 2\n}', 'line 3, column 3: comma expected'],
    ['nonsense', 'line 1, column 1: invalid symbol'],
    ['[1]', 'expected a JSON object'],
  ])('%j is not a settings file', (text, problem) => {
    expect(parseClaudeSettings(text)).toEqual({ kind: 'invalid', text, problem });
  });

  test('that cannot be read has a reason', () => {
    expect(readSettingsAt(folder)).toEqual({ kind: 'no file', reason: 'not a regular file' });
    writeFileSync(join(folder, 'file'), '');
    expect(readSettingsAt(join(folder, 'file', 'settings.json'))).toEqual({ kind: 'unreadable', reason: 'ENOTDIR' });
  });
});
