import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { changeOf, write } from '../../../src/commands/setup/settings-writer.js';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
  path = join(folder, 'settings.json');
});

afterEach(() => rmSync(folder, { recursive: true }));

const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8);
const change = (to: string) => write(changeOf(path, () => to));

describe('a settings file is written', () => {
  test('beside a backup, of which there is one however often it is done', () => {
    writeFileSync(path, '{"a":1}');
    expect(change('{"a":2}')).toBe(`${path}.cc-langfuse.bak`);
    change('{"a":3}');
    expect(readFileSync(path, 'utf8')).toBe('{"a":3}');
    expect(readFileSync(`${path}.cc-langfuse.bak`, 'utf8')).toBe('{"a":2}');
    expect(readdirSync(folder)).toEqual(['settings.json', 'settings.json.cc-langfuse.bak']);
  });

  test('not at all where nothing changes', () => {
    writeFileSync(path, '{"a":1}');
    const { mtimeNs } = statSync(path, { bigint: true });
    expect(change('{"a":1}')).toBeUndefined();
    expect(statSync(path, { bigint: true }).mtimeNs).toBe(mtimeNs);
    expect(readdirSync(folder)).toEqual(['settings.json']);
  });

  test('with its mode; a new one for its owner alone', () => {
    writeFileSync(path, '{}');
    chmodSync(path, 0o640);
    change('{"a":1}');
    expect(modeOf(path)).toBe('640');
    // It holds keys that nobody thinks of any more.
    expect(modeOf(`${path}.cc-langfuse.bak`)).toBe('600');
    path = join(folder, 'not yet there', 'settings.json');
    change('{"a":1}');
    expect(modeOf(path)).toBe('600');
  });

  test('through a link, which stays one', () => {
    mkdirSync(join(folder, 'dotfiles'));
    const real = join(folder, 'dotfiles', 'claude.json');
    writeFileSync(real, '{}');
    symlinkSync(real, path);
    expect(change('{"a":1}')).toBe(`${path}.cc-langfuse.bak`);
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(readFileSync(real, 'utf8')).toBe('{"a":1}');
  });

  test('and never its backup through a link that someone has put there', () => {
    writeFileSync(path, '{"a":1}');
    writeFileSync(join(folder, 'precious'), 'mine');
    symlinkSync(join(folder, 'precious'), `${path}.cc-langfuse.bak`);
    change('{"a":2}');
    expect(readFileSync(join(folder, 'precious'), 'utf8')).toBe('mine');
    expect(readFileSync(`${path}.cc-langfuse.bak`, 'utf8')).toBe('{"a":1}');
  });

  test('or not at all: then no copy of it is left either', () => {
    // So long a name has no room for what would be written beside it.
    const real = join(folder, `${'x'.repeat(250)}.json`);
    writeFileSync(real, '{}');
    symlinkSync(real, path);
    expect(() => change('{"a":1}')).toThrow(`${path} cannot be written (ENAMETOOLONG); nothing was changed`);
    expect(readFileSync(real, 'utf8')).toBe('{}');
    expect(readdirSync(folder).toSorted()).toEqual(['settings.json', `${'x'.repeat(250)}.json`]);
  });

  test('with its byte order mark', () => {
    writeFileSync(path, '\uFEFF{}');
    write(changeOf(path, (text) => text.replace('{', '{"a":1')));
    expect(readFileSync(path, 'utf8')).toBe('\uFEFF{"a":1}');
  });
});

describe('a settings file is left alone', () => {
  test('that is no JSON', () => {
    writeFileSync(path, '{\n  "a": }');
    expect(() => change('{}')).toThrow(
      `${path} is no JSON that Claude Code could read (line 2, column 8: value expected); correct it first`,
    );
  });

  test('that is not in UTF-8, of which some bytes would be lost', () => {
    const latin1 = Buffer.from('{"name":"caf\u00e9"}', 'latin1');
    writeFileSync(path, latin1);
    expect(() => change('{}')).toThrow(`${path} is not all in UTF-8; save it so first`);
    expect(readFileSync(path)).toEqual(latin1);
  });

  test('that is a folder', () => {
    mkdirSync(path);
    expect(() => change('{}')).toThrow(`${path} cannot be read (not a regular file); make it a file`);
  });

  test('that is a link to nowhere', () => {
    symlinkSync(join(folder, 'nowhere'), path);
    expect(() => change('{}')).toThrow(`${path} is a link to a file that does not exist`);
  });

  test('whose folder cannot be written', () => {
    writeFileSync(path, '{"a":1}');
    // Root may write where nobody else may, so a folder stands in the way of the backup.
    mkdirSync(`${path}.cc-langfuse.bak`);
    expect(() => change('{}')).toThrow(/settings\.json cannot be written \(\w+\); nothing was changed$/);
    expect(readFileSync(path, 'utf8')).toBe('{"a":1}');
  });
});
