import { isRecord, parseJson } from '../shared/json.js';
import { decodeEntry, type SessionEntry, upgradeEntryText } from './entry.js';

/**
 * The lines of the state file: JSON with a line for its version and one for each session's entry, `"<session id>":{…}`. A run
 * needs one or two of thousands, so the others stay as they are, one character for each byte (`latin1`): decoding 10,000 lines
 * took 40 ms.
 */
export type FileLines = readonly string[];

const ENCODING = 'latin1';
const HEAD = '{\n"version":3';
const TAIL = '\n}\n';
const BEFORE_LINE = ',\n';
const LINE = /^("(?:[^"\\]|\\.)*"):(.*)$/;

/** Undefined if the file is corrupt. Files of older versions, and files that an editor has reformatted, are converted. */
export function parseFile(file: Buffer): FileLines | undefined {
  const bytes = file.toString(ENCODING);
  if (bytes.startsWith(HEAD) && bytes.endsWith(TAIL)) {
    const lines = bytes.slice(0, -TAIL.length).split(BEFORE_LINE).slice(1);
    if (lines.every((line) => line.startsWith('"') && !line.includes('\n'))) return lines;
  }
  const all = parseJson(file.toString());
  if (!isRecord(all)) return undefined;
  const { version: _, ...entries } = all;
  return Object.entries(entries).map(([id, entry]) => formatLine(id, upgradeEntryText(JSON.stringify(entry))));
}

export function formatFile(lines: FileLines): Buffer {
  return Buffer.from([HEAD, ...lines].join(BEFORE_LINE) + TAIL, ENCODING);
}

/** Returns the complete entries of a file that is corrupt. */
export function salvage(file: Buffer): FileLines {
  const lines = file
    .toString(ENCODING)
    .split('\n')
    .map((line) => line.replace(/,$/, ''));
  return lines.filter((line) => isRecord(parseJson(fromBytes(LINE.exec(line)?.[2] ?? ''))));
}

export function findEntryText(lines: FileLines, sessionId: string): string | undefined {
  const start = formatLine(sessionId, '');
  const line = lines.find((each) => each.startsWith(start));
  return line && fromBytes(line.slice(start.length));
}

/** Returns the entries of lines; what is not an entry is left out. */
export function decodeLines(lines: FileLines): SessionEntry[] {
  return lines.flatMap((line) => {
    const [, key = '', text = ''] = LINE.exec(line) ?? [];
    const entry = decodeEntry(fromBytes(text));
    return entry ? [[JSON.parse(fromBytes(key)), entry]] : [];
  });
}

/** Whether a line is that of a settled entry. Thousands are not parsed to find the few that are not. */
export function isSettledLine(line: string): boolean {
  return SETTLED.test(line);
}

/** When the entry of a line was last changed. */
export function findUpdated(line: string): string {
  return UPDATED.exec(line)?.[1] ?? '';
}

// The fields that come first in every entry.
const UPDATED = /^"[^"]*":\{"updated":"([^"\\]*)"/;
const SETTLED = /^"[^"]*":\{"updated":"[^"\\]*","settled":true[,}]/;

export function withEntry(lines: FileLines, sessionId: string, text: string): FileLines {
  const start = formatLine(sessionId, '');
  const place = lines.findIndex((line) => line.startsWith(start));
  return lines.toSpliced(place < 0 ? lines.length : place, 1, start + toBytes(text));
}

export function withoutEntry(lines: FileLines, sessionId: string): FileLines {
  const start = formatLine(sessionId, '');
  return lines.filter((line) => !line.startsWith(start));
}

/** The bytes of a text, one character for each. */
export function toBytes(text: string): string {
  return Buffer.from(text).toString(ENCODING);
}

function fromBytes(bytes: string): string {
  return Buffer.from(bytes, ENCODING).toString();
}

function formatLine(sessionId: string, text: string): string {
  return toBytes(`${JSON.stringify(sessionId)}:${text}`);
}
