import { type Line, toLine } from './line.js';
import { TranscriptReader } from './reader.js';

/** The lines of a file that nobody writes any more, the last one also without its newline. */
export function* readLines(path: string): Generator<Line, void, undefined> {
  const reader = TranscriptReader.open(path);
  try {
    for (const source of reader.lines()) {
      const line = toLine(source);
      if (line) yield line;
    }
    const rest = reader.rest();
    const last = rest && toLine(rest);
    if (last) yield last;
  } finally {
    reader.close();
  }
}

/** How many whole lines a file has. */
export function countLines(path: string): number {
  const reader = TranscriptReader.open(path);
  try {
    let count = 0;
    for (const { number } of reader.lines()) count = number;
    return count;
  } finally {
    reader.close();
  }
}

/** The time of a file's lines before any that has one: the first that it tells, or when it was made. */
export function firstTimestampReader(path: string): () => number {
  return () => {
    const reader = TranscriptReader.open(path);
    try {
      return reader.firstTime() ?? reader.status.bornAt;
    } finally {
      reader.close();
    }
  };
}
