import { lstatSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { type Entry, withProgressAt } from '../../state/entry.js';
import { listRuns } from '../../state/runs.js';
import type { StateStore } from '../../state/store.js';
import { findAgentFiles } from '../../transcript/agents/agent-files.js';
import { SESSION_ID } from '../../transcript/sessions/related-sessions.js';

const EXAMINED_AT_ONCE = 100;
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60_000;

interface Session {
  readonly sessionId: string;
  readonly path: string;
}

/**
 * Yields other sessions that have something to be sent to a destination: those whose transcript, or an agent's, is idle (last changed
 * before `idleBefore`) and contains more than was read, then those whose last run failed. Only sessions that the state knows: what
 * ran with tracing off, or before the installation, is never sent unasked.
 *
 * None blocks the others, although a failure may end the recovery: a session that fails comes later in the next run.
 */
export function* findRecoverable(
  state: StateStore,
  own: Session,
  destinationId: string,
  idleBefore: number,
): Generator<Session & { readonly adopts: boolean }, void, undefined> {
  const others = state.unsettled().flatMap(([sessionId, entry]) => {
    const { path } = entry;
    const runs = listRuns(entry);
    if (sessionId === own.sessionId || path === undefined) return [];
    // In the same folder the same settings apply: if those of the other session were wrong, these correct them.
    const isSameFolder = dirname(path) === dirname(own.path);
    const isWrong = (id: string | undefined) => id === undefined || state.isMistaken(id, entry);
    const adopts = isSameFolder && runs.some(({ destination }) => isWrong(destination));
    if (!adopts && !runs.some(({ destination }) => destination === destinationId)) return [];
    return [{ sessionId, path, adopts, entry: withProgressAt(entry, destinationId) }];
  });
  const unread = others
    .filter(({ entry, adopts }) => !entry.pending && !adopts)
    .toSorted((a, b) => b.entry.updated.localeCompare(a.entry.updated))
    .slice(0, EXAMINED_AT_ONCE);
  for (const { sessionId, path, adopts, entry } of unread)
    if (hasUnread(entry, idleBefore)) yield { sessionId, path, adopts };
  // Those that failed most often come last, and of equals those that have waited longest come first.
  const failed = others
    .filter(({ entry, adopts }) => entry.pending || adopts)
    .toSorted(
      (a, b) => countAttempts(a.entry) - countAttempts(b.entry) || a.entry.updated.localeCompare(b.entry.updated),
    );
  for (const { sessionId, path, adopts } of failed) {
    const found = locateTranscript(path, sessionId);
    if (found !== undefined) yield { sessionId, path: found, adopts };
  }
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
export function locateTranscript(path: string, sessionId: string): string | undefined {
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
