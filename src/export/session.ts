import { isRedactionError } from '../observations/redaction/redact.js';
import { otherFailure } from '../shared/failure.js';
import { type Entry, joinEntry, NOT_EXPORTED, newSession } from '../state/entry.js';
import type { Stop } from '../state/facts.js';
import type { Lock } from '../state/lock.js';
import { TranscriptReader } from '../transcript/file/reader.js';
import { locateTranscript } from '../transcript/sessions/related-sessions.js';
import { includesLine, type Turn, type TurnGroup } from '../transcript/turns/turn.js';
import { EntryWriter } from './entry-writer.js';
import type { ExportContext, ExportReport, ExportRequest } from './export-request.js';
import { Ledger } from './ledger.js';
import { Outbox } from './outbox.js';
import { readTurns } from './read-turns.js';
import { findNewRelatives, isInAnotherSession } from './relatives.js';
import { SentLines } from './sent-lines.js';
import { lockMistaken, lockSession, openRequests, ReadingBudget, RunSettings } from './session-run.js';
import { SettledParts } from './settled-parts.js';
import { gapStart, type Start, startPositions } from './start-position.js';
import { type Continued, NOTHING_CONTINUED, sendContinued } from './subagents/continued.js';
import { Subagents } from './subagents/subagents.js';
import { NOTHING, sumTallies } from './tally.js';
import { addAgents, addPart, addSoFar, addTurns, type ExportRun, lastLineOf, lineOfEnd } from './turn.js';

/** How often an export begins again because what may be sent has changed. */
const MOST_TRIES = 3;

/**
 * Exports a session: read, group, build, send, and advance the state as far as the server has acknowledged. It goes on with what
 * events have left meanwhile. `lock` is the right to do so, if the caller has taken it.
 */
export async function exportSession(first: ExportRequest, context: ExportContext, lock?: Lock): Promise<ExportReport> {
  const { sessionId } = first;
  const { destinationId } = context;
  let request = first;
  let held = lock ?? (await lockSession(request, context));
  if (!held) {
    // What it would send, the run that has the lock sends, or the next event.
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
    // What the user has asked for was what was there then.
    request = { sessionId, path, occasion: 'recovery', run: first.run };
  }
}

async function exportUnderLock(request: ExportRequest, context: ExportContext, lock: Lock): Promise<ExportReport> {
  try {
    // A live export leaves to others what ends a turn.
    if (request.occasion !== 'live') context.state.markTried(request.sessionId, context.destinationId);
    if (request.force) await forget(request.sessionId, context);
    let sent = NOTHING;
    for (let tries = 1; ; tries += 1) {
      const report = await exportOnce(request, context, lock);
      sent = sumTallies([sent, report.sent]);
      if (!report.isOutdated || tries === MOST_TRIES) return { ...report, sent };
    }
  } finally {
    lock.release();
  }
}

/** Forgets how far a session has been exported, but not that the destination is right. */
async function forget(sessionId: string, { state, destinationId }: ExportContext): Promise<void> {
  const known = state.read(sessionId, destinationId);
  if (!known) return;
  // A line that is acknowledged again does not mean that the agents before it are.
  state.keepCheckpoints(sessionId, destinationId, []);
  // A person's rating is in no transcript.
  const kept = { acknowledged: known.acknowledged, scores: known.scores };
  await state.update(sessionId, { ...NOT_EXPORTED, ...kept }, destinationId);
}

async function exportOnce(request: ExportRequest, context: ExportContext, lock: Lock): Promise<ExportReport> {
  const { sessionId, run, takesAll, adopts } = request;
  const { state, destinationId } = context;
  const known = state.read(sessionId, destinationId) ?? joinEntry(newSession(sessionId));
  const lineSentTo = (destination: string) => state.read(sessionId, destination)?.lastLine ?? 0;
  const ledger = new Ledger(known, destinationId, { own: run, takesAll, prompts: known.prompts, lineSentTo });
  const mistaken = adopts ? await lockMistaken(sessionId, known, context) : new Map<string, Lock>();
  try {
    if (adopts) ledger.adopt((destination) => mistaken.has(destination));
    return await exportKnown(known, ledger, request, context, lock);
  } finally {
    for (const each of mistaken.values()) each.release();
  }
}

/** Exports first what is of no run and was passed by, if it may, then what follows the last turn that was exported. */
async function exportKnown(
  known: Entry,
  ledger: Ledger,
  request: ExportRequest,
  context: ExportContext,
  lock: Lock,
): Promise<ExportReport> {
  const { path, takesAll } = request;
  const writer = new EntryWriter(known, request, context, ledger, lock);
  const hasGaps = takesAll && ledger.gapsUpTo(known.lastLine).length > 0;
  const early = hasGaps ? await exportFrom(gapStart(known), request, context, writer, ledger) : undefined;
  if (early && (early.isStopped || early.failure !== undefined)) return early;
  ledger.fillGaps(known.lastLine);
  for (const start of startPositions(known)) {
    const report = await exportFrom(start, request, context, writer, ledger);
    if (!report) {
      context.log.warn('the transcript has been changed, it is read from further back', { file: path });
      continue;
    }
    const late = await exportLate(report, known, request, context, writer, ledger);
    const all = [early, report, late].map((each) => each?.sent ?? NOTHING);
    return { ...(late?.failure === undefined ? report : late), sent: sumTallies(all) };
  }
  throw new Error('a transcript can always be read from the top');
}

/** Exports turns that were passed by before their Stops came. */
async function exportLate(
  { failure, isStopped }: ExportReport,
  known: Entry,
  request: ExportRequest,
  context: ExportContext,
  writer: EntryWriter,
  ledger: Ledger,
): Promise<ExportReport | undefined> {
  const missing = findMissing(known, ledger);
  if (failure || isStopped || missing.length === 0) return undefined;
  const late = await exportFrom(gapStart(known), request, context, writer, ledger);
  if (late && !late.failure && !late.isStopped) await writer.save({ doneStops: missing });
  return late;
}

/** The Stops whose turns may have been passed by. */
function findMissing({ lastLine }: Entry, ledger: Ledger): readonly Stop[] {
  return ledger.gapsUpTo(lastLine).length > 0 ? ledger.missing : [];
}

/** Returns undefined, before anything is sent, if the last exported turn is not at the start position. */
async function exportFrom(
  start: Start,
  request: ExportRequest,
  context: ExportContext,
  writer: EntryWriter,
  ledger: Ledger,
): Promise<ExportReport | undefined> {
  const reader = TranscriptReader.open(request.path);
  const requests = await openRequests(request, ledger);
  try {
    const position = reader.moveTo(start);
    if (!position) return undefined;
    const budget = new ReadingBudget(context);
    const own = { request, context, start: { ...start, ...position }, requests };
    const parts = new SettledParts(own, reader);
    const settings = new RunSettings(context, request, writer.known);
    const session = { ...own, writer, ledger, settings, budget };
    const sent = new SentLines(start);
    const run: ExportRun = { ...session, outbox: new Outbox(session), subagents: new Subagents(session), parts, sent };
    const progress = await exportTurns(readTurns(reader, run), run);
    if (!progress) return undefined;
    if (request.occasion === 'live') return await finishLive(progress, run);
    let continued = NOTHING_CONTINUED;
    await holdIfUnredacted(run, async () => {
      await addAgents(run.subagents.due(), run);
      if (start.isForGaps) return;
      await addAgents(run.subagents.unplaced(), run);
      continued = await sendContinued(run);
    });
    if (!context.stop?.aborted) {
      const { openFrom, isLastTaken } = progress;
      const isWhole = openFrom === undefined && isLastTaken && run.outbox.failure === undefined;
      if (!budget.isUsedUp && !start.isForGaps)
        writer.reachEnd({
          bytes: openFrom ?? reader.offset,
          file: isWhole ? reader.identifyRead() : undefined,
          agentsBytes: run.subagents.settledBytes(),
        });
      await run.outbox.flush();
    }
    const report = await finish(progress, continued, reader.offset, run);
    parts.save(run.outbox.failure === undefined && !run.outbox.isWaiting);
    return report;
  } finally {
    reader.close();
    requests?.close();
  }
}

interface Reached {
  /** The last line of the last turn that is over. */
  readonly closedLine: number | undefined;
  /** Where the turn begins that is still open. */
  readonly openFrom: number | undefined;
  /** Whether a turn goes on, or a prompt has no answer yet. */
  readonly isOpen: boolean;
  /** Whether the last turn was sent, or another session sends it. */
  readonly isLastTaken: boolean;
}

async function exportTurns(turns: ReturnType<typeof readTurns>, run: ExportRun): Promise<Reached | undefined> {
  const { start, ledger, outbox, budget, writer } = run;
  let isVerified = start.prompt === undefined;
  let closedLine: number | undefined;
  let openFrom: number | undefined;
  let isOpen = false;
  let isLastTaken = true;
  const isCopy = (turn: Turn) => isInAnotherSession(turn, run);
  for await (const read of turns) {
    if (read.kind === 'resumed') run.subagents.recordEnded(read.checkpoint.ended);
    if (read.kind === 'part') {
      if (start.isForGaps && read.turn.prompts[0].line > writer.known.lastLine) break;
      if (isVerified) ledger.claim([read.turn], 0, isCopy);
      if (isVerified || isPartOfLastExported(read.turn, start)) await holdIfUnredacted(run, () => addPart(read, run));
      if (budget.isUsedUp) break;
    }
    isOpen ||= read.kind === 'prompts';
    if (read.kind !== 'turns') continue;
    const { group, isClosed, readTo, soFar } = read;
    isVerified ||= includesLastExported(group, start);
    // If turns interleave, those that were exported earlier can come first.
    if (!isVerified && lastLineOf(group) < start.lastLine) continue;
    if (!isVerified) return undefined;
    // What follows the last exported turn is read again from there.
    if (start.isForGaps && firstPromptLineOf(group) > writer.known.lastLine) break;
    if (!isClosed) {
      // Open turns without a new line were exported when they seemed to be over.
      if (lastLineOf(group) > start.lastLine) openFrom = group.from.offset;
      isOpen ||= openFrom !== undefined;
      if (soFar && isOpen) await holdIfUnredacted(run, () => addSoFar(soFar, run));
      break;
    }
    closedLine = lastLineOf(group);
    ledger.claim(group.turns, readTo, isCopy);
    const isTaken = outbox.failure !== undefined || (await holdIfUnredacted(run, () => addTurns(group, run)));
    isLastTaken = isTaken;
    if (lastLineOf(group) > start.lastLine) budget.limit();
    if (budget.isUsedUp) break;
  }
  return isVerified || budget.isUsedUp ? { closedLine, openFrom, isOpen, isLastTaken } : undefined;
}

/**
 * Ends an export of a turn that goes on. Nothing is recorded but what was acknowledged: the hook that ends the turn does the rest,
 * or the recovery, which looks at every session that has not ended.
 */
async function finishLive({ isOpen }: Reached, run: ExportRun): Promise<ExportReport> {
  const { outbox, parts, subagents } = run;
  await holdIfUnredacted(run, () => addAgents(subagents.due(), run));
  await outbox.flush();
  const failure = outbox.failure ?? (await outbox.sendScores());
  parts.save(outbox.failure === undefined && !outbox.isWaiting);
  return { sent: outbox.sent, failure, isStopped: false, isOutdated: outbox.isOutdated, isOpen };
}

/** Sends what could be redacted; what could not be, and all after it, stays pending. */
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

function firstPromptLineOf({ turns }: TurnGroup): number {
  return Math.min(...turns.map(({ prompts }) => prompts[0].line));
}

function includesLastExported({ turns }: TurnGroup, { prompt, lastLine }: Start): boolean {
  return turns.some((turn) => turn.key === prompt && includesLine(turn, lastLine));
}

/** Whether nothing of a part can be new, although the line by which its turn is recognized comes after it. */
function isPartOfLastExported(turn: Turn, { prompt, lastLine }: Start): boolean {
  return turn.key === prompt && lineOfEnd(turn) <= lastLine;
}

/** Sends due scores, and saves why something is still to be sent, or which Stops' turns have been. */
async function finish(reached: Reached, continued: Continued, bytes: number, run: ExportRun): Promise<ExportReport> {
  const { context, writer, ledger, outbox, budget, start } = run;
  const sent = sumTallies([outbox.sent, continued.sent]);
  const failure =
    outbox.failure ??
    continued.failure ??
    (budget.isUsedUp ? otherFailure('out of time while reading') : undefined) ??
    (await outbox.sendScores());
  // What the user has stopped goes on when the user says so.
  const isWhole = writer.hasReachedEnd || start.isForGaps;
  if (context.stop?.aborted && (failure !== undefined || outbox.isWaiting || !isWhole))
    return { sent, failure: undefined, isStopped: true };
  if (start.isForGaps && failure === undefined) return { sent, failure, isStopped: false };
  if (failure === undefined) ledger.fillGaps(reached.closedLine ?? 0);
  // Each has been waited for. Those of turns that were passed by come next.
  const missing = findMissing(writer.known, ledger);
  const done = failure === undefined ? ledger.waiting.filter((stop) => !missing.includes(stop)) : [];
  await writer.finish(failure, findNewRelatives(run, bytes), done);
  return { sent, failure, isStopped: false, isOutdated: outbox.isOutdated };
}
