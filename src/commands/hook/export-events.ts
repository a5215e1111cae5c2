import type { ExportContext, ExportRequest } from '../../export/export-request.js';
import { exportSession } from '../../export/session.js';
import { attempt } from '../../shared/attempt.js';
import { isSameRun, openRun } from '../../state/runs.js';
import { chooseClaims, chooseClosing, type HookEvent, hasTranscript } from './hook-event.js';
import { findLeft, type LeftEvent, removeLeft } from './left-events.js';
import { locateTranscript } from './recovery.js';
import { takeSession } from './worker-locks.js';

/**
 * What became of an export. What is `unsent`, the state keeps; what is `broken` is on this machine; at a `busy` session another run
 * was at work all the time.
 */
type Result = 'done' | 'unsent' | 'broken' | 'busy';

/** A failure is logged and never holds up Claude Code. */
export async function exportAndLog(request: ExportRequest, context: ExportContext): Promise<Result> {
  const { sessionId: session, path: file } = request;
  const { log } = context;
  try {
    const { sent, failure, isBusy } = await exportSession(request, context);
    if (failure !== undefined) log.warn(failure.text, { session, file });
    if (failure === undefined || sent.observations > 0)
      log.debug('exported', { session, observations: sent.observations });
    if (isBusy) return 'busy';
    return failure === undefined ? 'done' : 'unsent';
  } catch (error) {
    log.error((error as Error).message, { session, file });
    return 'broken';
  }
}

/** What became of several events of a session. */
interface Outcome {
  /** Whether all of them were exported, and nothing is left to be sent. */
  readonly isDone: boolean;
  /** Whether the server is at fault, so that nothing else will get through. */
  readonly isServerAtFault: boolean;
  /** Whether the run's own event was exported, or the state has recorded why not. */
  readonly isOwnSaved: boolean;
}

/** Exports events of a session, those that were left and the run's own, and removes those that were left. */
export async function exportEvents(
  left: readonly LeftEvent[],
  occasion: ExportRequest['occasion'],
  context: ExportContext,
  own?: LeftEvent,
): Promise<Outcome> {
  let [isDone, isOwnSaved] = [true, false];
  for (const each of inOrder(own ? [...left, own] : left, context)) {
    const result = await (each === own ? exportOwn(each.event, context) : exportLate(each.event, occasion, context));
    isDone &&= result === 'done';
    if (result === 'busy') return { isDone, isServerAtFault: false, isOwnSaved };
    // The state has recorded what could not be sent, and which turns are over.
    if (each.file !== undefined) removeLeft(each.file);
    isOwnSaved ||= each === own;
    if (result === 'unsent' && !context.destination.health.isHealthy)
      return { isDone, isServerAtFault: true, isOwnSaved };
  }
  return { isDone, isServerAtFault: false, isOwnSaved };
}

/**
 * Exports what workers have left of all sessions, but no file that was tried before, until nothing is left or the server fails.
 * Returns how many sessions that were.
 */
export async function exportLeft(
  folder: string,
  occasion: 'left event' | 'recovery',
  context: ExportContext,
  tried = new Set<string>(),
): Promise<number> {
  const { destinationId, deadline } = context;
  let exported = 0;
  for (;;) {
    const next = findLeft(folder, destinationId).find(({ file = '' }) => !tried.has(file));
    if (!next || Date.now() >= deadline) return exported;
    const { file = '', event } = next;
    tried.add(file);
    const lock = await takeSession(folder, destinationId, event.sessionId);
    // The worker that has it looks for itself.
    if (!lock) continue;
    try {
      const left = findLeft(folder, destinationId, event.sessionId);
      for (const each of left) tried.add(each.file ?? '');
      const { isServerAtFault } = await exportEvents(left, occasion, context);
      if (isServerAtFault) return exported;
      exported += 1;
    } finally {
      lock.release();
    }
  }
}

/**
 * The order in which events are exported. Each claims its own turn for its run, so those of different runs go as they came. If there
 * has been one run only, the last one goes first: it says that all turns before its own are over, and they go in few requests.
 */
function inOrder(events: readonly LeftEvent[], { state }: ExportContext): readonly LeftEvent[] {
  const [first] = events;
  const runs = (first && attempt(() => state.readSession(first.event.sessionId)))?.runs ?? [];
  const isOneRun = runs.length > 0 && events.every(({ event }) => runs.every((run) => isSameRun(run, event.identity)));
  if (!isOneRun) return events;
  // The end of a session does not wait for an answer.
  const [ends, others] = [events.filter(isEnd), events.filter((each) => !isEnd(each))];
  return [...others.toReversed(), ...ends];
}

const isEnd = ({ event }: LeftEvent) => event.name === 'SessionEnd';

function exportOwn(event: HookEvent, context: ExportContext): Promise<Result> {
  const { sessionId, path, identity, running, at } = event;
  const sessionEnded = event.name === 'SessionEnd';
  const agents = { running: new Set(running), sessionEnded, includeLegacyFiles: sessionEnded };
  const closing = chooseClosing(event, context.deadline);
  const run = { identity, claims: chooseClaims(event), at };
  return exportAndLog({ sessionId, path, occasion: 'event', closing, agents, run, adopts: true }, context);
}

/** Exports an event that another worker has left, perhaps long ago: the session may have ended since, or have been resumed or moved. */
async function exportLate(
  event: HookEvent,
  occasion: ExportRequest['occasion'],
  context: ExportContext,
): Promise<Result> {
  const { sessionId, name, identity, running, at } = event;
  const { state, deadline } = context;
  const path = locateTranscript(event.path, sessionId) ?? event.path;
  if (!(await hasTranscript({ ...event, path }))) return 'done';
  const known = attempt(() => state.readSession(sessionId));
  const isOpen = known !== undefined && openRun(known.runs) !== undefined;
  const sessionEnded = name === 'SessionEnd' && !isOpen;
  const agents = { running: new Set(running), sessionEnded, includeLegacyFiles: sessionEnded };
  const closing = chooseClosing(event, deadline, 'late');
  const run = { identity, claims: chooseClaims(event), at };
  return exportAndLog({ sessionId, path, occasion, closing, agents, run }, context);
}
