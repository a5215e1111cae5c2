import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import type { StateStore } from './state/store.js';

export interface Recoverable {
  readonly sessionId: string;
  readonly path: string;
}

export interface RecoveryScope {
  readonly sessionId: string;
  readonly transcriptPath: string;
  readonly destination: string;
  /** When a file was last changed that nobody works on any more, in ms since 1970. */
  readonly idleBefore: number;
}

/** A run must end: what it leaves the next one takes up. */
const AT_MOST = 10;
const LOOKED_AT = 100;
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60_000;

/**
 * Other sessions that have something to be sent: those of which a run failed, wherever they are, and those in the same
 * folder whose transcript holds more than was read of it and is idle. Only sessions that the state knows, and only of the
 * same destination: what ran with tracing off, or before it was set up, is never sent unasked.
 */
export function recoverable(store: StateStore, scope: RecoveryScope): Recoverable[] {
  const folder = dirname(scope.transcriptPath);
  return store
    .entries(
      ({ path, destination, pending }) =>
        destination === scope.destination &&
        typeof path === 'string' &&
        (pending !== undefined || dirname(path) === folder),
    )
    .filter(([sessionId]) => sessionId !== scope.sessionId)
    .toSorted(([, a], [, b]) => Number(!a.pending) - Number(!b.pending) || b.updated.localeCompare(a.updated))
    .slice(0, LOOKED_AT)
    .flatMap(([sessionId, { path = '', pending, ended = false, bytes = 0 }]) => {
      const file = lstatSync(path, { throwIfNoEntry: false });
      const holdsMore = !ended && file?.isFile() && file.size > bytes && file.mtimeMs < scope.idleBefore;
      return file && (pending || holdsMore) ? [{ sessionId, path }] : [];
    })
    .slice(0, AT_MOST);
}

/** Sessions of which nothing has been heard for a week, and whose transcript is gone: Claude Code deletes them in time. */
export function forgettable(store: StateStore, now: number): string[] {
  const limit = new Date(now - FORGOTTEN_AFTER_MS).toISOString();
  return store
    .entries(({ updated, path }) => typeof path === 'string' && !(typeof updated === 'string' && updated > limit))
    .toSorted(([, a], [, b]) => a.updated.localeCompare(b.updated))
    .slice(0, LOOKED_AT)
    .flatMap(([sessionId, { path = '' }]) =>
      lstatSync(path, { throwIfNoEntry: false }) === undefined ? [sessionId] : [],
    );
}
