import type { Line } from '../file/line.js';
import { readFirstTime, readLines } from '../file/lines.js';
import { Originals } from '../sessions/originals.js';
import { NO_SESSION_FACTS, type Turn } from './turn.js';
import { TurnGrouper } from './turn-grouper.js';

/** All turns of a file that is no longer being written, the last one included. `sessionId` names lines without a uuid. */
export function* readAllTurns(
  path: string,
  thread: 'main' | 'agent',
  sessionId: string,
  lines: Iterable<Line> = readLines(path),
  originals = new Originals(path),
): Generator<Turn, void, undefined> {
  const grouper = openFile(path, thread, sessionId, originals);
  for (const line of lines) {
    const ended = grouper.push(line);
    if (ended) yield* ended.turns;
  }
  const open = grouper.open();
  if (open) yield* open.turns;
}

/** The turns of an agent that still works, and what of the last one may still grow; undefined if that is not certain. */
export function readTurnsSoFar(path: string, agentId: string, lines: Iterable<Line>) {
  const grouper = openFile(path, 'agent', agentId, new Originals(path));
  const ended = [...lines].flatMap((line) => grouper.push(line)?.turns ?? []);
  const isOpen = grouper.open() !== undefined;
  const soFar = grouper.soFar();
  if (isOpen && !soFar) return undefined;
  return { turns: soFar ? [...ended, soFar.turn] : ended, growing: soFar?.growing ?? new Set<string>() };
}

function openFile(path: string, thread: 'main' | 'agent', sessionId: string, originals: Originals): TurnGrouper {
  const time = () => readFirstTime(path);
  const start = { line: 1, offset: 0, turnCount: 0, session: NO_SESSION_FACTS };
  const isHeldBy = (other: string, uuid: string | undefined) => originals.holds(other, uuid);
  return new TurnGrouper({ ...start, thread, sessionId, time, isHeldBy });
}
