import { hasFailedAt, NEW_ENTRY, NOT_EXPORTED } from '../state/entry.js';
import type { Lock } from '../state/lock.js';
import { TranscriptReader } from '../transcript/file/reader.js';
import type { Turn } from '../transcript/turns/turn.js';
import { EntryWriter } from './entry-writer.js';
import type { ExportContext, ExportReport, ExportRequest } from './export-request.js';
import { Ledger } from './ledger.js';
import { Outbox } from './outbox.js';
import { readTurns } from './read-turns.js';
import { lockSession, openRequests, ReadingBudget, RunSettings } from './session-run.js';
import { gapStart, type Start, startPositions } from './start-position.js';
import { type Continued, NOTHING_CONTINUED, sendContinued } from './subagents/continued.js';
import { Subagents } from './subagents/subagents.js';
import { NOTHING, sumTallies } from './tally.js';
import { addAgents, addTurn, type ExportRun } from './turn.js';

/** Exports a session: read, group, build, send, and advance the state as far as the server has acknowledged. */
export async function exportSession(request: ExportRequest, context: ExportContext): Promise<ExportReport> {
  const { sessionId, occasion } = request;
  const lock = await lockSession(request, context);
  if (!lock) {
    // The run that has the lock sends what a recovery would.
    const failure = occasion === 'recovery' ? undefined : 'another run was working on it all the time';
    return { sent: NOTHING, failure, isStopped: context.stop?.aborted ?? false };
  }
  try {
    if (request.force) await context.state.update(sessionId, NOT_EXPORTED, context.destinationId);
    return await exportLocked(request, context, lock);
  } finally {
    lock.release();
  }
}

async function exportLocked(request: ExportRequest, context: ExportContext, lock: Lock): Promise<ExportReport> {
  const { sessionId, path, run, adopts } = request;
  const { state, destinationId, log } = context;
  const known = state.read(sessionId, destinationId) ?? NEW_ENTRY;
  const ledger = new Ledger(known, destinationId, run);
  // If sending failed, and nothing has ever arrived there, then its URL or its key was wrong.
  const isWrong = (destination: string) => hasFailedAt(known, destination) && !state.hasAcknowledged(destination);
  if (adopts) ledger.adopt(isWrong);
  const writer = new EntryWriter(known, request, context, ledger, lock);
  const hasGaps = run?.takesAll === true && ledger.gapsUpTo(known.lastLine).length > 0;
  const early = hasGaps ? await exportFrom(gapStart(known), request, context, writer, ledger) : undefined;
  if (early && (early.isStopped || early.failure !== undefined)) return early;
  ledger.fillGaps(known.lastLine);
  for (const start of startPositions(known)) {
    const report = await exportFrom(start, request, context, writer, ledger);
    if (report) return { ...report, sent: sumTallies([early?.sent ?? NOTHING, report.sent]) };
    log.warn('the transcript has been changed, it is read from further back', { file: path });
  }
  throw new Error('a transcript can always be read from the top');
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
    const session = {
      request,
      context,
      writer,
      ledger,
      settings: new RunSettings(context),
      start: { ...start, ...position },
      budget,
      requests,
    };
    const run: ExportRun = { ...session, outbox: new Outbox(session), subagents: new Subagents(session) };
    const progress = await exportTurns(readTurns(reader, run), run);
    if (!progress) return undefined;
    await addAgents(run.subagents.due(), run);
    if (!start.isForGaps) await addAgents(run.subagents.unplaced(), run);
    const continued = start.isForGaps ? NOTHING_CONTINUED : await sendContinued(run);
    if (!context.stop?.aborted) {
      const agentsBytes = run.subagents.settledBytes();
      if (!budget.isUsedUp && !start.isForGaps)
        writer.reachEnd({ bytes: progress.openFrom ?? reader.offset, agentsBytes });
      await run.outbox.flush();
    }
    return await finish(progress, continued, run);
  } finally {
    reader.close();
    requests?.close();
  }
}

interface Progress {
  /** The last line of the last turn that is over. */
  readonly closedLine: number | undefined;
  /** Where the turn begins that is still open. */
  readonly openFrom: number | undefined;
}

async function exportTurns(turns: ReturnType<typeof readTurns>, run: ExportRun): Promise<Progress | undefined> {
  const { start, ledger, outbox, budget } = run;
  let isVerified = start.prompt === undefined;
  let closedLine: number | undefined;
  let openFrom: number | undefined;
  let skipped: Turn | undefined;
  for await (const { turn, isClosed } of turns) {
    isVerified ||= isLastExported(turn, start);
    if (!isVerified) return undefined;
    if (!isClosed) {
      // An open turn without a new line was exported when it seemed to be over.
      if ((turn.lineNumbers.at(-1) ?? 0) > start.lastLine) openFrom = turn.start.offset;
      break;
    }
    closedLine = turn.lineNumbers.at(-1);
    const isTaken = outbox.failure !== undefined || (await addTurn(turn, run));
    skipped = isTaken ? undefined : turn;
    if (budget.isUsedUp) break;
  }
  if (skipped && !budget.isUsedUp && ledger.claimLast(skipped)) await addTurn(skipped, run);
  return isVerified || budget.isUsedUp ? { closedLine, openFrom } : undefined;
}

function isLastExported({ key, lineNumbers }: Turn, { prompt, lastLine }: Start): boolean {
  return key === prompt && lineNumbers.includes(lastLine);
}

/** Sends due scores, and saves why something is still to be sent. */
async function finish({ closedLine }: Progress, continued: Continued, run: ExportRun): Promise<ExportReport> {
  const { context, writer, ledger, outbox, budget, start } = run;
  const sent = sumTallies([outbox.sent, continued.sent]);
  const failure =
    outbox.failure ??
    continued.failure ??
    (budget.isUsedUp ? 'out of time while reading' : undefined) ??
    (await outbox.sendScores());
  // What the user has stopped goes on when the user says so.
  const isWhole = writer.hasReachedEnd || start.isForGaps;
  if (context.stop?.aborted && (failure !== undefined || outbox.isWaiting || !isWhole))
    return { sent, failure: undefined, isStopped: true };
  if (start.isForGaps && failure === undefined) return { sent, failure, isStopped: false };
  if (failure === undefined) ledger.fillGaps(closedLine ?? 0);
  await writer.finish(failure, closedLine);
  return { sent, failure, isStopped: false };
}
