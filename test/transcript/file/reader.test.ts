import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseLine } from '../../../src/transcript/file/line.js';
import { TranscriptReader } from '../../../src/transcript/file/reader.js';
import { findPreviousSession } from '../../../src/transcript/sessions/related-sessions.js';
import { jsonLines, linesOf, SESSION } from '../../support/lines.js';

let folder: string;
let files = 0;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-reader-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function fileWith(content: string | Buffer): string {
  files += 1;
  const path = join(folder, `${files}.jsonl`);
  writeFileSync(path, content);
  return path;
}

function texts(reader: TranscriptReader): [number, number, string][] {
  const all: [number, number, string][] = [];
  // A line's bytes are its own only until the next one is asked for.
  for (const { number, start, bytes } of reader.lines()) all.push([number, start, bytes.toString()]);
  return all;
}

describe('TranscriptReader', () => {
  test('reads whole lines with their numbers and offsets, and continues after the file has grown', () => {
    const path = fileWith('one\ntwo\nthr');
    const reader = TranscriptReader.open(path);
    expect(texts(reader)).toEqual([
      [1, 0, 'one'],
      [2, 4, 'two'],
    ]);
    expect(reader.unfinishedLine()).toMatchObject({ number: 3, start: 8, end: 11 });
    appendFileSync(path, 'ee\n\nfive\n');
    expect(texts(reader)).toEqual([
      [3, 8, 'three'],
      [4, 14, ''],
      [5, 15, 'five'],
    ]);
    expect(reader.unfinishedLine()).toBeUndefined();
    reader.close();
  });

  test('reads lines that are longer than its buffer, and newlines at the edges of the buffer', () => {
    const long = 'x'.repeat(1 << 18);
    const content = [long, 'a', long.slice(1), '', `${long}${long}b`, `c${long.repeat(8)}d`, 'end'];
    const reader = TranscriptReader.open(fileWith(`${content.join('\n')}\n`));
    expect(texts(reader).map(([, , text]) => text)).toEqual(content);
    reader.close();
  });

  test('skips the bytes of a line that is longer than 32 MB, finished or not, and goes on with the next', () => {
    const path = fileWith('one\n');
    // A hole takes no space on the disk.
    const tooLong = (1 << 26) + 5;
    truncateSync(path, 4 + tooLong);
    const reader = TranscriptReader.open(path);
    expect(texts(reader)).toEqual([[1, 0, 'one']]);
    const skipped = { number: 2, start: 4, bytes: Buffer.alloc(0), isTooLong: true };
    expect(reader.unfinishedLine()).toEqual({ ...skipped, end: 4 + tooLong });
    appendFileSync(path, '\nthree\n');
    const lines = [...reader.lines()];
    expect(lines).toMatchObject([
      { ...skipped, end: 5 + tooLong },
      { number: 3, start: 5 + tooLong, bytes: Buffer.from('three') },
    ]);
    expect(lines.map(parseLine)[0]).toMatchObject({ kind: 'unreadable', reason: 'longer than 67108864 bytes' });
    expect(reader.unfinishedLine()).toBeUndefined();
    reader.close();
  });

  test('moves to a line by its offset, or by counting lines', () => {
    const path = fileWith('one\ntwo\nthree\n');
    const from = (place: { line: number; offset: number }) => {
      const reader = TranscriptReader.open(path);
      const moved = reader.moveTo(place);
      const read = moved && texts(reader);
      reader.close();
      return read;
    };
    expect(from({ line: 3, offset: 8 })).toEqual([[3, 8, 'three']]);
    expect(from({ line: 3, offset: 0 })).toEqual([[3, 8, 'three']]);
    expect(from({ line: 4, offset: 0 })).toEqual([]);
    expect(from({ line: 5, offset: 0 })).toBeUndefined();
    expect(from({ line: 3, offset: 7 })).toBeUndefined();
    expect(from({ line: 9, offset: 900 })).toBeUndefined();
  });

  // Windows has neither FIFOs nor a way to open a file only if it is no link.
  test.skipIf(process.platform === 'win32')('opens only regular files', () => {
    const target = fileWith('{}\n');
    const link = join(folder, 'link.jsonl');
    symlinkSync(target, link);
    const fifo = join(folder, 'fifo.jsonl');
    execFileSync('mkfifo', [fifo]);
    mkdirSync(join(folder, 'folder.jsonl'));
    for (const path of [link, fifo, join(folder, 'folder.jsonl'), join(folder, 'missing.jsonl')]) {
      expect(() => TranscriptReader.open(path)).toThrow();
    }
  });
});

describe('a line', () => {
  const kind = (text: string) => linesOf([text])[0]?.kind;
  const lineOf = (bytes: Buffer) => parseLine({ number: 1, start: 0, end: bytes.length + 1, bytes });

  test('of a type that is skipped is not parsed', () => {
    expect(kind('{"type":"api-request-blob", no JSON')).toBe('other');
    expect(kind('{"type":"file-history-snapshot", no JSON')).toBe('other');
  });

  test('with an attachment is recognised by its beginning and end: its body is not parsed, but its uuids are', () => {
    const [line] = linesOf([
      '{"parentUuid":"p","isSidechain":false,"attachment":{"type":"date", no JSON},"type":"attachment","uuid":"u","timestamp":"x"}',
    ]);
    expect(line).toMatchObject({ kind: 'attachment', type: 'date', fields: { uuid: 'u', parentUuid: 'p' } });
  });

  test('may begin with a byte order mark or with NUL bytes', () => {
    expect(lineOf(Buffer.from('\uFEFF{"type":"user","message":{"content":"x"}}'))?.kind).toBe('user');
    expect(
      lineOf(Buffer.concat([Buffer.alloc(3), Buffer.from('{"type":"user","message":{"content":"x"}}')]))?.kind,
    ).toBe('user');
  });

  test('after a torn line without a newline is read', () => {
    const torn = '{"parentUuid":"a","type":"assistant","message":{"content":[{"type":"text","text":"to';
    const whole = '{"parentUuid":null,"type":"user","message":{"content":[{"type":"text","text":"whole"}]},"uuid":"u"}';
    expect(linesOf([torn + whole])[0]).toMatchObject({ kind: 'user', fields: { uuid: 'u' } });
    expect(linesOf([torn])[0]).toMatchObject({ kind: 'unreadable', reason: 'not JSON' });
  });

  test('that is not a JSON object is unreadable, and an empty one is skipped', () => {
    expect(kind('[]')).toBe('unreadable');
    expect(kind('"text"')).toBe('unreadable');
    expect(linesOf(['', '  '])).toEqual([]);
  });

  test('with invalid UTF-8 is read', () => {
    const bytes = Buffer.concat([
      Buffer.from('{"type":"user","message":{"content":"'),
      Buffer.from([0xff, 0xc0]),
      Buffer.from('"}}'),
    ]);
    expect(lineOf(bytes)).toMatchObject({ kind: 'user', content: '\uFFFD\uFFFD' });
  });

  test('loses only the fields whose types are wrong', () => {
    const [line] = linesOf([
      { type: 'user', uuid: 7, isMeta: 'yes', cwd: '/x', origin: 'human', message: { content: 'x' } },
    ]);
    expect(line).toMatchObject({ kind: 'user', content: 'x', fields: { cwd: '/x' } });
    expect(line).not.toMatchObject({ fields: { uuid: 7 } });
  });

  test('of an unknown type is kept as "other"', () => {
    expect(linesOf([{ type: 'brand-new', sessionId: 's' }])[0]).toMatchObject({ kind: 'other', type: 'brand-new' });
  });
});

describe('findPreviousSession', () => {
  const previous = '22222222-2222-4222-8222-222222222222';
  const transcript = (...lines: object[]) => fileWith(jsonLines(lines));
  const queued = { type: 'queue-operation', operation: 'dequeue', sessionId: SESSION };

  test('returns the session in the same folder that the first line or the first user line names', () => {
    const path = join(folder, `${previous}.jsonl`);
    writeFileSync(path, '');
    const found = { sessionId: previous, path };
    const user = { type: 'user', sessionId: previous, message: { content: 'x' } };
    expect(findPreviousSession(transcript(user), SESSION)).toEqual(found);
    expect(findPreviousSession(transcript(queued, user), SESSION)).toEqual(found);
    expect(findPreviousSession(transcript({ type: 'summary', sessionId: previous }), SESSION)).toEqual(found);
    rmSync(path);
    expect(findPreviousSession(transcript(user), SESSION)).toBeUndefined();
  });

  test.each([
    ['names the session itself', () => ({ type: 'user', sessionId: SESSION })],
    ['names no session', () => ({ type: 'file-history-snapshot', messageId: 'x' })],
    ['names a path', () => ({ type: 'user', sessionId: `../${basename(folder)}/${previous}` })],
    ['names a number', () => ({ type: 'user', sessionId: 7 })],
  ])('returns undefined if the first line %s, even if that file exists', (_, line) => {
    for (const name of [SESSION, previous, '7', 'undefined']) writeFileSync(join(folder, `${name}.jsonl`), '');
    expect(findPreviousSession(transcript(line()), SESSION)).toBeUndefined();
    for (const name of [SESSION, previous, '7', 'undefined']) rmSync(join(folder, `${name}.jsonl`));
  });

  // Links on Windows need a right of their own.
  test.skipIf(process.platform === 'win32')('does not follow a symlink', () => {
    const path = join(folder, `${previous}.jsonl`);
    symlinkSync(fileWith(''), path);
    expect(findPreviousSession(transcript({ type: 'user', sessionId: previous }), SESSION)).toBeUndefined();
    rmSync(path);
  });

  test('looks only at the first lines, and returns undefined if these are missing or torn', () => {
    writeFileSync(join(folder, `${previous}.jsonl`), '');
    const late = [...Array.from({ length: 30 }, () => queued), { type: 'user', sessionId: previous }];
    expect(findPreviousSession(transcript(...late), SESSION)).toBeUndefined();
    expect(findPreviousSession(fileWith(''), SESSION)).toBeUndefined();
    expect(findPreviousSession(fileWith(`{"type":"user","sessionId":"${previous}","sess`), SESSION)).toBeUndefined();
    rmSync(join(folder, `${previous}.jsonl`));
  });
});
