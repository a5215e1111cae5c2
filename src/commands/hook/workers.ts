import { join } from 'node:path';
import type { ExportContext } from '../../export/export-request.js';
import { attempt } from '../../shared/attempt.js';
import { type Due, findUrgent, listDue, markUrgent } from '../../state/due.js';
import { listWaiting } from '../../state/entry.js';
import { type Lock, takeLock } from '../../state/lock.js';
import { serversFolder } from '../../state/servers.js';
import type { StateStore } from '../../state/store.js';
import { locateTranscript } from '../../transcript/sessions/related-sessions.js';
import { exportAndLog } from './export-and-log.js';
import { hasTranscript } from './hook-event.js';

/** How many workers send to a destination at a time. More would only fill the memory while the server hangs. */
const WORKERS_AT_ONCE = 4;

/** A worker needs both, and releases both. */
interface WorkerLocks {
  readonly session: Lock;
  readonly slot: Lock;
}

type SessionAtDestination = Omit<Due, 'path'>;

/**
 * Undefined if another process is sending the session, or if enough workers send to the destination. Each of them looks for urgent
 * sessions after it has let go. So a worker may end once it has marked its session as urgent and has then tried again.
 */
export async function takeWorkerLocks(
  folder: string,
  place: SessionAtDestination,
  state: StateStore,
): Promise<WorkerLocks | undefined> {
  const first = await tryWorkerLocks(folder, place, state);
  if (first) return first;
  markUrgent(folder, place);
  return tryWorkerLocks(folder, place, state);
}

async function tryWorkerLocks(folder: string, { destination, sessionId }: SessionAtDestination, state: StateStore) {
  const slot = await takeSlot(folder, destination);
  if (!slot) return undefined;
  const session = await state.lock(sessionId, destination, 0);
  if (session) return { session, slot };
  slot.release();
  return undefined;
}

async function takeSlot(folder: string, destination: string): Promise<Lock | undefined> {
  for (let n = 1; n <= WORKERS_AT_ONCE; n += 1) {
    const slot = await takeLock(join(serversFolder(folder), `${destination}.slot${n}.lock`), 0);
    if (slot) return slot;
  }
  return undefined;
}

/** Exports sessions that became urgent while the last worker was releasing its locks. */
export async function exportUrgent(folder: string, context: ExportContext): Promise<void> {
  const tried = new Set<string>();
  for (;;) {
    const due = findUrgent(listDue(folder), context.destinationId);
    const urgent = due.filter(({ sessionId }) => !tried.has(sessionId));
    const slot = urgent.length > 0 ? await takeSlot(folder, context.destinationId) : undefined;
    if (!slot) return;
    try {
      for (const due of urgent) {
        tried.add(due.sessionId);
        if (!(await exportDue(due, context))) return;
      }
    } finally {
      slot.release();
    }
  }
}

/** Returns whether the server would take more. */
async function exportDue(due: Due, context: ExportContext): Promise<boolean> {
  const { sessionId } = due;
  const known = attempt(() => context.state.readSession(sessionId));
  await hasTranscript(due.path, known && listWaiting(known, due.destination).at(-1)?.at);
  const path = attempt(() => locateTranscript(due.path, sessionId));
  const result = path === undefined ? 'done' : await exportAndLog({ sessionId, path, occasion: 'recovery' }, context);
  return result !== 'unsent' || context.destination.health.isHealthy;
}
