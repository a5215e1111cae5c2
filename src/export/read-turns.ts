import { setImmediate as othersTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../shared/log.js';
import { type Line, parseLine } from '../transcript/file/line.js';
import { findFirstTime } from '../transcript/file/lines.js';
import type { SourceLine, TranscriptReader } from '../transcript/file/reader.js';
import { findUnknownTypes } from '../transcript/file/unknown.js';
import { AnswerWatcher } from '../transcript/turns/answer-watcher.js';
import type { Turn } from '../transcript/turns/turn.js';
import { TurnGrouper } from '../transcript/turns/turn-grouper.js';
import type { Start } from './start-position.js';

/** Which turns are over: those that another has followed are; the last one is where something says so. */
export type Closing =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'everything' }
  /** The turn whose answer reads so, and all before it. The answer may still be on its way into the file. */
  | {
      readonly kind: 'answer';
      readonly text: string;
      readonly promptId: string | undefined;
      readonly waitUntil: number;
    };

/** Whether it is time to leave off reading, and whether that came before the end. */
export interface Reading {
  readonly isOver: () => boolean;
  isCutShort: boolean;
  /** Told from time to time up to which byte has been read. */
  readonly onRead?: ((offset: number) => void) | undefined;
}

interface ReadingTools {
  /** Up to where a run that failed knew turns to be over. */
  readonly closedLine: number;
  readonly reading: Reading;
  readonly log: Log;
  readonly onLine: (line: Line) => void;
}

const POLL_MS = 6;
/** A file that has not changed for this long belongs to a session that nobody works in. */
export const IDLE_MS = 10 * 60_000;
const LINES_BETWEEN_LOOKS = 256;
const UNREADABLE_LOGGED = 10;

/** The turns from the start on, as they end; last the one that no other has followed. */
export async function* readTurns(
  reader: TranscriptReader,
  start: Start,
  { sessionId, path, closing }: { sessionId: string; path: string; closing: Closing },
  { closedLine, reading, log, onLine }: ReadingTools,
): AsyncGenerator<{ turn: Turn; isClosed: boolean }> {
  const time = () => start.time ?? findFirstTime(reader);
  const grouper = new TurnGrouper({ ...start, thread: 'main', sessionId, time });
  const watch = closing.kind === 'answer' ? new AnswerWatcher(closing, start.sentLine) : undefined;
  let readUpTo = 0;
  let unreadable = 0;
  const unknown = new Map<string, number>();
  const take = (source: SourceLine): Turn | undefined => {
    const line = parseLine(source);
    readUpTo = source.number;
    if (!line) return undefined;
    onLine(line);
    watch?.observe(line);
    if (log.isDebug) for (const what of findUnknownTypes(line)) unknown.set(what, (unknown.get(what) ?? 0) + 1);
    if (line.kind === 'unreadable' && source.number > start.sentLine) {
      unreadable += 1;
      const details = { file: path, line: source.number, reason: line.reason };
      if (unreadable <= UNREADABLE_LOGGED) log.warn('a line cannot be read, it is left out', details);
    }
    return grouper.push(line);
  };
  for (;;) {
    for (const source of reader.lines()) {
      const turn = take(source);
      if (turn) yield { turn, isClosed: true };
      if (source.number % LINES_BETWEEN_LOOKS !== 0) continue;
      reading.onRead?.(source.end);
      reading.isCutShort = reading.isOver();
      if (reading.isCutShort) return;
      // Requests, and the heartbeat of locks, would stand still as long as a long file is read.
      await othersTurn();
    }
    if (closing.kind !== 'answer' || watch?.line !== undefined || Date.now() >= closing.waitUntil) break;
    await sleep(POLL_MS);
  }
  const rest = reader.unfinishedLine();
  const turn = rest && take(rest);
  if (turn) yield { turn, isClosed: true };
  if (unreadable > UNREADABLE_LOGGED) log.warn('more lines cannot be read', { file: path, lines: unreadable });
  for (const [what, times] of unknown) log.debug('never seen before, left out', { file: path, what, times });
  const open = grouper.open();
  if (!open) return;
  const promptLine = open.prompts[0].line;
  const isClosed =
    closing.kind === 'everything' ||
    (closing.kind === 'answer' && promptLine <= (watch?.line ?? readUpTo)) ||
    promptLine <= closedLine ||
    Date.now() - reader.status.changedAt > IDLE_MS;
  yield { turn: open, isClosed };
}
