import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { buildAbsoluteCommand, findLastingPath } from '../../../src/commands/setup/program-path.js';
import { findOwnHooks } from '../../../src/config/claude-hooks.js';

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
  test.each(['cc-langfuse', 'my code', "o'brien", 'a$HOME`id`"b\\c'])('starts a program below %s', (name) => {
    const program = join(folder, name, 'cli.cjs');
    mkdirSync(join(program, '..'));
    writeFileSync(program, 'process.stdout.write(JSON.stringify(process.argv.slice(1)))');
    const output = execFileSync('/bin/sh', ['-c', buildAbsoluteCommand(program, {})], { env: {}, encoding: 'utf8' });
    expect(JSON.parse(output)).toEqual([program, 'hook']);
  });

  test('names cc-langfuse in a comment if its path does not', () => {
    expect(buildAbsoluteCommand('/opt/cc-langfuse/dist/cli.cjs', {})).toBe(
      `exec "${process.execPath}" "/opt/cc-langfuse/dist/cli.cjs" hook`,
    );
    expect(buildAbsoluteCommand('/src/mine/dist/cli.cjs', {})).toMatch(/ hook # cc-langfuse$/);
  });

  test.each([
    '/home/me/.npm/_npx/0123abc/node_modules/cc-langfuse/dist/cli.cjs',
    '/home/me/.cache/pnpm/dlx/abc/node_modules/cc-langfuse/dist/cli.cjs',
    '/tmp/bunx-0-cc-langfuse@latest/node_modules/cc-langfuse/dist/cli.cjs',
  ])('cannot be built for %s, which is temporary', (program) => {
    expect(() => buildAbsoluteCommand(program, {})).toThrow(/in a package runner's cache/);
  });
});

test.each(['my code', "o'brien", 'a"b', 'a\\b', 'a`id`', 'a$HOME', 'tools\\'])(
  'the command that install writes for a program below %s is recognised as its own',
  (name) => {
    const program = `/opt/${name}/cc-langfuse/dist/cli.cjs`;
    const [hook] = findOwnHooks({ hooks: { Stop: [{ hooks: [{ command: buildAbsoluteCommand(program, {}) }] }] } });
    expect(hook?.words).toEqual(['exec', process.execPath, program, 'hook']);
  },
);
