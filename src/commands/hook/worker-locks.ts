import { join } from 'node:path';
import { type Lock, takeLock } from '../../state/lock.js';
import { serversFolder } from '../../state/servers.js';
import { sessionFolder } from '../../state/store.js';

/** How many workers send to a destination at a time. More would only fill the memory while the server hangs. */
const WORKERS_AT_ONCE = 4;

/** The right of a worker to work, until it releases both. A worker without one leaves its event to those that have it. */
export interface Post {
  readonly session: Lock;
  readonly slot: Lock;
}

/**
 * Undefined if another worker is at work on the session, or enough are for the destination. A worker that has held either looks for
 * events that were left after that: so a worker that leaves its event first, and then tries once more in vain, may go.
 */
export async function takePost(folder: string, destination: string, sessionId: string): Promise<Post | undefined> {
  const slot = await takeSlot(folder, destination);
  if (!slot) return undefined;
  const session = await takeSession(folder, destination, sessionId);
  if (session) return { session, slot };
  slot.release();
  return undefined;
}

/**
 * The right to be the only worker of a session for a destination: one that waits for another server must not hold it up. It is not
 * the right to export it, for which others may be waiting.
 */
export function takeSession(folder: string, destination: string, sessionId: string): Promise<Lock | undefined> {
  return takeLock(join(sessionFolder(folder, sessionId), `worker.${destination}.lock`), 0);
}

export async function takeSlot(folder: string, destination: string): Promise<Lock | undefined> {
  for (let n = 1; n <= WORKERS_AT_ONCE; n += 1) {
    const slot = await takeLock(join(serversFolder(folder), `${destination}.slot${n}.lock`), 0);
    if (slot) return slot;
  }
  return undefined;
}
