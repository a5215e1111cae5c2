import type { Caller, Observation } from '../observations/model.js';
import type { Log } from '../shared/log.js';
import { type Entry, NEW_ENTRY } from '../state/entry.js';
import type { Lock } from '../state/lock.js';
import type { SessionState } from '../state/store.js';
import { TranscriptReader } from '../transcript/file/reader.js';
import { buildOptionsByFolder, type SessionSettings } from './build-options.js';
import type { Delivery } from './delivery.js';
import { type Run, SessionRecord } from './entry-writer.js';
import { settleMedia } from './media-export.js';
import { Outbox } from './outbox.js';
import { type Closing, IDLE_MS, type Reading, readTurns } from './read-turns.js';
import { turnsOfFamily } from './related-forks.js';
import { openRequests, type Requests } from './requests.js';
import { settleScores } from './scores.js';
import { type Start, startsFor, takenOverAt } from './start-position.js';
import { type AgentStatus, Subagents } from './subagents.js';
import { NOTHING, type Tally } from './tally.js';
import { addAgents, addTurn } from './turn.js';

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

export interface ExportTools extends Delivery {
  readonly store: SessionState;
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

/** Undefined where the start is not there, or not the turn that it promises; nothing has been sent then. */
async function exportFrom(start: Start, run: Run): Promise<ExportReport | undefined> {
  const { what, tools } = run;
  const { store, stop, log } = tools;
  const reader = TranscriptReader.open(what.path);
  const record = new SessionRecord(run);
  const { known } = record;
  const requests = await openRequests(what.path, tools.options);
  const outbox = outboxFor(record, what, tools, requests);
  const optionsFor = buildOptionsByFolder({ sessionId: what.sessionId, callers: record.callers }, tools.options);
  const subagents = new Subagents({
    transcriptPath: what.path,
    known: start.agents,
    unknownBefore: Date.parse(takenOverAt(known) ?? '') || 0,
    status: { ...what.agents, idleBefore: Date.now() - IDLE_MS },
    optionsFor,
    onUnreadable: (file, line, reason) => log.warn('a line cannot be read, it is left out', { file, line, reason }),
    onFile: requests.seeAgent,
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
      onLine: requests.see,
    })) {
      isWhereItWas ||= turn.key === start.prompt && turn.lineNumbers.includes(start.lastLine);
      if (!isWhereItWas) return undefined;
      // Once a session had ended, what followed without a start ran with tracing off.
      const isBehindItsEnd = what.occasion === 'recovery' && known.ended && (turn.lineNumbers[0] ?? 0) > closedBefore;
      if (isBehindItsEnd) break;
      if (!isClosed) {
        openFrom = turn.start.offset;
        break;
      }
      closedLine = turn.lineNumbers.at(-1);
      if (outbox.failure !== undefined) continue;
      family ??= turnsOfFamily(known.first ?? turn.key, what, tools);
      await addTurn(turn, { start, entry: known, family, subagents, optionsFor, outbox, reading });
      if (reading.isCutShort) break;
    }
    if (!isWhereItWas && !reading.isCutShort) return undefined;
    if (!reading.isCutShort) await addAgents(subagents.due(), outbox, reading);
    if (!reading.isCutShort) await addAgents(subagents.unplaced(), outbox, reading);
    if (!stop?.aborted) {
      if (!reading.isCutShort)
        record.reach({ bytes: openFrom ?? reader.offset, agents_bytes: subagents.settledBytes() });
      await outbox.flush();
    }
  } finally {
    reader.close();
    requests.close();
  }
  const unread = reading.isCutShort ? 'out of time while reading' : undefined;
  const failure =
    outbox.failure ??
    unread ??
    (await settleScores(store.read(what.sessionId)?.scores, scoreTools(record, what, tools)));
  // What the user has stopped is taken up when the user says so.
  if (stop?.aborted && (failure !== undefined || outbox.isWaiting || !record.hasReachedTheEnd))
    return { sent: outbox.sent, failure: undefined, isStopped: true };
  await record.close(failure, closedLine);
  return { sent: outbox.sent, failure, isStopped: false };
}

function outboxFor(
  record: SessionRecord,
  { sessionId: session }: SessionExport,
  tools: ExportTools,
  { finish }: Requests,
): Outbox {
  const { store, log } = tools;
  const onMissing = once((reason: string) =>
    log.warn('an image or a document stays behind, words stand in its place', { session, reason }),
  );
  return new Outbox({
    ready: () => store.ready(),
    finish: async (observation) => settleMedia(await finish(observation), { bring: tools.bringMedia, onMissing }),
    encode: tools.encode,
    send: tools.send,
    advance: (change) => record.save(change),
    onObservation: tools.onObservation,
    onTaken: tools.onTaken,
    onDropped: (span) => log.warn('the server refuses an observation, it is left out', { session, span }),
    onRejected: ({ spans: rejected, reason }, sent) =>
      log.warn('the Collector took a request with reservations', { session, rejected, sent, reason }),
  });
}

function scoreTools(record: SessionRecord, { sessionId: session }: SessionExport, { sendScores, log }: ExportTools) {
  return {
    send: sendScores,
    save: (change: Partial<Entry>) => record.save(change),
    onRefused: (score: string) => log.warn('the server refuses a score, it is left out', { session, score }),
  };
}

/** Tells the same thing once. */
function once(tell: (what: string) => void): (what: string) => void {
  const told = new Set<string>();
  return (what) => {
    if (!told.has(what)) tell(what);
    told.add(what);
  };
}
