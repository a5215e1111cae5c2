import { lstatSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import type { Entry } from '../../state/entry.js';
import type { StateStore } from '../../state/store.js';
import { findAgentFiles } from '../../transcript/agents/agent-files.js';
import { SESSION_ID } from '../../transcript/sessions/related-sessions.js';

/** A run must end: what it leaves, the next one recovers. */
const RECOVERED_AT_ONCE = 5;
const EXAMINED_AT_ONCE = 100;
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60_000;

/**
 * Finds other sessions that have something to be sent: those whose last run failed, and those whose transcript, or an agent's, is
 * idle (last changed before `idleBefore`) and contains more than was read. Only sessions that the state knows, and only of this
 * destination: what ran with tracing off, or before the installation, is never sent unasked.
 */
export function findRecoverable(state: StateStore, sessionId: string, destinationId: string, idleBefore: number) {
  const others = state
    .unsettled()
    .filter(([id, { destination, path }]) => id !== sessionId && destination === destinationId && path !== undefined);
  // Those that failed most often come last, and of equals those that have waited longest come first: none blocks the others.
  const failed = others
    .filter(([, { pending }]) => pending)
    .toSorted(([, a], [, b]) => countAttempts(a) - countAttempts(b) || a.updated.localeCompare(b.updated))
    .slice(0, EXAMINED_AT_ONCE)
    .flatMap(([id, { path = '', given }]) => {
      const found = locateTranscript(path, id);
      return found === undefined ? [] : [{ sessionId: id, path: found, given }];
    });
  const unread = others
    .filter(([, { pending }]) => !pending)
    .toSorted(([, a], [, b]) => b.updated.localeCompare(a.updated))
    .slice(0, EXAMINED_AT_ONCE)
    .filter(([, entry]) => hasUnread(entry, idleBefore))
    .map(([id, { path = '', given }]) => ({ sessionId: id, path, given }));
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
