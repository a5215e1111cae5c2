import type { Line } from '../file/line.js';
import { readFirstTime, readLines } from '../file/lines.js';
import { NO_SESSION_FACTS, type Turn } from './turn.js';
import { TurnGrouper } from './turn-grouper.js';

/** All turns of a file that is no longer being written, the last one included. `sessionId` names lines without a uuid. */
export function* readAllTurns(
  path: string,
  thread: 'main' | 'agent',
  sessionId: string,
  lines: Iterable<Line> = readLines(path),
): Generator<Turn, void, undefined> {
  const time = () => readFirstTime(path);
  const start = { line: 1, offset: 0, turnCount: 0, session: NO_SESSION_FACTS };
  const grouper = new TurnGrouper({ ...start, thread, sessionId, time });
  for (const line of lines) {
    const ended = grouper.push(line);
    if (ended) yield* ended.turns;
  }
  const open = grouper.open();
  if (open) yield* open.turns;
}
