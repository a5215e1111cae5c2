import { lstatSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Entry } from '../../state/entry.js';
import type { StateStore } from '../../state/store.js';
import { findAgentFiles } from '../../transcript/agents/agent-files.js';

export interface Recoverable {
  readonly sessionId: string;
  readonly path: string;
  /** The settings of its own runs; of older ones none were kept. */
  readonly given: Entry['given'];
}

export interface RecoveryScope {
  readonly sessionId: string;
  readonly destination: string;
  /** When a file was last changed that nobody works on any more, in ms since 1970. */
  readonly idleBefore: number;
}

/** A run must end: what it leaves the next one takes up. */
const AT_MOST = 5;
const LOOKED_AT = 100;
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60_000;
const SESSION_ID = /^[0-9a-f-]{36}$/i;

/**
 * Other sessions that have something to be sent: those of which a run failed, and those whose transcript, or an agent's,
 * holds more than was read of it and is idle. Only sessions that the state knows, and only of the same destination: what
 * ran with tracing off, or before it was set up, is never sent unasked.
 */
export function recoverable(store: StateStore, scope: RecoveryScope): Recoverable[] {
  const ours = store
    .entries((text) => text.includes('"pending":') || !/"(?:ended|backfilled)":true/.test(text))
    .filter(
      ([sessionId, { destination, path }]) =>
        sessionId !== scope.sessionId && destination === scope.destination && path !== undefined,
    );
  // Those that failed before come last, and of equals those that have waited longest: none keeps another from its turn.
  const failed = ours
    .filter(([, { pending }]) => pending)
    .toSorted(([, a], [, b]) => attemptsOf(a) - attemptsOf(b) || a.updated.localeCompare(b.updated))
    .slice(0, LOOKED_AT)
    .flatMap(([sessionId, { path = '', given }]) => {
      const found = whereItLies(path, sessionId);
      return found === undefined ? [] : [{ sessionId, path: found, given }];
    });
  const left = ours
    .filter(([, { pending }]) => !pending)
    .toSorted(([, a], [, b]) => b.updated.localeCompare(a.updated))
    .slice(0, LOOKED_AT)
    .filter(([, entry]) => holdsMore(entry, scope))
    .map(([sessionId, { path = '', given }]) => ({ sessionId, path, given }));
  return [...failed.slice(0, AT_MOST), ...left.slice(0, AT_MOST)];
}

function attemptsOf({ pending }: Entry): number {
  return pending?.attempts ?? 0;
}

/** A transcript that was moved to another project's folder, as a worktree's is, has kept its name. */
function whereItLies(path: string, sessionId: string): string | undefined {
  if (statusOf(path)?.isFile()) return path;
  if (!SESSION_ID.test(sessionId)) return undefined;
  const projects = dirname(dirname(path));
  const folders = statusOf(projects)?.isDirectory() ? readdirSync(projects) : [];
  return folders.map((name) => join(projects, name, `${sessionId}.jsonl`)).find((each) => statusOf(each)?.isFile());
}

/** Whether a session that nobody works in has something, of its own or of its agents, that was not exported. */
function holdsMore({ path = '', bytes = 0, agents_bytes = 0 }: Entry, { idleBefore }: RecoveryScope): boolean {
  const file = statusOf(path);
  if (!file?.isFile() || file.mtimeMs >= idleBefore) return false;
  if (file.size > bytes) return true;
  const agents = findAgentFiles(path);
  const isIdle = agents.every(({ changedAt }) => changedAt < idleBefore);
  return isIdle && agents.reduce((sum, agent) => sum + agent.bytes, 0) !== agents_bytes;
}

/** One path that cannot be looked at must not hide the others. */
function statusOf(path: string) {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Sessions of which nothing has been heard for a week, and whose transcript is gone: Claude Code deletes them in time. */
export function forgettable(store: StateStore, now: number): string[] {
  const limit = new Date(now - FORGOTTEN_AFTER_MS).toISOString();
  return store
    .untouchedSince(limit, LOOKED_AT)
    .flatMap(([sessionId, { path }]) =>
      path !== undefined && whereItLies(path, sessionId) === undefined ? [sessionId] : [],
    );
}
