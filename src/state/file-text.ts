import { isRecord, parseJson } from '../shared/json.js';
import { upgradeEntryText } from './entry.js';

/**
 * The text of the state file: JSON with a line for its version and one for each session's entry. A run needs one or two of
 * thousands, so the text is searched as it is, one character for each byte (`latin1`): splitting and decoding 10,000 lines took
 * 40 ms.
 */
export type FileText = string;

export const ENCODING = 'latin1';
const VERSION = 2;
const HEAD = `{\n"version":${VERSION}`;
const TAIL = '\n}\n';
const BEFORE_LINE = ',\n';
export const EMPTY_FILE: FileText = HEAD + TAIL;
const LINE = /^("(?:[^"\\]|\\.)*"):(.*)$/;

/** A session's id and the JSON of its entry. */
export type EntryLine = [sessionId: string, text: string];

/** Undefined if the file is corrupt. Files of older versions, and files that an editor has reformatted, are converted. */
export function parseFile(bytes: string): FileText | undefined {
  if (isCurrent(bytes)) return bytes;
  const all = parseJson(fromBytes(bytes));
  if (!isRecord(all)) return undefined;
  const { version: _, ...entries } = all;
  return joinLines(
    Object.entries(entries).map(([id, entry]) => formatLine(id, upgradeEntryText(JSON.stringify(entry)))),
  );
}

/** Returns the complete entries of a file that is corrupt. */
export function salvage(bytes: string): FileText {
  const lines = bytes.split('\n').map((line) => line.replace(/,$/, ''));
  return joinLines(lines.filter((line) => isRecord(parseJson(fromBytes(LINE.exec(line)?.[2] ?? '')))));
}

export function findEntryText(file: FileText, sessionId: string): string | undefined {
  const start = findLine(file, sessionId);
  return start < 0 ? undefined : splitLine(lineAt(file, start))?.[1];
}

/** Returns the entries whose JSON is wanted; it is passed as bytes. */
export function filterEntries(file: FileText, isWanted: (text: string) => boolean): EntryLine[] {
  const found: EntryLine[] = [];
  for (let start = HEAD.length + BEFORE_LINE.length; start < file.length - TAIL.length; ) {
    const line = lineAt(file, start);
    // A session id is a UUID; in a key with other characters the JSON would begin elsewhere, which is only slower.
    if (isWanted(line.slice(line.indexOf('":') + 2)))
      found.push(...[splitLine(line)].filter((each) => each !== undefined));
    start += line.length + BEFORE_LINE.length;
  }
  return found;
}

export function withEntry(file: FileText, sessionId: string, text: string): FileText {
  const line = formatLine(sessionId, text);
  const start = findLine(file, sessionId);
  if (start < 0) return file.slice(0, -TAIL.length) + BEFORE_LINE + line + TAIL;
  return file.slice(0, start) + line + file.slice(start + lineAt(file, start).length);
}

export function withoutEntry(file: FileText, sessionId: string): FileText {
  const start = findLine(file, sessionId);
  if (start < 0) return file;
  return file.slice(0, start - BEFORE_LINE.length) + file.slice(start + lineAt(file, start).length);
}

/** The bytes of a text, one character for each. */
export function toBytes(text: string): string {
  return Buffer.from(text).toString(ENCODING);
}

function fromBytes(bytes: string): string {
  return Buffer.from(bytes, ENCODING).toString();
}

function splitLine(line: string): EntryLine | undefined {
  const [, key, text] = LINE.exec(line) ?? [];
  return key === undefined || text === undefined ? undefined : [JSON.parse(fromBytes(key)), fromBytes(text)];
}

function formatLine(sessionId: string, text: string): string {
  return toBytes(`${JSON.stringify(sessionId)}:${text}`);
}

function joinLines(lines: readonly string[]): FileText {
  return HEAD + lines.map((line) => BEFORE_LINE + line).join('') + TAIL;
}

/** Where a session's line begins; -1 if it has none. The JSON of an entry contains no line break. */
function findLine(file: FileText, sessionId: string): number {
  const place = file.indexOf(BEFORE_LINE + formatLine(sessionId, ''));
  return place < 0 ? -1 : place + BEFORE_LINE.length;
}

/** The line that begins here, without the comma that follows it. */
function lineAt(file: FileText, start: number): string {
  const end = file.indexOf('\n', start);
  return file.slice(start, file[end - 1] === ',' ? end - 1 : end);
}

function isCurrent(bytes: string): boolean {
  if (!bytes.startsWith(HEAD) || !bytes.endsWith(TAIL)) return false;
  return countOccurrences(bytes, `${BEFORE_LINE}"`) === countOccurrences(bytes, '\n') - 3;
}

function countOccurrences(text: string, mark: string): number {
  let count = 0;
  for (let place = text.indexOf(mark); place >= 0; place = text.indexOf(mark, place + 1)) count += 1;
  return count;
}
