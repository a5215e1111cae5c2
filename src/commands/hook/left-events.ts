import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '../../shared/atomic-write.js';
import { attempt } from '../../shared/attempt.js';
import { parseJson } from '../../shared/json.js';
import { sessionFileName } from '../../state/lock.js';
import { HookEvent } from './hook-event.js';

// A file for each event that a worker has left to another one. Its name begins with its session and its time, so that names in
// their order are events in theirs.

const SUFFIX = '.json';
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60_000;

export interface LeftEvent {
  readonly event: HookEvent;
  /** Undefined if it was not left, but is this run's own. */
  readonly file: string | undefined;
}

function leftFolder(stateFolder: string): string {
  return join(stateFolder, 'cc-langfuse_left');
}

/** Leaves an event to the worker that is at work, or to the next run. Returns its file. */
export function leaveEvent(stateFolder: string, event: HookEvent): string {
  const folder = leftFolder(stateFolder);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `${sessionFileName(event.sessionId)}.${event.at}.${process.pid}${SUFFIX}`);
  writeFileAtomically(file, JSON.stringify(event), 0o600);
  return file;
}

/** Returns events that were left, by session and time: those of a session, or of all, for a destination. */
export function findLeft(stateFolder: string, destination: string, sessionId?: string): LeftEvent[] {
  const folder = leftFolder(stateFolder);
  const prefix = sessionId === undefined ? '' : `${sessionFileName(sessionId)}.`;
  // Normally there is no such folder.
  const names = (attempt(() => readdirSync(folder)) ?? []).filter((name) => name.startsWith(prefix));
  return names.toSorted().flatMap((name) => {
    const file = join(folder, name);
    const at = Number(name.split('.')[1]);
    // What a killed worker has written in part does not end like this.
    const event = name.endsWith(SUFFIX) ? readLeft(file) : undefined;
    const isUseless = name.endsWith(SUFFIX) && !event;
    if (isUseless || !(Date.now() - at < FORGOTTEN_AFTER_MS)) removeLeft(file);
    return event?.identity.destination === destination ? [{ event, file }] : [];
  });
}

export function removeLeft(file: string): void {
  attempt(() => rmSync(file, { force: true }));
}

/** Undefined if it cannot be read, or if another run has just removed it. Reading a FIFO would block. */
function readLeft(file: string): HookEvent | undefined {
  if (!attempt(() => lstatSync(file).isFile())) return undefined;
  const result = HookEvent.safeParse(parseJson(attempt(() => readFileSync(file, 'utf8')) ?? ''));
  return result.success ? result.data : undefined;
}
