import { lstatSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { type Due, findDue, listDueDestinations, markTried, NO_DESTINATION, removeDue } from '../../state/due.js';
import { type Entry, isSettled } from '../../state/entry.js';
import { hasAcknowledged } from '../../state/servers.js';
import { findUntouched, type StateStore } from '../../state/store.js';
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
  folder: string,
  state: StateStore,
  own: Session,
  destinationId: string,
  idleBefore: number,
): Generator<Session & { readonly adopts: boolean }, void, undefined> {
  const due = [...findDue(folder, destinationId)].filter(({ sessionId }) => sessionId !== own.sessionId);
  for (let place = 0; place < due.length; place += EXAMINED_AT_ONCE) {
    const known = due.slice(place, place + EXAMINED_AT_ONCE).flatMap((each) => withEntry(each, state, destinationId));
    for (const { entry, ...each } of known) {
      if (isSettled(entry, destinationId, entry)) removeDue(folder, each);
      else if (!entry.pending && hasUnread(entry, idleBefore)) yield { ...each, adopts: false };
    }
    yield* findFailed(
      folder,
      known.filter(({ entry }) => entry.pending),
      false,
    );
  }
  yield* findFailed(folder, findMistaken(folder, state, own, destinationId), true);
}

interface DueEntry extends Due {
  readonly entry: Entry;
}

function withEntry(due: Due, state: StateStore, destinationId: string): DueEntry[] {
  const entry = attempt(() => state.read(due.sessionId, destinationId));
  return entry ? [{ ...due, entry }] : [];
}

/** Those that failed most often come last, and of equals those that have waited longest come first. */
function* findFailed(folder: string, failed: readonly DueEntry[], adopts: boolean) {
  for (const due of failed.toSorted((a, b) => countAttempts(a.entry) - countAttempts(b.entry))) {
    const { sessionId } = due;
    const path = locateTranscript(due.path, sessionId);
    if (path === undefined) continue;
    markTried(folder, due);
    yield { sessionId, path, adopts };
  }
}

/**
 * Sessions of the same folder that wait for keys, or for a server that has never answered: there the same settings apply, so if those
 * of the other session were wrong, these correct them.
 */
function findMistaken(folder: string, state: StateStore, own: Session, destinationId: string) {
  const others = [...listDueDestinations(folder)].filter((each) => each !== destinationId);
  const wrong = others.filter((each) => each === NO_DESTINATION || !hasAcknowledged(folder, each));
  const isMistaken = ({ destination, sessionId }: Due) =>
    destination === NO_DESTINATION || (attempt(() => state.isMistaken(destination, sessionId)) ?? false);
  return wrong
    .flatMap((each) => [...findDue(folder, each)])
    .filter((each) => each.sessionId !== own.sessionId && dirname(each.path) === dirname(own.path) && isMistaken(each))
    .flatMap((each) => withEntry(each, state, destinationId));
}

/** Removes sessions that have not changed for a week and whose transcript is gone: Claude Code deletes old transcripts. */
export function removeDeleted(folder: string, state: StateStore, now: number): void {
  for (const sessionId of findUntouched(folder, now - FORGOTTEN_AFTER_MS).slice(0, EXAMINED_AT_ONCE)) {
    const { path } = attempt(() => state.readSession(sessionId)) ?? {};
    if (path !== undefined && locateTranscript(path, sessionId) !== undefined) continue;
    for (const destination of [...state.readProgress(sessionId).keys(), NO_DESTINATION])
      removeDue(folder, { sessionId, destination });
    state.remove(sessionId);
  }
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
