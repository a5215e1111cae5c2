import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { keepCompiled, loadCompiled, mayKeepCompiled } from '../../src/shared/compiled-code.js';

/** The folder of a program, as large as the test needs it. */
let program: string;
let folder: string;

beforeEach(() => {
  program = mkdtempSync(join(tmpdir(), 'cc-langfuse-compiled-'));
  folder = join(program, 'compiled');
  write('as it is');
});

afterEach(() => rmSync(program, { recursive: true, force: true }));

const file = () => join(program, 'commands-hook-hook.cjs');
const kept = () => join(folder, readdirSync(folder)[0] ?? '');
const write = (text: string) => writeFileSync(file(), `exports.say = () => '${text}';`);

/** What the program says once compiled code may have been loaded. */
function load(): { readonly isLoaded: boolean; readonly says: string } {
  const require = createRequire(file());
  delete require.cache[file()];
  return { isLoaded: loadCompiled(program), says: require(file()).say() };
}

const FROM_FILE = { isLoaded: false, says: 'as it is' };

test('without compiled code nothing is loaded', () => {
  expect(load()).toEqual(FROM_FILE);
});

describe.skipIf(process.platform === 'win32')('compiled code', () => {
  beforeEach(() => keepCompiled(program));

  test('is loaded in place of the file, and only its owner can write it', () => {
    expect(load()).toEqual({ isLoaded: true, says: 'as it is' });
    for (const path of [folder, kept()]) expect(statSync(path).mode & 0o022).toBe(0);
    expect(readdirSync(folder)).toEqual([`${process.version}-${process.arch}`]);
  });

  test('is what runs, if V8 has the same flags: otherwise it compiles the file', () => {
    write('as it w4s');
    keepCompiled(program);
    const code = readFileSync(kept()).subarray(32);
    write('as it is.');
    const hash = createHash('sha256').update(readFileSync(file())).update(code).digest();
    writeFileSync(kept(), Buffer.concat([hash, code]));
    expect(load()).toEqual({ isLoaded: true, says: 'as it w4s' });
    setFlagsFromString('--no-lazy');
    try {
      expect(load()).toEqual({ isLoaded: true, says: 'as it is.' });
    } finally {
      setFlagsFromString('--lazy');
    }
  });

  test('of another content is ignored, though it is as long', () => {
    write('as it wa');
    expect(load()).toEqual({ isLoaded: false, says: 'as it wa' });
  });

  test('of another version of Node is ignored', () => {
    renameSync(kept(), join(folder, 'v20.0.0-x64'));
    expect(load()).toEqual(FROM_FILE);
  });

  test('that is torn is ignored, wherever', () => {
    const whole = readFileSync(kept());
    for (let length = 0; length < whole.length; length += 7) {
      writeFileSync(kept(), whole);
      truncateSync(kept(), length);
      expect(load()).toEqual(FROM_FILE);
    }
  });

  test('of which a byte has changed is ignored', () => {
    const whole = readFileSync(kept());
    for (let place = 0; place < whole.length; place += 7) {
      const changed = Buffer.from(whole);
      changed[place] = (changed[place] ?? 0) ^ 1;
      writeFileSync(kept(), changed);
      expect(load()).toEqual(FROM_FILE);
    }
  });

  test.each([0o020, 0o002])('that others may write (%o) is ignored, and so is a folder that they may write', (mode) => {
    chmodSync(kept(), 0o644 | mode);
    expect(load()).toEqual(FROM_FILE);
    chmodSync(kept(), 0o644);
    chmodSync(folder, 0o755 | mode);
    expect(load()).toEqual(FROM_FILE);
  });

  test('is not written into a folder that others may write', () => {
    rmSync(kept());
    chmodSync(folder, 0o777);
    keepCompiled(program);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.runIf(process.getuid?.() === 0)('of another user is ignored, and nothing is written into their folder', () => {
    chownSync(kept(), 12_345, 0);
    expect(load()).toEqual(FROM_FILE);
    chownSync(kept(), 0, 0);
    chownSync(folder, 12_345, 0);
    expect(load()).toEqual(FROM_FILE);
    rmSync(kept());
    keepCompiled(program);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('behind a link is ignored', () => {
    const elsewhere = join(program, 'elsewhere');
    cpSync(folder, elsewhere, { recursive: true });
    rmSync(folder, { recursive: true });
    symlinkSync(elsewhere, folder);
    expect(load()).toEqual(FROM_FILE);
  });
});

test('nothing happens if there is no such file, or no folder can be made', () => {
  writeFileSync(folder, '');
  keepCompiled(program);
  expect(readFileSync(folder, 'utf8')).toBe('');
  rmSync(file());
  keepCompiled(program);
  expect(loadCompiled(program)).toBe(false);
});

test('a worker keeps compiled code, but not in a clone, unless install has begun to', () => {
  const dist = join(program, 'dist');
  mkdirSync(dist);
  expect(mayKeepCompiled(dist)).toBe(true);
  mkdirSync(join(program, 'src'));
  expect(mayKeepCompiled(dist)).toBe(false);
  mkdirSync(join(dist, 'compiled'));
  expect(mayKeepCompiled(dist)).toBe(true);
});
