import { lstatSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Entry, SessionEntry } from '../../state/entry.js';
import type { StateStore } from '../../state/store.js';
import { findAgentFiles } from '../../transcript/agents/agent-files.js';

export interface RecoverableSession {
  readonly sessionId: string;
  readonly path: string;
  /** The settings of its own runs; older versions did not keep them. */
  readonly given: Entry['given'];
}

export interface RecoveryScope {
  /** The session of this run, which is exported anyway. */
  readonly sessionId: string;
  readonly destinationId: string;
  /** A file that was last changed before this moment (ms since 1970) is idle. */
  readonly idleBefore: number;
}

/** A run must end: what it leaves, the next one recovers. */
const RECOVERED_AT_ONCE = 5;
const EXAMINED_AT_ONCE = 100;
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60_000;
const SESSION_ID = /^[0-9a-f-]{36}$/i;

/**
 * Finds other sessions that have something to be sent: those whose last run failed, and those whose transcript, or an agent's, is
 * idle and contains more than was read. Only sessions that the state knows, and only of this destination: what ran with tracing
 * off, or before the installation, is never sent unasked.
 */
export function findRecoverable(state: StateStore, scope: RecoveryScope): RecoverableSession[] {
  const others = state
    .unsettled()
    .filter(
      ([sessionId, { destination, path }]) =>
        sessionId !== scope.sessionId && destination === scope.destinationId && path !== undefined,
    );
  // Those that failed most often come last, and of equals those that have waited longest come first: none blocks the others.
  const failed = others
    .filter(([, { pending }]) => pending)
    .toSorted(([, a], [, b]) => countAttempts(a) - countAttempts(b) || a.updated.localeCompare(b.updated))
    .slice(0, EXAMINED_AT_ONCE)
    .flatMap(([sessionId, { path = '', given }]) => {
      const found = locateTranscript(path, sessionId);
      return found === undefined ? [] : [{ sessionId, path: found, given }];
    });
  const unread = others
    .filter(([, { pending }]) => !pending)
    .toSorted(([, a], [, b]) => b.updated.localeCompare(a.updated))
    .slice(0, EXAMINED_AT_ONCE)
    .filter((session) => hasUnread(session, scope))
    .map(([sessionId, { path = '', given }]) => ({ sessionId, path, given }));
  return [...failed.slice(0, RECOVERED_AT_ONCE), ...unread.slice(0, RECOVERED_AT_ONCE)];
}

/** Finds sessions that have not changed for a week and whose transcript is gone: Claude Code deletes old transcripts. */
export function findDeleted(state: StateStore, now: number): string[] {
  const limit = new Date(now - FORGOTTEN_AFTER_MS).toISOString();
  return state
    .untouchedSince(limit, EXAMINED_AT_ONCE)
    .filter(([sessionId, { path }]) => path !== undefined && locateTranscript(path, sessionId) === undefined)
    .map(([sessionId]) => sessionId);
}

function countAttempts({ pending }: Entry): number {
  return pending?.attempts ?? 0;
}

/** A transcript that was moved to another project's folder, as a worktree's is, keeps its name. */
function locateTranscript(path: string, sessionId: string): string | undefined {
  if (tryStat(path)?.isFile()) return path;
  if (!SESSION_ID.test(sessionId)) return undefined;
  const projects = dirname(dirname(path));
  const folders = tryStat(projects)?.isDirectory() ? readdirSync(projects) : [];
  return folders.map((name) => join(projects, name, `${sessionId}.jsonl`)).find((each) => tryStat(each)?.isFile());
}

/** Whether an idle session has something, of its own or of its agents, that was not exported. */
function hasUnread([, entry]: SessionEntry, { idleBefore }: RecoveryScope): boolean {
  const { path = '', bytes = 0, agentsBytes = 0 } = entry;
  const file = tryStat(path);
  if (!file?.isFile() || file.mtimeMs >= idleBefore) return false;
  if (file.size > bytes) return true;
  const agents = findAgentFiles(path);
  const isIdle = agents.every(({ changedAt }) => changedAt < idleBefore);
  return isIdle && agents.reduce((sum, agent) => sum + agent.bytes, 0) !== agentsBytes;
}

/** A path that cannot be examined must not hide the others. */
function tryStat(path: string) {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
