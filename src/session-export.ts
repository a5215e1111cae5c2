import { isDeepStrictEqual } from 'node:util';
import { encodeSpan } from './langfuse/otlp.js';
import type { Sender } from './langfuse/send.js';
import type { Log } from './log.js';
import { withMarks } from './marks.js';
import { buildTurn } from './observations/build.js';
import { type BuildOptions, traceOf } from './observations/trace.js';
import { type Item, Outbox } from './outbox.js';
import { type Start, startsFor, takenOverAt } from './resume.js';
import { type Closing, IDLE_MS, type Reading, readTurns } from './session-turns.js';
import { type Lock, takeLock } from './state/lock.js';
import { type Entry, NEW_ENTRY, type StateStore } from './state/store.js';
import { type AgentItem, Subagents } from './subagent-export.js';
import { userLinesOf } from './transcript/fork.js';
import { TranscriptReader } from './transcript/reader.js';
import { NO_FACTS, type Turn } from './transcript/turn.js';

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
  // A recovery says nothing of how the session stands.
  const ended = what.closing.kind === 'nothing' ? entry.ended : what.agents.areOver;
  let isSaved = false;
  const save = (change: Partial<Entry>) => {
    if (!lock.isHeld()) throw new Error('another run has taken over');
    isSaved = true;
    return store.update(sessionId, { path, destination: tools.destination, bytes, ended, ...change });
  };
  const outbox = new Outbox({
    send: (spans) => sender.send(spans, deadline),
    advance: save,
    onDropped: (span) => log.warn('the server refuses an observation, it is left out', { session: sessionId, span }),
  });
  const options = { ...tools.options, sessionId };
  const status = { ...what.agents, idleBefore: Date.now() - IDLE_MS };
  const subagents = new Subagents({
    transcriptPath: path,
    known: start.agents,
    unknownBefore: Date.parse(takenOverAt(entry) ?? '') || 0,
    status,
    options,
    onUnreadable: (file, line, reason) => log.warn('a line cannot be read, it is left out', { file, line, reason }),
  });
  // Half of the time is for reading: what has been read by then is sent, and the next run goes on.
  const reading = { until: (Date.now() + deadline) / 2, isCutShort: false };
  let closedLine: number | undefined;
  let family: ReadonlySet<string> | undefined;
  let isWhereItWas = start.prompt === undefined;
  try {
    const position = reader.moveTo(start);
    if (!position) return undefined;
    for await (const { turn, isClosed } of readTurns(reader, { ...start, ...position }, what, {
      closedLine: entry.pending?.closed_line,
      reading,
      log,
    })) {
      isWhereItWas ||= turn.key === start.prompt && turn.lineOffsets.includes(start.lastLine);
      if (!isWhereItWas) return undefined;
      if (!isClosed) break;
      closedLine = turn.lineOffsets.at(-1);
      if (outbox.failure !== undefined) continue;
      family ??= turnsOfFamily(entry.first ?? turn.key, what, store);
      await addTurn(turn, { start, entry, family, subagents, options, outbox, reading });
      if (reading.isCutShort) break;
    }
    if (!isWhereItWas && !reading.isCutShort) return undefined;
    if (!reading.isCutShort) await addAgents(subagents.due(), outbox, reading);
    if (!reading.isCutShort) await addAgents(subagents.unplaced(), outbox, reading);
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
  } else if (entry.pending || (isLast && !isSaved && (entry.bytes !== bytes || entry.ended !== ended))) {
    await save({ pending: undefined });
  }
  return { observations: outbox.sent, failure };
}

/**
 * Up to 2.1.197 a fork bears no mark: it begins with the same prompt as another session. What that one has exported is not
 * exported again.
 */
function turnsOfFamily(first: string, { sessionId }: SessionExport, store: StateStore): ReadonlySet<string> {
  const exported = store.sessionsWithFirst(first, sessionId).map(({ path, afterLine, upToLine }) => {
    try {
      return userLinesOf(path, afterLine, upToLine);
    } catch {
      // gone by now; at least its first turn was exported
      return [first];
    }
  });
  return new Set(exported.flatMap((uuids) => [...uuids]));
}

interface TurnExport {
  readonly start: Start;
  readonly entry: Entry;
  /** Turns that other sessions have exported. */
  readonly family: ReadonlySet<string>;
  readonly subagents: Subagents;
  readonly options: BuildOptions;
  readonly outbox: Outbox;
  readonly reading: Reading;
}

/**
 * What is to be sent of a turn: the observations that rest on a new line, then what its subagents have, and last, if the
 * turn itself got any line, its root.
 */
async function addTurn(
  turn: Turn,
  { start, entry, family, subagents, options, outbox, reading }: TurnExport,
): Promise<void> {
  const last = turn.lineOffsets.at(-1) ?? 0;
  const isNew = last > start.lastLine;
  const isOfFamily = family.has(turn.key);
  const done: Partial<Entry> = {
    last_line: last,
    turn_count: turn.number,
    turn_line: turn.start.line,
    offset: turn.start.offset,
    prompt: turn.key,
    time: turn.inheritedTime,
    session: isDeepStrictEqual(turn.sessionBefore, NO_FACTS) ? undefined : turn.sessionBefore,
    sent_line: last,
    agents_since: takenOverAt(entry),
    ...(turn.number === 1 && !turn.copied && { first: turn.key }),
    ...(isOfFamily && { copied_line: last }),
  };
  if (turn.copied || isOfFamily) {
    if (isNew) await outbox.add([{ span: undefined, label: '', change: done }]);
    return;
  }
  const started = subagents.see(turn, traceOf(turn, options));
  // The last exported turn is read again by every run, and seldom has anything new to be built of.
  const built = isNew ? buildTurn(turn, options) : undefined;
  const news = withMarks(built?.children.filter(({ line }) => line > start.sentLine) ?? [], (line) => ({
    sent_line: line,
  }));
  await outbox.add(news.map(({ observation, mark = {} }) => itemOf({ observation, change: mark })));
  await addAgents(subagents.due(), outbox, reading);
  if (!built || reading.isCutShort) return;
  await outbox.add([itemOf({ observation: built.root, change: { ...done, ...subagents.kept(started) } })]);
}

/** One agent after the other, as long as there is time to read them. */
async function addAgents(agents: Iterable<readonly AgentItem[]>, outbox: Outbox, reading: Reading): Promise<void> {
  for (const items of agents) {
    await outbox.add(items.map(itemOf));
    if (outbox.failure !== undefined) return;
    reading.isCutShort = Date.now() >= reading.until;
    if (reading.isCutShort) return;
  }
}

function itemOf({ observation, change }: AgentItem): Item {
  const { type, id, trace } = observation;
  return { span: encodeSpan(observation), label: `${type} ${id} of trace ${trace.id}`, change };
}
