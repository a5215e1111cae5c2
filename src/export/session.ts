import { isRedactionError } from '../observations/redaction/redact.js';
import { otherFailure } from '../shared/failure.js';
import { type Entry, joinEntry, type Kept, NOT_EXPORTED, newSession } from '../state/entry.js';
import type { Lock } from '../state/lock.js';
import { Places } from '../transcript/file/place.js';
import { TranscriptReader } from '../transcript/file/reader.js';
import { Originals } from '../transcript/sessions/originals.js';
import { locateTranscript } from '../transcript/sessions/related-sessions.js';
import type { Turn } from '../transcript/turns/turn.js';
import { EntryWriter } from './entry-writer.js';
import type { ExportContext, ExportReport, ExportRequest } from './export-request.js';
import { KeptTurns } from './kept-turns.js';
import { Outbox } from './outbox.js';
import { keepOverlooked } from './overlooked.js';
import { readTurns } from './read-turns.js';
import { findNewRelatives, isInAnotherSession } from './relatives.js';
import { RunLookup } from './run-lookup.js';
import { SentLines } from './sent-lines.js';
import { lockMistaken, lockSession, openRequests, ReadingBudget, RunSettings } from './session-run.js';
import { SettledParts } from './settled-parts.js';
import { findStart, type Start, startFromTop } from './start-position.js';
import { type Continued, NOTHING_CONTINUED, sendContinued } from './subagents/continued.js';
import { hasUnplacedAgents, Subagents } from './subagents/subagents.js';
import { NOTHING, sumTallies } from './tally.js';
import { addAgents, addPart, addSoFar, addTurns, type ExportRun, endOf, lastLineOf } from './turn.js';

/** How often an export begins again because what may be sent has changed, or was passed by. */
const MOST_TRIES = 3;

/**
 * Exports a session: read, group, build, send, and advance the state as far as the server has acknowledged. Then it goes on with
 * what events have left meanwhile. `lock` is the right to send the session, if the caller has taken it.
 */
export async function exportSession(first: ExportRequest, context: ExportContext, lock?: Lock): Promise<ExportReport> {
  const { sessionId } = first;
  const { destinationId } = context;
  let request = first;
  let held = lock ?? (await lockSession(request, context));
  if (!held) {
    // The run that has the lock sends it, or the next event does.
    const isUrgent = request.occasion === 'event' || request.occasion === 'backfill';
    const failure = isUrgent ? otherFailure('another run was working on it all the time') : undefined;
    return { sent: NOTHING, failure, isStopped: context.stop?.aborted ?? false, isBusy: true };
  }
  let sent = NOTHING;
  for (;;) {
    const report = await exportUnderLock(request, context, held);
    sent = sumTallies([sent, report.sent]);
    const isMore = !report.failure && !report.isStopped && context.state.isUrgent(sessionId, destinationId);
    held = isMore ? await context.state.lock(sessionId, destinationId, 0) : undefined;
    if (!held) return { ...report, sent };
    const path = locateTranscript(request.path, sessionId) ?? request.path;
    // The user has asked only for what was there then.
    request = { sessionId, path, occasion: 'recovery', run: first.run };
  }
}

async function exportUnderLock(request: ExportRequest, context: ExportContext, lock: Lock): Promise<ExportReport> {
  try {
    // A live export leaves to others what ends a turn.
    if (request.occasion !== 'live') context.state.markTried(request.sessionId, context.destinationId);
    if (request.force) await forget(request.sessionId, context);
    else if (request.takesAll) await keepOverlooked(request, context);
    let sent = NOTHING;
    let looksBack = request.takesAll === true;
    for (let tries = 1; ; tries += 1) {
      const report = await exportOnce({ ...request, looksBack }, context, lock);
      sent = sumTallies([sent, report.sent]);
      if (!(report.isOutdated || report.hasPassedBy) || tries === MOST_TRIES) return { ...report, sent };
      looksBack ||= report.hasPassedBy === true;
    }
  } finally {
    lock.release();
  }
}

/** Forgets how far a session has been exported, but not that the destination is right. */
async function forget(sessionId: string, { state, destinationId }: ExportContext): Promise<void> {
  const known = state.read(sessionId, destinationId);
  if (!known) return;
  // From now on, an acknowledged line does not prove that the agents before it were sent.
  state.keepCheckpoints(sessionId, destinationId, []);
  // A person's rating is in no transcript.
  const kept = { acknowledged: known.acknowledged, scores: known.scores };
  await state.update(sessionId, { ...NOT_EXPORTED, ...kept }, destinationId);
}

async function exportOnce(request: ExportRequest, context: ExportContext, lock: Lock): Promise<ExportReport> {
  const { sessionId, replacesFailedDestination } = request;
  const known = context.state.read(sessionId, context.destinationId) ?? joinEntry(newSession(sessionId));
  const mistaken = replacesFailedDestination ? await lockMistaken(sessionId, known, context) : new Map<string, Lock>();
  try {
    return await exportFile(known, request, context, lock, mistaken);
  } finally {
    for (const each of mistaken.values()) each.release();
  }
}

async function exportFile(
  known: Entry,
  request: ExportRequest,
  context: ExportContext,
  lock: Lock,
  mistaken: ReadonlyMap<string, Lock>,
): Promise<ExportReport> {
  const { sessionId, path, run, takesAll, replacesFailedDestination } = request;
  const { state, destinationId } = context;
  const reader = TranscriptReader.open(path);
  try {
    const places = new Places(path, reader);
    const lineSentTo = (destination: string) => state.read(sessionId, destination)?.lastLine ?? 0;
    const lookup = new RunLookup(known, destinationId, places, {
      own: run,
      takesAll,
      prompts: known.prompts,
      lineSentTo,
    });
    if (replacesFailedDestination) lookup.adopt((destination) => mistaken.has(destination));
    const writer = new EntryWriter(known, request, context, lookup, lock);
    return await exportKnown({ request, context, writer, lookup, places }, reader);
  } finally {
    reader.close();
  }
}

type OpenedSession = Pick<ExportRun, 'request' | 'context' | 'writer' | 'lookup' | 'places'>;

/** Reads on from the last exported turn, or from the top if turns before it were passed by and may be sent. */
async function exportKnown(session: OpenedSession, reader: TranscriptReader): Promise<ExportReport> {
  const { request, context, lookup, places } = session;
  const { known } = session.writer;
  const last = findStart(known, places);
  if (last.hasChanged)
    context.log.warn('the transcript has been changed, it is read from its beginning', { file: request.path });
  const { kept = [] } = known;
  const maySend = ({ prompts, why }: Kept) => why === 'untraced' && lookup.findRuns(prompts) !== undefined;
  const isKept = kept.length > 0 && (request.looksBack || kept.some(maySend));
  const looksBack = isKept || (request.takesAll && hasUnplacedAgents(session, known.agents));
  return exportFrom(looksBack && !last.hasChanged ? startFromTop(known) : last, session, reader);
}

async function exportFrom(start: Start, session: OpenedSession, reader: TranscriptReader): Promise<ExportReport> {
  const { request, context, writer, lookup } = session;
  const requests = await openRequests(request, lookup);
  try {
    if (!reader.moveTo(start)) throw new Error('the transcript has been changed');
    if (start.sentLine === 0) writer.beginAfresh();
    const budget = new ReadingBudget(context);
    const settings = new RunSettings(context, request, writer.known);
    const own = { ...session, start, requests, budget, settings, originals: new Originals(request.path) };
    const parts = new SettledParts(own, reader);
    const sent = new SentLines(start);
    const kept = new KeptTurns(start.hasChanged ? [] : writer.known.kept);
    const run: ExportRun = {
      ...own,
      outbox: new Outbox(own),
      subagents: new Subagents(own),
      parts,
      sent,
      kept,
      orphans: new Set(),
      built: new Map(),
    };
    const reached = await exportTurns(readTurns(reader, run), run);
    if (request.occasion === 'live') return await finishLive(reached, run);
    let continued = NOTHING_CONTINUED;
    await holdIfUnredacted(run, async () => {
      await addAgents(run.subagents.due(), run);
      await addAgents(run.subagents.unplaced(), run);
      continued = await sendContinued(run);
    });
    if (!context.stop?.aborted) {
      const { openFrom, isLastTaken } = reached;
      const isWhole = openFrom === undefined && isLastTaken && run.outbox.failure === undefined;
      if (!budget.isUsedUp)
        writer.reachEnd({
          bytes: openFrom ?? reader.offset,
          file: isWhole ? reader.identifyRead() : undefined,
          agentsBytes: run.subagents.settledBytes(),
        });
      await run.outbox.flush('later');
    }
    const report = await finish(reached, continued, reader.offset, run);
    parts.save(run.outbox.failure === undefined && !run.outbox.isWaiting);
    return report;
  } finally {
    requests?.close();
  }
}

interface Reached {
  /** Where the last finished turn ends. */
  readonly closedTo: number;
  /** Where the open turn begins. */
  readonly openFrom: number | undefined;
  /** Whether a turn goes on, or a prompt has no answer yet. */
  readonly isOpen: boolean;
  /** Whether the last turn was sent, or another session sends it. */
  readonly isLastTaken: boolean;
}

async function exportTurns(turns: ReturnType<typeof readTurns>, run: ExportRun): Promise<Reached> {
  const { start, lookup, outbox, budget } = run;
  let closedTo = 0;
  let openFrom: number | undefined;
  let isOpen = false;
  let isLastTaken = true;
  const isCopy = (turn: Turn) => isInAnotherSession(turn, run);
  for await (const read of turns) {
    if (read.kind === 'resumed') run.subagents.recordEnded(read.checkpoint.ended);
    if (read.kind === 'part') {
      lookup.claim([read.turn], 0, isCopy);
      await holdIfUnredacted(run, () => addPart(read, run));
      if (budget.isUsedUp) break;
    }
    isOpen ||= read.kind === 'prompts';
    if (read.kind !== 'turns') continue;
    const { group, isClosed, readTo, soFar } = read;
    if (!isClosed) {
      for (const turn of group.turns) {
        run.context.observer?.onKept?.(turn, 'open');
        run.subagents.strays.note(turn);
        run.subagents.strays.keep(turn);
      }
      // Open turns without a new line were exported when they seemed to be over.
      if (lastLineOf(group) > start.lastLine) openFrom = group.from.offset;
      isOpen ||= openFrom !== undefined;
      if (soFar && isOpen) await holdIfUnredacted(run, () => addSoFar(soFar, run));
      break;
    }
    closedTo = endOf(group);
    lookup.claim(group.turns, readTo, isCopy);
    isLastTaken = outbox.failure !== undefined || (await holdIfUnredacted(run, () => addTurns(group, run)));
    if (lastLineOf(group) > start.lastLine) budget.limit();
    if (budget.isUsedUp) break;
  }
  return { closedTo, openFrom, isOpen, isLastTaken };
}

/**
 * Ends an export of an open turn. Only what was acknowledged is recorded. The hook that ends the turn does the rest, or the
 * recovery, which looks at every session that has not ended.
 */
async function finishLive({ isOpen }: Reached, run: ExportRun): Promise<ExportReport> {
  const { outbox, parts, subagents } = run;
  await holdIfUnredacted(run, () => addAgents(subagents.due(), run));
  await outbox.flush();
  const failure = outbox.failure ?? (await outbox.sendScores());
  parts.save(outbox.failure === undefined && !outbox.isWaiting);
  return { sent: outbox.sent, failure, isStopped: false, isOutdated: outbox.isOutdated, isOpen };
}

/** Sends everything up to what cannot be redacted. That and everything after it stays pending. */
async function holdIfUnredacted<T>({ outbox }: ExportRun, add: () => Promise<T>): Promise<T | true> {
  try {
    return await add();
  } catch (error) {
    if (!isRedactionError(error)) throw error;
    await outbox.flush();
    outbox.hold({ code: 'rules', text: error.message });
    return true;
  }
}

/** Sends due scores, and saves why something is still to be sent, or which Stops' turns have been. */
async function finish(reached: Reached, continued: Continued, bytes: number, run: ExportRun): Promise<ExportReport> {
  const { context, writer, lookup, outbox, budget, start, kept } = run;
  const sent = sumTallies([outbox.sent, continued.sent]);
  const failure =
    outbox.failure ??
    continued.failure ??
    (budget.isUsedUp ? otherFailure('out of time while reading') : undefined) ??
    (await outbox.sendScores());
  // The user has stopped it. It goes on when the user says so.
  if (context.stop?.aborted) await writer.saveUnsaved();
  if (context.stop?.aborted && (failure !== undefined || outbox.isWaiting || !writer.hasReachedEnd))
    return { sent, failure: undefined, isStopped: true };
  if (failure === undefined) lookup.fillGaps(reached.closedTo);
  // Every Stop has been waited for, but its turn may lie before the start.
  const passedBy = start.offset > 0 && writer.known.kept ? lookup.missing : [];
  const done = failure === undefined ? lookup.waiting.filter((stop) => !passedBy.includes(stop)) : [];
  if (start.offset === 0 && failure === undefined) kept.forgetUnread(reached.closedTo);
  await writer.finish(failure, { relatives: findNewRelatives(run, bytes), kept: kept.list() }, done);
  if (writer.newStrays > 0)
    context.log.warn('parts whose prompt or call is in no file are sent all the same', {
      file: run.request.path,
      parts: writer.newStrays,
    });
  const hasPassedBy = failure === undefined && passedBy.length > 0;
  return { sent, failure, isStopped: false, isOutdated: outbox.isOutdated, hasPassedBy };
}
