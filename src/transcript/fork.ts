import { toLine } from './line.js';
import { TranscriptReader } from './reader.js';

/** The uuids of a transcript's user lines: a fork takes them over with the lines. */
export function userLinesOf(path: string): Set<string> {
  const reader = TranscriptReader.open(path);
  const uuids = new Set<string>();
  try {
    for (const source of reader.lines()) {
      const line = toLine(source);
      if (line?.kind === 'user' && line.fields.uuid !== undefined) uuids.add(line.fields.uuid);
    }
    return uuids;
  } finally {
    reader.close();
  }
}
