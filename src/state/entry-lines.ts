import { isRecord, parseJson } from '../shared/json.js';

/**
 * The text of the state file: an entry for each session on a line of its own. Of thousands a run reads one or two, so the
 * text is searched as it is, a character for each byte (`latin1`): splitting and decoding 10,000 lines took 40 ms.
 */
export type EntryLines = string;

export const ENCODING = 'latin1';
const [HEAD, TAIL] = ['{\n', '\n}\n'];
export const NO_LINES: EntryLines = `${HEAD}${TAIL}`;
const LINE = /^("(?:[^"\\]|\\.)*"):(.*?),?$/;

/** As it was written here; as the first cc-langfuse, or somebody's editor, wrote it, it is parsed and taken apart. */
export function entryLinesIn(bytes: string): EntryLines | undefined {
  if (isOurs(bytes)) return bytes;
  const all = parseJson(decoded(bytes));
  return isRecord(all)
    ? joined(Object.entries(all).map(([id, value]) => lineOf(id, JSON.stringify(value))))
    : undefined;
}

/** What stands whole in a text that is corrupt. */
export function wholeLinesIn(bytes: string): EntryLines {
  const lines = bytes.split('\n').map((line) => line.replace(/,$/, ''));
  return joined(lines.filter((line) => isRecord(parseJson(decoded(LINE.exec(line)?.[2] ?? '')))));
}

/** The JSON of a session's entry. */
export function entryTextIn(lines: EntryLines, sessionId: string): string | undefined {
  const start = startOf(lines, sessionId);
  return start < 0 ? undefined : splitLine(lines.slice(start, lines.indexOf('\n', start)))?.[1];
}

/** Its session's id, and the JSON of its entry. */
export function splitLine(line: string): [string, string] | undefined {
  const [, key, text] = LINE.exec(line) ?? [];
  return key === undefined || text === undefined ? undefined : [JSON.parse(decoded(key)), decoded(text)];
}

export function linesThat(areWanted: (line: string) => boolean, lines: EntryLines): string[] {
  const wanted: string[] = [];
  for (let start = HEAD.length; start < lines.length - TAIL.length; ) {
    const end = lines.indexOf('\n', start);
    const line = lines.slice(start, end);
    if (areWanted(line)) wanted.push(line);
    start = end + 1;
  }
  return wanted;
}

export function withEntry(lines: EntryLines, sessionId: string, text: string): EntryLines {
  const line = lineOf(sessionId, text);
  const start = startOf(lines, sessionId);
  if (start < 0) return `${lines.slice(0, -TAIL.length)}${lines === NO_LINES ? '' : ',\n'}${line}${TAIL}`;
  const end = lines.indexOf('\n', start);
  return `${lines.slice(0, start)}${line}${lines[end - 1] === ',' ? ',' : ''}${lines.slice(end)}`;
}

export function withoutEntries(lines: EntryLines, sessionIds: readonly string[]): EntryLines {
  const keys = sessionIds.map((sessionId) => lineOf(sessionId, ''));
  const left = linesThat((line) => !keys.some((key) => line.startsWith(key)), lines);
  return joined(left.map((line) => line.replace(/,$/, '')));
}

/** The bytes of a text, a character for each. */
export function encoded(text: string): string {
  return Buffer.from(text).toString(ENCODING);
}

function decoded(bytes: string): string {
  return Buffer.from(bytes, ENCODING).toString();
}

function lineOf(sessionId: string, text: string): string {
  return encoded(`${JSON.stringify(sessionId)}:${text}`);
}

function joined(lines: readonly string[]): EntryLines {
  return `${HEAD}${lines.join(',\n')}${TAIL}`;
}

/** Where a session's line begins: the JSON of an entry holds no line break. */
function startOf(lines: EntryLines, sessionId: string): number {
  const place = lines.indexOf(`\n${lineOf(sessionId, '')}`);
  return place < 0 ? -1 : place + 1;
}

function isOurs(text: string): boolean {
  return text.startsWith(HEAD) && text.endsWith(TAIL) && countOf(text, '\n"') === countOf(text, '\n') - 2;
}

function countOf(text: string, mark: string): number {
  let count = 0;
  for (let place = text.indexOf(mark); place >= 0; place = text.indexOf(mark, place + 1)) count += 1;
  return count;
}
