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
import { planChange, writeChange } from '../../../src/commands/setup/settings-file.js';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
  path = join(folder, 'settings.json');
});

afterEach(() => rmSync(folder, { recursive: true }));

const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8);
const change = (to: string) =>
  writeChange(
    planChange(path, () => to),
    { keepsBackup: true },
  );

describe('a change of a settings file', () => {
  test('leaves a backup of the file as it was before the first change, however often it is changed', () => {
    writeFileSync(path, '{"a":1}');
    expect(change('{"a":2}')).toBe(`${path}.cc-langfuse.bak`);
    expect(change('{"a":3}')).toBeUndefined();
    expect(readFileSync(path, 'utf8')).toBe('{"a":3}');
    expect(readFileSync(`${path}.cc-langfuse.bak`, 'utf8')).toBe('{"a":1}');
    expect(readdirSync(folder)).toEqual(['settings.json', 'settings.json.cc-langfuse.bak']);
  });

  test('leaves no backup if none is wanted', () => {
    writeFileSync(path, '{"a":1}');
    expect(
      writeChange(
        planChange(path, () => '{"a":2}'),
        { keepsBackup: false },
      ),
    ).toBeUndefined();
    expect(readdirSync(folder)).toEqual(['settings.json']);
  });

  test('is not written if nothing changes', () => {
    writeFileSync(path, '{"a":1}');
    const { mtimeNs } = statSync(path, { bigint: true });
    expect(change('{"a":1}')).toBeUndefined();
    expect(statSync(path, { bigint: true }).mtimeNs).toBe(mtimeNs);
    expect(readdirSync(folder)).toEqual(['settings.json']);
  });

  test('keeps the mode; a new file is for its owner alone', () => {
    writeFileSync(path, '{}');
    chmodSync(path, 0o640);
    change('{"a":1}');
    expect(modeOf(path)).toBe('640');
    // It contains keys that everyone has forgotten.
    expect(modeOf(`${path}.cc-langfuse.bak`)).toBe('600');
    path = join(folder, 'not yet there', 'settings.json');
    change('{"a":1}');
    expect(modeOf(path)).toBe('600');
  });

  test('goes through a link, which remains', () => {
    mkdirSync(join(folder, 'dotfiles'));
    const real = join(folder, 'dotfiles', 'claude.json');
    writeFileSync(real, '{}');
    symlinkSync(real, path);
    expect(change('{"a":1}')).toBe(`${path}.cc-langfuse.bak`);
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(readFileSync(real, 'utf8')).toBe('{"a":1}');
  });

  test('never writes the backup through a link', () => {
    writeFileSync(path, '{"a":1}');
    writeFileSync(join(folder, 'precious'), 'mine');
    symlinkSync(join(folder, 'precious'), `${path}.cc-langfuse.bak`);
    change('{"a":2}');
    expect(readFileSync(join(folder, 'precious'), 'utf8')).toBe('mine');
    expect(readFileSync(`${path}.cc-langfuse.bak`, 'utf8')).toBe('{"a":1}');
  });

  test('leaves no backup if it fails', () => {
    // With a name of this length no temporary file can be created next to it.
    const real = join(folder, `${'x'.repeat(250)}.json`);
    writeFileSync(real, '{}');
    symlinkSync(real, path);
    expect(() => change('{"a":1}')).toThrow(`${path} cannot be written (ENAMETOOLONG); nothing was changed`);
    expect(readFileSync(real, 'utf8')).toBe('{}');
    expect(readdirSync(folder).toSorted()).toEqual(['settings.json', `${'x'.repeat(250)}.json`]);
  });

  test('keeps an earlier backup if it fails', () => {
    const real = join(folder, `${'x'.repeat(250)}.json`);
    writeFileSync(real, '{}');
    symlinkSync(real, path);
    writeFileSync(`${path}.cc-langfuse.bak`, '{"a":0}');
    expect(() => change('{"a":1}')).toThrow('nothing was changed');
    expect(readFileSync(`${path}.cc-langfuse.bak`, 'utf8')).toBe('{"a":0}');
  });

  test('keeps the byte order mark', () => {
    writeFileSync(path, '\uFEFF{}');
    writeChange(
      planChange(path, (text) => text.replace('{', '{"a":1')),
      { keepsBackup: false },
    );
    expect(readFileSync(path, 'utf8')).toBe('\uFEFF{"a":1}');
  });
});

describe('a settings file is not changed', () => {
  test('if it is not JSON', () => {
    writeFileSync(path, '{\n  "a": }');
    expect(() => change('{}')).toThrow(
      `${path} is not JSON that Claude Code can read (line 2, column 8: value expected); fix it first`,
    );
  });

  test('if it is not UTF-8, because bytes would be lost', () => {
    const latin1 = Buffer.from('{"name":"caf\u00e9"}', 'latin1');
    writeFileSync(path, latin1);
    expect(() => change('{}')).toThrow(`${path} is not UTF-8; save it as UTF-8 first`);
    expect(readFileSync(path)).toEqual(latin1);
  });

  test('if it is a folder', () => {
    mkdirSync(path);
    expect(() => change('{}')).toThrow(`${path} cannot be read (not a regular file); replace it with a readable file`);
  });

  test('if it is a link to nowhere', () => {
    symlinkSync(join(folder, 'nowhere'), path);
    expect(() => change('{}')).toThrow(`${path} is a link to a file that does not exist`);
  });

  test('if its folder cannot be written', () => {
    writeFileSync(path, '{"a":1}');
    // Root may write anywhere, so a folder is put in the backup's place.
    mkdirSync(`${path}.cc-langfuse.bak`);
    expect(() => change('{}')).toThrow(/settings\.json cannot be written \(\w+\); nothing was changed$/);
    expect(readFileSync(path, 'utf8')).toBe('{"a":1}');
  });
});
