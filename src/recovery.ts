import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Entry } from './state/store.js';

export interface Recoverable {
  readonly sessionId: string;
  readonly path: string;
}

const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60_000;

/** Sessions of which nothing has been heard for a week, and whose transcript is gone: Claude Code deletes them in time. */
export function forgettable(entries: readonly [string, Entry][], now: number): string[] {
  const isOld = ([, { updated }]: [string, Entry]) => now - (Date.parse(updated) || 0) > FORGOTTEN_AFTER_MS;
  return entries
    .filter(isOld)
    .toSorted(([, a], [, b]) => a.updated.localeCompare(b.updated))
    .slice(0, LOOKED_AT)
    .flatMap(([sessionId, { path }]) => {
      const isThere = path === undefined || lstatSync(path, { throwIfNoEntry: false }) !== undefined;
      return isThere ? [] : [sessionId];
    });
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

/**
 * Other sessions that have something to be sent: those of which a run failed, wherever they are, and those in the same
 * folder whose transcript holds more than was read of it and is idle. Only sessions that the state knows, and only of the
 * same destination: what ran with tracing off, or before it was set up, is never sent unasked.
 */
export function recoverable(entries: readonly [string, Entry][], scope: RecoveryScope): Recoverable[] {
  const folder = dirname(scope.transcriptPath);
  const ours = entries.filter(
    ([sessionId, { path, destination, pending }]) =>
      sessionId !== scope.sessionId &&
      destination === scope.destination &&
      path !== undefined &&
      (pending !== undefined || dirname(path) === folder),
  );
  return ours
    .toSorted(([, a], [, b]) => Number(!a.pending) - Number(!b.pending) || b.updated.localeCompare(a.updated))
    .slice(0, LOOKED_AT)
    .flatMap(([sessionId, { path = '', pending, ended = false, bytes = 0 }]) => {
      const file = lstatSync(path, { throwIfNoEntry: false });
      const holdsMore = !ended && file?.isFile() && file.size > bytes && file.mtimeMs < scope.idleBefore;
      return file && (pending || holdsMore) ? [{ sessionId, path }] : [];
    })
    .slice(0, AT_MOST);
}
