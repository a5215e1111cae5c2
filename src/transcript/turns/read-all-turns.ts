import type { Line } from '../file/line.js';
import { readFirstTime, readLines } from '../file/lines.js';
import { NO_SESSION_FACTS, type Turn } from './turn.js';
import { TurnGrouper } from './turn-grouper.js';

/** All turns of a file that nobody writes any more, the last one included. `name` is what its lines are called by. */
export function* readAllTurns(
  path: string,
  thread: 'main' | 'agent',
  name: string,
  onLine: (line: Line) => void = () => {},
): Generator<Turn, void, undefined> {
  const start = {
    session: NO_SESSION_FACTS,
    sessionId: name,
    turnCount: 0,
    line: 1,
    offset: 0,
    time: () => readFirstTime(path),
  };
  const grouper = new TurnGrouper({ ...start, thread });
  for (const line of readLines(path)) {
    onLine(line);
    const ended = grouper.push(line);
    if (ended) yield ended;
  }
  const open = grouper.open();
  if (open) yield open;
}
