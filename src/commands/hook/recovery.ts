import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { type Due, type DueFiles, findDue, listDue, NO_DESTINATION, removeDue } from '../../state/due.js';
import { type Entry, isSettled, listWaiting } from '../../state/entry.js';
import { hasAcknowledged } from '../../state/servers.js';
import { findUntouched, type StateStore } from '../../state/store.js';
import { findAgentFiles } from '../../transcript/agents/agent-files.js';
import { locateTranscript } from '../../transcript/sessions/related-sessions.js';

const EXAMINED_AT_ONCE = 100;
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60_000;

interface LocatedSession {
  readonly sessionId: string;
  readonly path: string;
}

/**
 * Yields other sessions that have something to send to a destination. First come those whose files are idle (last changed before
 * `idleBefore`) and have grown since they were read, then those whose last run failed. Sessions that the state does not know ran with
 * tracing off or before the installation: they are never sent unasked.
 *
 * A session that fails comes later in the next run, so that it does not block the others.
 */
export function* findRecoverable(
  folder: string,
  state: StateStore,
  own: LocatedSession,
  destinationId: string,
  idleBefore: number,
): Generator<LocatedSession & { readonly replacesFailedDestination: boolean }, void, undefined> {
  const files = listDue(folder, own.sessionId);
  // Sending before they are corrected would pass their turns by.
  const mistaken = new Map(
    findMistaken(files, folder, state, own, destinationId).map((each) => [each.sessionId, each]),
  );
  const due = [...findDue(files, destinationId)].filter(({ sessionId }) => !mistaken.has(sessionId));
  for (let place = 0; place < due.length; place += EXAMINED_AT_ONCE) {
    const known = due.slice(place, place + EXAMINED_AT_ONCE).flatMap((each) => withEntry(each, state, destinationId));
    const failed = known.filter(({ entry }) => entry.pending);
    for (const { entry, ...each } of known) {
      if (isSettled(entry, destinationId, entry)) removeDue(folder, each);
      else if (!entry.pending && (isWaiting(entry, destinationId) || hasUnread(entry, idleBefore))) yield* locate(each);
    }
    yield* findFailed(failed, false);
  }
  yield* findFailed([...mistaken.values()], true);
}

/** Whether nobody has sent the turn of a Stop. */
function isWaiting(entry: Entry, destinationId: string): boolean {
  return listWaiting(entry, destinationId).length > 0;
}

function* locate(due: Due, replacesFailedDestination = false) {
  const path = locateTranscript(due.path, due.sessionId);
  if (path !== undefined) yield { sessionId: due.sessionId, path, replacesFailedDestination };
}

interface DueEntry extends Due {
  readonly entry: Entry;
}

function withEntry(due: Due, state: StateStore, destinationId: string): DueEntry[] {
  const entry = attempt(() => state.read(due.sessionId, destinationId));
  return entry ? [{ ...due, entry }] : [];
}

/** Those that failed most often come last, and of equals those that have waited longest come first. */
function* findFailed(failed: readonly DueEntry[], replacesFailedDestination: boolean) {
  for (const due of failed.toSorted((a, b) => countAttempts(a.entry) - countAttempts(b.entry)))
    yield* locate(due, replacesFailedDestination);
}

/**
 * Sessions of the same folder that wait for keys, or for a server that has never answered. The same settings apply there, so this
 * session's settings correct theirs.
 */
function findMistaken(files: DueFiles, folder: string, state: StateStore, own: LocatedSession, destinationId: string) {
  const others = [...files.keys()].filter((each) => each !== destinationId);
  const wrong = others.filter((each) => each === NO_DESTINATION || !hasAcknowledged(folder, each));
  const isMistaken = ({ destination, sessionId }: Due) =>
    destination === NO_DESTINATION || (attempt(() => state.isMistaken(destination, sessionId)) ?? false);
  return wrong
    .flatMap((each) => [...findDue(files, each)])
    .filter((each) => dirname(each.path) === dirname(own.path) && isMistaken(each))
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

/** Whether an idle session has something, of its own or of its agents, that was not exported. */
function hasUnread({ path = '', bytes = 0, agentsBytes = 0 }: Entry, idleBefore: number): boolean {
  const file = attempt(() => lstatSync(path));
  if (!file?.isFile() || file.mtimeMs >= idleBefore) return false;
  if (file.size > bytes) return true;
  const agents = findAgentFiles(path);
  const isIdle = agents.every(({ changedAt }) => changedAt < idleBefore);
  return isIdle && agents.reduce((sum, agent) => sum + agent.bytes, 0) !== agentsBytes;
}
