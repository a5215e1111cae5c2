import { mkdirSync, mkdtempSync, realpathSync, symlinkSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findExcluding } from '../../src/config/excluded-folders.lazy.js';
import { findBadFolder } from '../../src/config/folder-list.js';
import { removeFolder } from '../support/remove-folder.js';

let root: string;

beforeEach(() => {
  // On macOS the folder for temporary files is a link itself.
  root = realpathSync(mkdtempSync(join(tmpdir(), 'cc-langfuse-')));
  mkdirSync(join(root, 'real', 'work', 'app'), { recursive: true });
  mkdirSync(join(root, 'real', 'one, two'));
  mkdirSync(join(root, 'real', 'old (1)'));
  symlinkSync(join(root, 'real'), join(root, 'link'));
  symlinkSync(join(root, 'real', 'work'), join(root, 'deep'));
});

afterEach(() => removeFolder(root));

/** Folders and lists are given below the root. */
const isExcluded = (folder: string, list: string) =>
  findExcluding(join(root, folder), list.replaceAll('/R', root)) !== undefined;

describe('a folder is excluded', () => {
  test.each([
    ['real/work', '/R/real/work'],
    ['real/work', '/R/real/work/'],
    ['real/work', '/R/link/work'],
    ['link/work', '/R/real/work'],
    ['link/work', '/R/link/work'],
    ['real/work/app', '/R/link'],
    ['link/work/app', '/R/deep'],
    ['deep/app', '/R/link/work'],
    ['deep/app', '/R/real'],
    ['real/work/app', '/R/deep'],
    ['real/work/gone/deeper', '/R/link/work'],
    ['link/work/gone', '/R/real/work/gone'],
    ['real/work/app', '/R/link/w*/app'],
    ['deep/app', '/R/link/w*'],
    ['link/work/app', '/R/real/**/app'],
    ['deep/app', '/R/link/**/app'],
    ['real/work', '/R/real/other/../work'],
    ['real/work', '/R/./real/./work/.'],
    ['real/x/../work', '/R/real/work'],
    ['real/work', '"/R/real/work"'],
    ['real/work', "/other, '/R/real/work' "],
    ['real/one, two', '["/R/real/one, two"]'],
    ['real/work', '["/other", " /R/link/work/ "]'],
    ['real/old (1)', '/R/real/old (1)'],
    ['real/work/app', '**/work'],
    ['real/work/app', '["/R/real/{work,other}"]'],
  ])('%s by %s', (folder, list) => {
    expect(isExcluded(folder, list)).toBe(true);
  });

  test.each([
    ['real/work', '/R/real/work/app'],
    ['real/work', '/R/real/wor'],
    ['real/work', '/R/deep/app'],
    ['real', '/R/link/*'],
    ['real/one', '["/R/real/one, two"]'],
    ['real/work', '**/app'],
    ['real/work', ''],
  ])('%s not by %s', (folder, list) => {
    expect(isExcluded(folder, list)).toBe(false);
  });

  test.each(['~', '$HOME', `\${HOME}`])('below the home folder by %s', (name) => {
    const folder = join(homedir(), 'some', 'work');
    expect(findExcluding(folder, `"${name}/some/x/../work"`)).toBe(`${name}/some/x/../work`);
    expect(findExcluding(folder, `${name}/some/wor*`)).toBe(`${name}/some/wor*`);
    expect(findExcluding(folder, name)).toBe(name);
    expect(findExcluding('/elsewhere', name)).toBeUndefined();
  });

  test('by a name that differs in how its letters are composed', () => {
    expect(findExcluding(join(root, 'caf\u00e9'), `${root}/cafe\u0301`)).toBeDefined();
  });
});

describe('what is neither an absolute path nor a glob is found', () => {
  test.each([
    ['work', 'work'],
    ['./work', './work'],
    ['../work', '../work'],
    ['/a, work', 'work'],
    ['"work"', 'work'],
    ['*/work', '*/work'],
    ['customer-*', 'customer-*'],
    ['!/work', '!/work'],
    ['~other/work', '~other/work'],
    ['$WORK/app', '$WORK/app'],
    ['~work', '~work'],
    ['["/a", "b"]', 'b'],
    ['["/a", 1]', '["/a", 1]'],
    ['{"a": 1}', '{"a": 1}'],
    ['/a/{b,c}', 'c}'],
    ['100', '100'],
  ])('%s', (list, bad) => {
    expect(findBadFolder(list)).toBe(bad);
  });

  test.each(['', ' , ', '/a', '~/a', '$HOME/a', '**', '**/a*', '["/a,b", "~"]', "'/a b'", 'C:\\work', '/'])(
    'and nothing else is: %j',
    (list) => {
      expect(findBadFolder(list)).toBeUndefined();
    },
  );
});
