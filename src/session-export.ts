import { setTimeout as sleep } from 'node:timers/promises';
import { encodeSpan } from './langfuse/otlp.js';
import type { Sender } from './langfuse/send.js';
import type { Log } from './log.js';
import { buildTurn } from './observations/build.js';
import type { Observation } from './observations/model.js';
import type { BuildOptions } from './observations/trace.js';
import { type Item, Outbox } from './outbox.js';
import { type Lock, takeLock } from './state/lock.js';
import { type Entry, NEW_ENTRY, type StateStore } from './state/store.js';
import { Subagents } from './subagent-export.js';
import { AnswerWatch } from './transcript/answer.js';
import { userLinesOf } from './transcript/fork.js';
import { toLine } from './transcript/line.js';
import { type SourceLine, TranscriptReader } from './transcript/reader.js';
import { NO_FACTS, type Position, type SessionFacts, type Turn } from './transcript/turn.js';
import { TurnGrouper } from './transcript/turn-grouper.js';
import { unknownIn } from './transcript/unknown.js';

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

export interface SessionExport {
  readonly sessionId: string;
  readonly path: string;
  readonly closing: Closing;
  readonly agents: { readonly running: ReadonlySet<string>; readonly areOver: boolean };
}

export interface ExportTools {
  readonly store: StateStore;
  readonly sender: Sender;
  /** When to give up, in ms since 1970. */
  readonly deadline: number;
  readonly options: Omit<BuildOptions, 'sessionId'>;
  readonly destination: string;
  readonly log: Log;
}

export interface ExportReport {
  /** How many the server has taken. */
  readonly observations: number;
  /** Why something is still to be sent. */
  readonly failure: string | undefined;
}

const POLL_MS = 10;
/** A file that has not changed for this long belongs to a session that nobody works in. */
export const IDLE_MS = 10 * 60_000;
const LINES_BETWEEN_LOOKS = 256;
const UNREADABLE_LOGGED = 10;

/** The way of a session: read, group, build, send, and move the state on as far as the server has acknowledged. */
export async function exportSession(what: SessionExport, tools: ExportTools): Promise<ExportReport> {
  const lock = await lockSession(what.sessionId, tools);
  try {
    const entry = tools.store.read(what.sessionId) ?? NEW_ENTRY;
    for (const start of startsFor(entry)) {
      const report = await exportFrom(start, { what, entry, tools, lock });
      if (report) return report;
      tools.log.warn('the transcript is not what it was, it is read from farther back', { file: what.path });
    }
    throw new Error('a transcript can always be read from its top');
  } finally {
    lock.release();
  }
}

/** One run at a time works on a session. Where there is no place for the state, what is sent now would be sent by every run. */
async function lockSession(sessionId: string, { store, deadline }: ExportTools): Promise<Lock> {
  const lock = await takeLock(store.lockPath(sessionId), deadline).catch((error: Error) => {
    throw new Error(`the state folder cannot be written: ${error.message}`);
  });
  if (!lock) throw new Error('another run was at work on it all the time');
  return lock;
}

/** Where to read from, and what has been acknowledged from there on. */
interface Start extends Position {
  readonly turnCount: number;
  readonly lastLine: number;
  readonly sentLine: number;
  readonly time: number | undefined;
  readonly session: SessionFacts;
  readonly agents: Entry['agents'];
  /** The first prompt of the turn that must stand there; without it the file is not what it was. */
  readonly prompt: string | undefined;
}

/** The last exported turn is read again, since it may have grown: by its byte, else by its line, else all from the top. */
function startsFor(entry: Entry): Start[] {
  const { last_line: lastLine, sent_line: sentLine = lastLine, turn_count: turnCount, turn_line, agents } = entry;
  const top = { line: 1, offset: 0, turnCount: 0, lastLine: 0, sentLine: 0, session: NO_FACTS } as const;
  const anew = { ...top, time: undefined, prompt: undefined, agents: undefined };
  if (lastLine === 0) return [{ ...anew, sentLine, agents, time: entry.time }];
  const read = { ...anew, turnCount, lastLine, sentLine, agents };
  if (turn_line === undefined) return [{ ...read, line: lastLine + 1 }, anew];
  const { prompt, time, titles = {}, pull_request: pullRequest } = entry;
  const session = { titles, pullRequest };
  const lastTurn = { ...read, line: turn_line, turnCount: turnCount - 1, time, prompt, session };
  return [{ ...lastTurn, offset: entry.offset ?? 0 }, lastTurn, anew];
}

interface Run {
  readonly what: SessionExport;
  readonly entry: Entry;
  readonly tools: ExportTools;
  readonly lock: Lock;
}

/** Undefined where the start is not there, or not the turn that it promises; nothing has been sent then. */
async function exportFrom(start: Start, { what, entry, tools, lock }: Run): Promise<ExportReport | undefined> {
  const { sessionId, path } = what;
  const { store, sender, deadline, log } = tools;
  const reader = TranscriptReader.open(path);
  const { bytes } = reader.status;
  let isSaved = false;
  const save = (change: Partial<Entry>) => {
    if (!lock.isHeld()) throw new Error('another run has taken over');
    isSaved = true;
    return store.update(sessionId, { path, destination: tools.destination, bytes, ...change });
  };
  const outbox = new Outbox({
    send: (spans) => sender.send(spans, deadline),
    advance: save,
    onDropped: (span) => log.warn('the server refuses an observation, it is left out', { session: sessionId, span }),
  });
  const options = { ...tools.options, sessionId };
  const status = { ...what.agents, idleBefore: Date.now() - IDLE_MS };
  const subagents = new Subagents(path, start.agents, status, options);
  // Half of the time is for reading: what has been read by then is sent, and the next run goes on.
  const reading = { until: (Date.now() + deadline) / 2, isCutShort: false };
  let closedLine: number | undefined;
  let forked: ReadonlySet<string> | undefined;
  let isWhereItWas = start.prompt === undefined;
  try {
    const position = reader.moveTo(start);
    if (!position) return undefined;
    for await (const { turn, isClosed } of readTurns(reader, { ...start, ...position }, what, entry, reading, log)) {
      isWhereItWas ||= turn.key === start.prompt && turn.lineOffsets.includes(start.lastLine);
      if (!isWhereItWas) return undefined;
      if (!isClosed) break;
      closedLine = turn.lineOffsets.at(-1);
      if (outbox.failure !== undefined) continue;
      forked ??= start.line === 1 ? promptsOfOriginal(turn, what, store) : new Set();
      const own = forked.has(turn.key) ? { ...turn, copied: true } : turn;
      await outbox.add(itemsFor(own, start, subagents, options));
    }
    if (!isWhereItWas && !reading.isCutShort) return undefined;
    if (!reading.isCutShort) await outbox.add([...subagents.due(), ...subagents.unplaced()].map(itemOf));
    await outbox.flush();
  } finally {
    reader.close();
  }
  const failure = outbox.failure ?? (reading.isCutShort ? 'out of time while reading' : undefined);
  // Of a session that is over or idle nothing more may come: it need not be looked at again.
  const isLast = what.agents.areOver || what.closing.kind === 'nothing';
  if (failure !== undefined) {
    const { since = new Date().toISOString(), attempts = 0 } = entry.pending ?? {};
    await save({ pending: { since, attempts: attempts + 1, reason: failure, closed_line: closedLine } });
  } else if (entry.pending || (isLast && !isSaved && entry.bytes !== bytes)) {
    await save({ pending: undefined });
  }
  return { observations: outbox.sent, failure };
}

/** The turns from the start on, as they end; last the one that no other has followed. */
async function* readTurns(
  reader: TranscriptReader,
  start: Start,
  { sessionId, path, closing }: SessionExport,
  entry: Entry,
  reading: { readonly until: number; isCutShort: boolean },
  log: Log,
): AsyncGenerator<{ turn: Turn; isClosed: boolean }> {
  const time = () => start.time ?? reader.firstTime() ?? reader.status.bornAt;
  const grouper = new TurnGrouper({ ...start, thread: 'main', sessionId, time });
  const watch = closing.kind === 'answer' ? new AnswerWatch(closing, start.sentLine) : undefined;
  let readUpTo = 0;
  let unreadable = 0;
  const unknown = new Map<string, number>();
  const take = (source: SourceLine): Turn | undefined => {
    const line = toLine(source);
    readUpTo = source.number;
    if (!line) return undefined;
    watch?.see(line);
    if (log.isDebug) for (const what of unknownIn(line)) unknown.set(what, (unknown.get(what) ?? 0) + 1);
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
      if (source.number % LINES_BETWEEN_LOOKS === 0 && Date.now() >= reading.until) {
        reading.isCutShort = true;
        return;
      }
    }
    if (closing.kind !== 'answer' || watch?.line !== undefined || Date.now() >= closing.waitUntil) break;
    await sleep(POLL_MS);
  }
  const rest = reader.rest();
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
    promptLine <= (entry.pending?.closed_line ?? 0) ||
    Date.now() - reader.status.changedAt > IDLE_MS;
  yield { turn: open, isClosed };
}

/**
 * Up to 2.1.197 a fork bears no mark: it begins with the same prompt as another session, whose own turns are its copies.
 */
function promptsOfOriginal({ key }: Turn, { sessionId }: SessionExport, store: StateStore): ReadonlySet<string> {
  const path = store.pathOfSessionWithFirst(key, sessionId);
  try {
    return path === undefined ? new Set() : userLinesOf(path);
  } catch {
    // gone by now: what it had was exported, as far as its file still had it
    return new Set([key]);
  }
}

/**
 * What is to be sent of a turn: the observations that rest on a new line, then what its subagents have, and last, if the
 * turn itself got any line, its root.
 */
function itemsFor(turn: Turn, { lastLine, sentLine }: Start, subagents: Subagents, options: BuildOptions): Item[] {
  const last = turn.lineOffsets.at(-1) ?? 0;
  const done: Partial<Entry> = {
    last_line: last,
    turn_count: turn.number,
    turn_line: turn.start.line,
    offset: turn.start.offset,
    prompt: turn.key,
    time: turn.inheritedTime,
    titles: Object.keys(turn.sessionBefore.titles).length > 0 ? turn.sessionBefore.titles : undefined,
    pull_request: turn.sessionBefore.pullRequest,
    sent_line: last,
    ...(turn.number === 1 && !turn.copied && { first: turn.key }),
  };
  if (turn.copied) return last > lastLine ? [{ span: undefined, label: '', change: done }] : [];
  const { children, root } = buildTurn(turn, options);
  const started = subagents.see(turn, root.trace);
  const agents = subagents.due().map(itemOf);
  if (last <= lastLine) return agents;
  const news = [...children, ...subagents.lost(turn, root.trace)].filter(({ line }) => line > sentLine);
  return [
    ...news.map((observation, place) =>
      // Several may rest on one line: with the last of them the line is done.
      itemOf({
        observation,
        change: news[place + 1]?.line === observation.line ? {} : { sent_line: observation.line },
      }),
    ),
    ...agents,
    itemOf({ observation: root, change: { ...done, ...subagents.kept(started) } }),
  ];
}

function itemOf({ observation, change }: { observation: Observation; change: Partial<Entry> }): Item {
  const { type, id, trace } = observation;
  return { span: encodeSpan(observation), label: `${type} ${id} of trace ${trace.id}`, change };
}
