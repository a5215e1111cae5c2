import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { replaceOwnFile } from '../../src/shared/atomic-write.js';
import { readOwnFile, readRegularFile } from '../../src/shared/read-file.js';
import { removeFolder } from '../support/remove-folder.js';

let folder: string;
const path = () => join(folder, 'file');

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
});

afterEach(() => removeFolder(folder));

describe('a file', () => {
  test('is read as a whole, and one that is not there is an error', () => {
    expect(() => readRegularFile(path())).toThrow(/ENOENT/);
    expect(() => readOwnFile(path())).toThrow(/ENOENT/);
    writeFileSync(path(), 'ä\n');
    expect([readRegularFile(path()), readOwnFile(path())]).toEqual(['ä\n', 'ä\n']);
  });

  // Windows has no FIFOs.
  test.skipIf(process.platform === 'win32')('that is a FIFO blocks nobody', () => {
    execFileSync('mkfifo', [path()]);
    expect([readRegularFile(path()), readOwnFile(path())]).toEqual([undefined, '']);
  });

  test.skipIf(process.platform === 'win32')('that never ends is not read', () => {
    expect(readRegularFile('/dev/zero')).toBeUndefined();
  });

  test('of our own is replaced as a whole, and nothing else is left', () => {
    for (const text of ['one', '']) {
      replaceOwnFile(path(), text);
      expect(readOwnFile(path())).toBe(text);
    }
    expect(readdirSync(folder)).toEqual(['file']);
    if (process.platform !== 'win32') expect(statSync(path()).mode & 0o777).toBe(0o600);
    expect(() => replaceOwnFile(join(folder, 'file', 'below'), 'x')).toThrow(/ENOTDIR|ENOENT/);
  });
});
