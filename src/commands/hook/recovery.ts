import { lstatSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { type Entry, hasFailedAt, withProgressAt } from '../../state/entry.js';
import type { StateStore } from '../../state/store.js';
import { findAgentFiles } from '../../transcript/agents/agent-files.js';
import { SESSION_ID } from '../../transcript/sessions/related-sessions.js';

/** A run must end: what it leaves, the next one recovers. */
const RECOVERED_AT_ONCE = 5;
const EXAMINED_AT_ONCE = 100;
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60_000;

/**
 * Finds other sessions that have something to be sent to a destination: those whose last run failed, and those whose transcript, or
 * an agent's, is idle (last changed before `idleBefore`) and contains more than was read. Only sessions that the state knows: what
 * ran with tracing off, or before the installation, is never sent unasked.
 */
export function findRecoverable(
  state: StateStore,
  own: { readonly sessionId: string; readonly path: string },
  destinationId: string,
  idleBefore: number,
) {
  const others = state.unsettled().flatMap(([sessionId, entry]) => {
    const { path, runs } = entry;
    if (sessionId === own.sessionId || path === undefined) return [];
    // In the same folder the same settings apply: if those of the other session were wrong, these correct them.
    const isSameFolder = dirname(path) === dirname(own.path);
    const adopts = isSameFolder && runs.some(({ destination }) => isWrong(destination, entry, state));
    if (!adopts && !runs.some(({ destination }) => destination === destinationId)) return [];
    return [{ sessionId, path, adopts, entry: withProgressAt(entry, destinationId) }];
  });
  // Those that failed most often come last, and of equals those that have waited longest come first: none blocks the others.
  const failed = others
    .filter(({ entry, adopts }) => entry.pending || adopts)
    .toSorted(
      (a, b) => countAttempts(a.entry) - countAttempts(b.entry) || a.entry.updated.localeCompare(b.entry.updated),
    )
    .slice(0, EXAMINED_AT_ONCE)
    .flatMap(({ path, sessionId, adopts }) => {
      const found = locateTranscript(path, sessionId);
      return found === undefined ? [] : [{ sessionId, path: found, adopts }];
    });
  const unread = others
    .filter(({ entry, adopts }) => !entry.pending && !adopts)
    .toSorted((a, b) => b.entry.updated.localeCompare(a.entry.updated))
    .slice(0, EXAMINED_AT_ONCE)
    .filter(({ entry }) => hasUnread(entry, idleBefore))
    .map(({ sessionId, path, adopts }) => ({ sessionId, path, adopts }));
  return [...failed.slice(0, RECOVERED_AT_ONCE), ...unread.slice(0, RECOVERED_AT_ONCE)];
}

function isWrong(destination: string | undefined, entry: Entry, state: StateStore): boolean {
  return destination === undefined || (hasFailedAt(entry, destination) && !state.hasAcknowledged(destination));
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
  if (isFile(path)) return path;
  if (!SESSION_ID.test(sessionId)) return undefined;
  const projects = dirname(dirname(path));
  const folders = attempt(() => lstatSync(projects).isDirectory()) ? readdirSync(projects) : [];
  return folders.map((name) => join(projects, name, `${sessionId}.jsonl`)).find(isFile);
}

function isFile(path: string): boolean {
  return attempt(() => lstatSync(path).isFile()) ?? false;
}

/** Whether an idle session has something, of its own or of its agents, that was not exported. */
function hasUnread({ path = '', bytes = 0, agentsBytes = 0 }: Entry, idleBefore: number): boolean {
  const file = attempt(() => lstatSync(path));
  if (!file?.isFile() || file.mtimeMs >= idleBefore) return false;
  if (file.size > bytes) return true;
  const agents = findAgentFiles(path);
  const isIdle = agents.every(({ changedAt }) => changedAt < idleBefore);
  return isIdle && agents.reduce((sum, agent) => sum + agent.bytes, 0) !== agentsBytes;
}
