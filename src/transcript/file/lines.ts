import { type Line, parseLine, parseTimestamp } from './line.js';
import { type SourceLine, TranscriptReader } from './reader.js';

export function* parseLines(lines: Iterable<SourceLine>): Generator<Line, void, undefined> {
  for (const source of lines) {
    const line = parseLine(source);
    if (line) yield line;
  }
}

/** The last line of a process that was killed has no newline. */
export function* listAllLines(reader: TranscriptReader): Generator<SourceLine, void, undefined> {
  yield* reader.lines();
  const last = reader.unfinishedLine();
  if (last) yield last;
}

/** The lines of a file that is no longer being written. */
export function* readLines(path: string): Generator<Line, void, undefined> {
  const reader = TranscriptReader.open(path);
  try {
    yield* parseLines(reader.lines());
    const last = parseUnfinishedLine(reader);
    if (last) yield last;
  } finally {
    reader.close();
  }
}

/** The last line counts even without its newline, if it can be read. Otherwise only half of it has been written yet. */
export function parseUnfinishedLine(reader: TranscriptReader): Line | undefined {
  const source = reader.unfinishedLine();
  const line = source && parseLine(source);
  return line?.kind === 'unreadable' ? undefined : line;
}

const HEAD_BYTES = 1 << 18;

/** The time for lines before any line with a time: the first timestamp near the file's beginning, or the file's birth. */
export function findFirstTime(reader: TranscriptReader): number {
  const head = reader.readBytes({ start: 0, end: HEAD_BYTES }).toString('latin1');
  return parseTimestamp(/"timestamp":"([^"]{1,40})"/.exec(head)?.[1]) ?? reader.status.bornAt;
}

export function readFirstTime(path: string): number {
  return withReader(path, findFirstTime);
}

export function withReader<T>(path: string, use: (reader: TranscriptReader) => T): T {
  const reader = TranscriptReader.open(path);
  try {
    return use(reader);
  } finally {
    reader.close();
  }
}
