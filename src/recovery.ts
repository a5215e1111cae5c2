import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Entry, StateStore } from './state/store.js';
import { agentFilesOf } from './transcript/subagents.js';

export interface Recoverable {
  readonly sessionId: string;
  readonly path: string;
  /** The settings of its own runs; of older ones none were kept. */
  readonly given: Entry['given'];
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
  return (
    store
      .entries(
        ({ path, destination, pending }) =>
          destination === scope.destination &&
          typeof path === 'string' &&
          (pending !== undefined || dirname(path) === folder),
      )
      .filter(([sessionId]) => sessionId !== scope.sessionId)
      // Those that failed before come last, and of equals those that have waited longest: none keeps another from its turn.
      .toSorted(([, a], [, b]) => attemptsOf(a) - attemptsOf(b) || a.updated.localeCompare(b.updated))
      .slice(0, LOOKED_AT)
      .flatMap(([sessionId, entry]) => {
        const { path = '', pending, given } = entry;
        const isThere = lstatSync(path, { throwIfNoEntry: false })?.isFile();
        return isThere && (pending || holdsMore(entry, scope)) ? [{ sessionId, path, given }] : [];
      })
      .slice(0, AT_MOST)
  );
}

function attemptsOf({ pending }: Entry): number {
  return pending?.attempts ?? 0;
}

/** Whether a session that nobody works in has something, of its own or of its agents, that was not exported. */
function holdsMore({ path = '', ended, bytes = 0, agents_bytes = 0 }: Entry, { idleBefore }: RecoveryScope): boolean {
  if (ended) return false;
  const file = lstatSync(path);
  if (file.mtimeMs >= idleBefore) return false;
  if (file.size > bytes) return true;
  const agents = agentFilesOf(path);
  const isIdle = agents.every(({ changedAt }) => changedAt < idleBefore);
  return isIdle && agents.reduce((sum, agent) => sum + agent.bytes, 0) !== agents_bytes;
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
