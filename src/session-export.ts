import { isDeepStrictEqual } from 'node:util';
import { type Caller, withRun } from './caller.js';
import { turnsOfFamily } from './family.js';
import type { ScoreReport } from './langfuse/scores.js';
import type { SendReport } from './langfuse/send.js';
import type { Outgoing } from './langfuse/transport.js';
import type { Log } from './log.js';
import { withMarks } from './marks.js';
import { buildTurn } from './observations/build.js';
import type { Observation } from './observations/model.js';
import { scoresOf, type TurnScores } from './observations/scores.js';
import { traceOf } from './observations/trace.js';
import { Outbox } from './outbox.js';
import { knownLineOf, type Start, startsFor, takenOverAt } from './resume.js';
import { settleScores } from './score-export.js';
import { type OptionsIn, optionsByFolder, type SessionSettings } from './session-options.js';
import { type Closing, IDLE_MS, type Reading, readTurns } from './session-turns.js';
import { type Entry, NEW_ENTRY } from './state/entry.js';
import type { Lock } from './state/lock.js';
import type { SessionState } from './state/store.js';
import { type AgentItem, type AgentStatus, Subagents } from './subagent-export.js';
import { NOTHING, type Tally } from './tally.js';
import { TranscriptReader } from './transcript/reader.js';
import { NO_FACTS, type Turn } from './transcript/turn.js';

/** What an export is made for: something that Claude Code tells of the session, what a run had left, or the user's word. */
export type Occasion = 'event' | 'recovery' | 'backfill';

export interface SessionExport {
  readonly sessionId: string;
  readonly path: string;
  readonly occasion: Occasion;
  readonly closing: Closing;
  readonly agents: Omit<AgentStatus, 'idleBefore'>;
  /** What has started the run, where the session is its own. */
  readonly caller?: Caller;
  /** What is known of it is forgotten: all of it is sent again. */
  readonly isAnew?: boolean;
}

export interface ExportTools {
  readonly store: SessionState;
  readonly encode: (observation: Observation) => Outgoing;
  readonly send: (spans: readonly Outgoing[]) => Promise<SendReport>;
  /** Sends the figures of turns that the server has taken. */
  readonly sendScores: (turns: readonly TurnScores[]) => Promise<ScoreReport>;
  /** Until when another run is waited for that works on the session, in ms since 1970. */
  readonly waitUntil: number;
  /** Until when there is time to read; what has been read by then is sent, and the next run goes on. */
  readonly readUntil: number;
  /** The user wants no more. */
  readonly stop?: AbortSignal;
  readonly options: SessionSettings;
  /** The settings behind these options, as they were given. */
  readonly given: { readonly [variable: string]: string };
  readonly destination: string;
  readonly log: Log;
  /** Told from time to time up to which byte has been read. */
  readonly onRead?: (offset: number) => void;
  /** Told of each observation that is to be sent. */
  readonly onObservation?: (observation: Observation) => void;
  /** Told what the server has taken with each request. */
  readonly onTaken?: (taken: Tally) => void;
}

export interface ExportReport {
  readonly sent: Tally;
  /** Why something is still to be sent. */
  readonly failure: string | undefined;
  readonly isStopped: boolean;
}

/** The way of a session: read, group, build, send, and move the state on as far as the server has acknowledged. */
export async function exportSession(what: SessionExport, tools: ExportTools): Promise<ExportReport> {
  const { store, log } = tools;
  const lock = await lockSession(what.sessionId, tools);
  if (!lock) {
    // Whoever works on it brings what a recovery would.
    const failure = what.occasion === 'recovery' ? undefined : 'another run was at work on it all the time';
    return { sent: NOTHING, failure, isStopped: tools.stop?.aborted ?? false };
  }
  try {
    let entry = store.read(what.sessionId);
    if (what.isAnew && entry) {
      await forget(entry, what.sessionId, store);
      entry = store.read(what.sessionId);
    }
    for (const start of startsFor(entry ?? NEW_ENTRY)) {
      const report = await exportFrom(start, { what, entry, tools, lock });
      if (report) return report;
      log.warn('the transcript is not what it was, it is read from farther back', { file: what.path });
    }
    throw new Error('a transcript can always be read from its top');
  } finally {
    lock.release();
  }
}

/** What is known of a session's life stays; how far it was exported does not. */
async function forget(entry: Entry, sessionId: string, store: SessionState) {
  const { path, destination, given, callers, ended, backfilled } = entry;
  await store.remove([sessionId]);
  await store.update(sessionId, { path, destination, given, callers, ended, backfilled });
}

/** One run at a time works on a session. Where there is no place for the state, what is sent now would be sent by every run. */
function lockSession(sessionId: string, { store, waitUntil, stop }: ExportTools): Promise<Lock | undefined> {
  return store.lock(sessionId, waitUntil, stop).catch((error: Error) => {
    throw new Error(`the state folder cannot be written: ${error.message}`);
  });
}

interface Run {
  readonly what: SessionExport;
  /** Undefined where the session is new. */
  readonly entry: Entry | undefined;
  readonly tools: ExportTools;
  readonly lock: Lock;
}

/** Undefined where the start is not there, or not the turn that it promises; nothing has been sent then. */
async function exportFrom(start: Start, { what, entry, tools, lock }: Run): Promise<ExportReport | undefined> {
  const { sessionId, path } = what;
  const { store, stop, log } = tools;
  const reader = TranscriptReader.open(path);
  const known = entry ?? NEW_ENTRY;
  const { callers: callersBefore = [] } = known;
  const callers = what.caller ? withRun(callersBefore, what.caller, knownLineOf(known)) : callersBefore;
  const life = { ...lifeOf(what, entry), ...(callers !== callersBefore && { callers }) };
  /** Known once all has been read: what is left then need not be looked for behind it. */
  let reached: Pick<Entry, 'bytes' | 'agents_bytes'> | undefined;
  let isSaved = false;
  const save = (change: Partial<Entry>) => {
    if (!lock.isHeld()) throw new Error('another run has taken over');
    isSaved = reached !== undefined;
    const { destination, given } = tools;
    return store.update(sessionId, { path, destination, given, ...life, ...reached, ...change });
  };
  const outbox = new Outbox({
    ready: () => store.ready(),
    encode: tools.encode,
    send: tools.send,
    advance: save,
    onObservation: tools.onObservation,
    onTaken: tools.onTaken,
    onDropped: (span) => log.warn('the server refuses an observation, it is left out', { session: sessionId, span }),
    onRejected: ({ spans: rejected, reason }, sent) =>
      log.warn('the Collector took a request with reservations', {
        session: sessionId,
        rejected,
        sent,
        reason,
      }),
  });
  const scoreTools = {
    send: tools.sendScores,
    save,
    onRefused: (score: string) => log.warn('the server refuses a score, it is left out', { session: sessionId, score }),
  };
  const optionsIn = optionsByFolder({ sessionId, callers }, tools.options);
  const status = { ...what.agents, idleBefore: Date.now() - IDLE_MS };
  const subagents = new Subagents({
    transcriptPath: path,
    known: start.agents,
    unknownBefore: Date.parse(takenOverAt(known) ?? '') || 0,
    status,
    optionsIn,
    onUnreadable: (file, line, reason) => log.warn('a line cannot be read, it is left out', { file, line, reason }),
  });
  const isOver = () => stop?.aborted === true || Date.now() >= tools.readUntil;
  const reading: Reading = { isOver, isCutShort: false, onRead: tools.onRead };
  const closedBefore = known.pending?.closed_line ?? 0;
  let closedLine: number | undefined;
  let family: ReadonlySet<string> | undefined;
  let isWhereItWas = start.prompt === undefined;
  let openFrom: number | undefined;
  try {
    const position = reader.moveTo(start);
    if (!position) return undefined;
    for await (const { turn, isClosed } of readTurns(reader, { ...start, ...position }, what, {
      closedLine: closedBefore,
      reading,
      log,
    })) {
      isWhereItWas ||= turn.key === start.prompt && turn.lineOffsets.includes(start.lastLine);
      if (!isWhereItWas) return undefined;
      // Once a session had ended, what followed without a start ran with tracing off.
      const isBehindItsEnd = what.occasion === 'recovery' && known.ended && (turn.lineOffsets[0] ?? 0) > closedBefore;
      if (isBehindItsEnd) break;
      if (!isClosed) {
        openFrom = turn.start.offset;
        break;
      }
      closedLine = turn.lineOffsets.at(-1);
      if (outbox.failure !== undefined) continue;
      family ??= turnsOfFamily(known.first ?? turn.key, what, tools);
      await addTurn(turn, { start, entry: known, family, subagents, optionsIn, outbox, reading });
      if (reading.isCutShort) break;
    }
    if (!isWhereItWas && !reading.isCutShort) return undefined;
    if (!reading.isCutShort) await addAgents(subagents.due(), outbox, reading);
    if (!reading.isCutShort) await addAgents(subagents.unplaced(), outbox, reading);
    if (!stop?.aborted) {
      if (!reading.isCutShort) reached = { bytes: openFrom ?? reader.offset, agents_bytes: subagents.settledBytes() };
      await outbox.flush();
    }
  } finally {
    reader.close();
  }
  const unread = reading.isCutShort ? 'out of time while reading' : undefined;
  const failure = outbox.failure ?? unread ?? (await settleScores(store.read(sessionId)?.scores, scoreTools));
  // What the user has stopped is taken up when the user says so.
  if (stop?.aborted && (failure !== undefined || outbox.isWaiting || !reached))
    return { sent: outbox.sent, failure: undefined, isStopped: true };
  if (failure !== undefined) {
    const { since = new Date().toISOString(), attempts = 0 } = known.pending ?? {};
    await save({ pending: { since, attempts: attempts + 1, reason: failure, closed_line: closedLine } });
  } else if (known.pending || (!isSaved && !isDeepStrictEqual(standingOf(known), { ...reached, ...life }))) {
    await save({ pending: undefined });
  }
  return { sent: outbox.sent, failure, isStopped: false };
}

/**
 * Whether a session goes on, and who knows of it. A Stop that is handled late must not undo what SessionEnd has said; only
 * SessionStart does. What only a backfill knows of, the recovery leaves alone: it may go on with tracing off.
 */
function lifeOf({ occasion, agents }: SessionExport, entry: Entry | undefined): Pick<Entry, 'ended' | 'backfilled'> {
  if (occasion === 'event') return { ended: agents.areOver || entry?.ended === true, backfilled: undefined };
  const isNew = occasion === 'backfill' && entry?.path === undefined;
  return { ended: entry?.ended, backfilled: isNew || entry?.backfilled };
}

function standingOf({ bytes, agents_bytes, ended, backfilled }: Entry): Partial<Entry> {
  return { bytes, agents_bytes, ended, backfilled };
}

interface TurnExport {
  readonly start: Start;
  readonly entry: Entry;
  /** Turns that other sessions have exported. */
  readonly family: ReadonlySet<string>;
  readonly subagents: Subagents;
  readonly optionsIn: OptionsIn;
  readonly outbox: Outbox;
  readonly reading: Reading;
}

/**
 * What is to be sent of a turn: the observations that rest on a new line, then what its subagents have, and last, if the
 * turn itself got any line, its root.
 */
async function addTurn(
  turn: Turn,
  { start, entry, family, subagents, optionsIn, outbox, reading }: TurnExport,
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
    if (isNew) await outbox.add([{ change: done }]);
    return;
  }
  const options = optionsIn(turn.context.cwd);
  const started = subagents.see(turn, traceOf(turn, options));
  // The last exported turn is read again by every run, and seldom has anything new to be built of.
  const built = isNew ? buildTurn(turn, options) : undefined;
  const news = withMarks(built?.children.filter(({ line }) => line > start.sentLine) ?? [], (line) => ({
    sent_line: line,
  }));
  await outbox.add(news.map(({ observation, mark = {} }) => ({ observation, change: mark })));
  await addAgents(subagents.due(), outbox, reading);
  if (reading.isCutShort) return;
  if (!built) {
    // An agent whose file, or whose call's result, came after its turn had been exported.
    if (started.length > 0) await outbox.add([{ change: subagents.kept(started) }]);
    return;
  }
  const scores = options.scores ? { scores: { [built.root.id]: scoresOf(turn, built.root) } } : {};
  await outbox.add([{ observation: built.root, change: { ...done, ...subagents.kept(started), ...scores } }]);
}

/** One agent after the other, as long as there is time to read them. */
async function addAgents(agents: Iterable<readonly AgentItem[]>, outbox: Outbox, reading: Reading): Promise<void> {
  for (const items of agents) {
    await outbox.add(items);
    if (outbox.failure !== undefined) return;
    reading.isCutShort = reading.isOver();
    if (reading.isCutShort) return;
  }
}
