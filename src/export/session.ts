import { isRedactionError } from '../observations/redaction/redact.js';
import type { SessionState } from '../state/store.js';
import { TranscriptReader } from '../transcript/file/reader.js';
import type { Turn } from '../transcript/turns/turn.js';
import { EntryWriter } from './entry-writer.js';
import type { ExportContext, ExportReport, ExportRequest } from './export-request.js';
import { Outbox } from './outbox.js';
import { readTurns } from './read-turns.js';
import { ReadingBudget } from './session-run.js';
import { type Start, startPositions } from './start-position.js';
import { Subagents } from './subagents/subagents.js';
import { NOTHING } from './tally.js';
import { addAgents, addTurn, type ExportRun } from './turn.js';

const BACKFILL_LOCK_WAIT_MS = 60_000;

/** Exports a session: read, group, build, send, and advance the state as far as the server has acknowledged. */
export async function exportSession(request: ExportRequest, context: ExportContext): Promise<ExportReport> {
  const { sessionId, path, occasion } = request;
  const lock = await lockSession(request, context);
  if (!lock) {
    // The run that has the lock sends what a recovery would.
    const failure = occasion === 'recovery' ? undefined : 'another run was working on it all the time';
    return { sent: NOTHING, failure, isStopped: context.stop?.aborted ?? false };
  }
  try {
    if (request.force) await forgetProgress(sessionId, context.state);
    const writer = new EntryWriter(request, context, lock);
    for (const start of startPositions(writer.known)) {
      const report = await exportFrom(start, request, context, writer);
      if (report) return report;
      context.log.warn('the transcript has been changed, it is read from further back', { file: path });
    }
    throw new Error('a transcript can always be read from the top');
  } finally {
    lock.release();
  }
}

/** Only one run at a time works on a session. */
function lockSession({ sessionId, occasion }: ExportRequest, { state, deadline, stop }: ExportContext) {
  const waits = { event: deadline, recovery: Date.now(), backfill: Date.now() + BACKFILL_LOCK_WAIT_MS };
  return state.lock(sessionId, waits[occasion], stop).catch((error: Error) => {
    // Without a place for the state, every run would send the same again.
    throw new Error(`the state folder cannot be written: ${error.message}`);
  });
}

/** Keeps what is known about the session itself. */
async function forgetProgress(sessionId: string, state: SessionState) {
  const entry = state.read(sessionId);
  if (!entry) return;
  const { path, destination, given, callers, ended, backfilled } = entry;
  await state.remove([sessionId]);
  await state.update(sessionId, { path, destination, given, callers, ended, backfilled });
}

/** Returns undefined, before anything is sent, if the last exported turn is not at the start position. */
async function exportFrom(
  start: Start,
  request: ExportRequest,
  context: ExportContext,
  writer: EntryWriter,
): Promise<ExportReport | undefined> {
  const reader = TranscriptReader.open(request.path);
  const requests = await openRequests(request, context);
  try {
    const position = reader.moveTo(start);
    if (!position) return undefined;
    const budget = new ReadingBudget(context);
    const session = {
      request,
      context,
      writer,
      start: { ...start, ...position },
      budget,
      requests,
      gitFacts: new Map(),
    };
    const run: ExportRun = { ...session, outbox: new Outbox(session), subagents: new Subagents(session) };
    const progress = await exportTurns(readTurns(reader, run), run);
    if (!progress) return undefined;
    await holdIfUnredacted(run, async () => {
      await addAgents(run.subagents.due(), run);
      await addAgents(run.subagents.unplaced(), run);
    });
    if (!context.stop?.aborted) {
      const agentsBytes = run.subagents.settledBytes();
      if (!budget.isUsedUp) writer.reachEnd({ bytes: progress.openFrom ?? reader.offset, agentsBytes });
      await run.outbox.flush();
    }
    return await finish(progress, run);
  } finally {
    reader.close();
    requests?.close();
  }
}

/** Whole requests cost time, and much space in Langfuse: without the setting, their code is not even loaded. */
async function openRequests({ path }: ExportRequest, { settings }: ExportContext) {
  if (settings.input === 'answered') return undefined;
  const { openExactRequests } = await import('./exact-requests.lazy.js');
  return openExactRequests(path, settings);
}

interface Progress {
  /** The last line of the last turn that is over. */
  readonly closedLine: number | undefined;
  /** Where the turn begins that is still open. */
  readonly openFrom: number | undefined;
}

async function exportTurns(turns: ReturnType<typeof readTurns>, run: ExportRun): Promise<Progress | undefined> {
  const { start, request, writer, outbox, budget } = run;
  let isVerified = start.prompt === undefined;
  let closedLine: number | undefined;
  for await (const { turn, isClosed } of turns) {
    isVerified ||= isLastExported(turn, start);
    if (!isVerified) return undefined;
    // After a session's end, lines without a new start were written with tracing off.
    const isAfterEnd = writer.known.ended && (turn.lineNumbers[0] ?? 0) > start.closedLine;
    if (isAfterEnd && request.occasion === 'recovery') break;
    if (!isClosed) return { closedLine, openFrom: turn.start.offset };
    closedLine = turn.lineNumbers.at(-1);
    if (outbox.failure === undefined) await holdIfUnredacted(run, () => addTurn(turn, run));
    if (budget.isUsedUp) break;
  }
  return isVerified || budget.isUsedUp ? { closedLine, openFrom: undefined } : undefined;
}

/** Sends what could be redacted; what could not be, and all after it, stays pending. */
async function holdIfUnredacted({ outbox }: ExportRun, add: () => Promise<void>): Promise<void> {
  try {
    await add();
  } catch (error) {
    if (!isRedactionError(error)) throw error;
    await outbox.flush();
    outbox.failure ??= error.message;
  }
}

function isLastExported({ key, lineNumbers }: Turn, { prompt, lastLine }: Start): boolean {
  return key === prompt && lineNumbers.includes(lastLine);
}

/** Sends due scores, and saves why something is still to be sent. */
async function finish({ closedLine }: Progress, run: ExportRun): Promise<ExportReport> {
  const { context, writer, outbox, budget } = run;
  const failure =
    outbox.failure ?? (budget.isUsedUp ? 'out of time while reading' : undefined) ?? (await outbox.sendScores());
  // What the user has stopped goes on when the user says so.
  if (context.stop?.aborted && (failure !== undefined || outbox.isWaiting || !writer.hasReachedEnd))
    return { sent: outbox.sent, failure: undefined, isStopped: true };
  await writer.finish(failure, closedLine);
  return { sent: outbox.sent, failure, isStopped: false };
}
