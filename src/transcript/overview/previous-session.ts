import { lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Line } from '../file/line.js';
import { readLines } from '../file/lines.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const LINES_LOOKED_AT = 20;

/**
 * The session that a transcript took over from, whose own Stop may never have come: its first line, or its first user
 * line where others stand before it, still names that session. The name becomes a path, so it must be a UUID.
 */
export function findPreviousSession(path: string, sessionId: string): { sessionId: string; path: string } | undefined {
  const previous = namedAtTheHead(path, sessionId);
  if (previous === undefined || !UUID.test(previous)) return undefined;
  const previousPath = join(dirname(path), `${previous}.jsonl`);
  const isThere = lstatSync(previousPath, { throwIfNoEntry: false })?.isFile();
  return isThere ? { sessionId: previous, path: previousPath } : undefined;
}

function namedAtTheHead(path: string, sessionId: string): string | undefined {
  for (const line of readLines(path)) {
    const named = sessionOf(line);
    const isTelling = line.place.number === 1 || line.kind === 'user';
    if (isTelling && named !== undefined && named !== sessionId) return named;
    if (line.kind === 'user' || line.kind === 'assistant' || line.place.number >= LINES_LOOKED_AT) return undefined;
  }
  return undefined;
}

function sessionOf(line: Line): string | undefined {
  return line.kind === 'request' || line.kind === 'unreadable' ? undefined : line.fields.sessionId;
}
