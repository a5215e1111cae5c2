import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { installProgram, listInstalled } from '../../../src/commands/setup/program-copy.js';
import { version } from '../../../src/shared/version.js';

const program = process.argv[1] ?? '';
let folder: string;
let programs: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cc-langfuse-')));
  programs = join(folder, 'claude', 'cc-langfuse');
  mkdirSync(join(folder, 'dist'));
  build('first');
  process.argv[1] = join(folder, 'dist', 'cli.cjs');
});

afterEach(() => {
  process.argv[1] = program;
  rmSync(folder, { recursive: true });
});

const build = (text: string) => {
  for (const name of ['cli.cjs', 'hook.sh', 'lazy.cjs']) writeFileSync(join(folder, 'dist', name), `${text} ${name}`);
};
const install = () => installProgram({ CLAUDE_CONFIG_DIR: join(folder, 'claude') });
const inForce = () => readFileSync(join(programs, 'current', 'lazy.cjs'), 'utf8');
/** Lets a folder be of long ago. */
const age = (name: string) => utimesSync(join(programs, name), new Date(0), new Date(0));

describe('the installed program', () => {
  test('is a copy of the running one, and the link to it needs no other path', () => {
    expect(install()).toEqual({ folder: join(programs, version), replaced: undefined });
    expect(readdirSync(programs)).toEqual([version, 'current']);
    expect(readlinkSync(join(programs, 'current'))).toBe(version);
    expect(readdirSync(join(programs, 'current'))).toEqual(['cli.cjs', 'hook.sh', 'lazy.cjs']);
    expect(inForce()).toBe('first lazy.cjs');
    for (const name of ['cli.cjs', 'hook.sh']) expect(statSync(join(programs, version, name)).mode & 0o777).toBe(0o755);
  });

  test('is not copied again, also by itself', () => {
    install();
    const before = statSync(join(programs, version)).ino;
    expect(install()).toBeUndefined();
    process.argv[1] = join(programs, 'current', 'cli.cjs');
    expect(install()).toBeUndefined();
    expect(statSync(join(programs, version)).ino).toBe(before);
    expect(readdirSync(programs)).toEqual([version, 'current']);
  });

  test('replaces another version, which stays for what is running from it', () => {
    mkdirSync(join(programs, '0.0.9'), { recursive: true });
    age('0.0.9');
    symlinkSync('0.0.9', join(programs, 'current'));
    expect(install()).toEqual({ folder: join(programs, version), replaced: '0.0.9' });
    expect(readdirSync(programs)).toEqual(['0.0.9', version, 'current']);
  });

  test.each<[string, () => void]>([
    ['of another build of the same version', () => build('second')],
    ['of one that is damaged', () => writeFileSync(join(programs, version, 'lazy.cjs'), '')],
    ['of one that lacks a file', () => rmSync(join(programs, version, 'lazy.cjs'))],
  ])('takes the place %s, and changes no file of it', (_, change) => {
    install();
    change();
    const before = readdirSync(join(programs, version)).map((name) => statSync(join(programs, version, name)).mtimeMs);
    expect(install()).toEqual({ folder: join(programs, `${version}+2`), replaced: version });
    expect(inForce()).toBe(readFileSync(join(folder, 'dist', 'lazy.cjs'), 'utf8'));
    expect(readdirSync(join(programs, version)).map((name) => statSync(join(programs, version, name)).mtimeMs)).toEqual(
      before,
    );
    expect(install()).toBeUndefined();
  });

  test('is followed by the removal of what was replaced, or left unfinished, more than a day ago', () => {
    for (const name of ['0.0.7', '0.0.8', '.new-killed', '.new-running', 'src', 'dist'])
      mkdirSync(join(programs, name), { recursive: true });
    for (const name of ['0.0.7', '.new-killed', 'src']) age(name);
    install();
    expect(readdirSync(programs)).toEqual(['.new-running', '0.0.8', version, 'current', 'dist', 'src']);
    expect(listInstalled(programs).map((path) => path.slice(programs.length + 1))).toEqual([
      'current',
      '.new-running',
      '0.0.8',
      version,
    ]);
  });

  test('stays in force however old it is, and so does one that is put in force again', () => {
    install();
    const [first, second] = [version, `${version}+2`];
    age(first);
    expect(install()).toBeUndefined();
    build('second');
    expect(install()).toMatchObject({ folder: join(programs, second) });
    age(first);
    build('first');
    expect(install()).toMatchObject({ folder: join(programs, first) });
    expect(inForce()).toBe('first lazy.cjs');
    expect(readdirSync(programs)).toEqual([first, second, 'current']);
  });

  test('replaces a link that a developer made to a build, which stays', () => {
    install();
    rmSync(join(programs, 'current'));
    symlinkSync(join(folder, 'dist'), join(programs, 'current'));
    age(version);
    expect(install()).toEqual({ folder: join(programs, version), replaced: undefined });
    expect(readdirSync(join(folder, 'dist'))).toEqual(['cli.cjs', 'hook.sh', 'lazy.cjs']);
  });

  test('is not changed if it cannot be replaced, and nothing is left of the attempt', () => {
    install();
    build('second');
    // Root may write anywhere, so a folder is in the place of the file.
    rmSync(join(folder, 'dist', 'hook.sh'));
    mkdirSync(join(folder, 'dist', 'hook.sh'));
    chmodSync(join(folder, 'dist'), 0o700);
    expect(install).toThrow(/cc-langfuse cannot be written \(\w+\); nothing was changed$/);
    expect(inForce()).toBe('first lazy.cjs');
    expect(readdirSync(programs)).toEqual([version, 'current']);
  });
});
