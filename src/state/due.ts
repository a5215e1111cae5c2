import { lstatSync, mkdirSync, readdirSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../shared/attempt.js';
import { groupBy } from '../shared/group-by.js';
import { isRecord } from '../shared/json.js';
import { readJsonFile, readOwnFile } from '../shared/read-file.js';
import { sessionFileName } from './session-folder.js';

// If a session may have something left to send to a destination, there is a file for the two. The name says which, the content
// where the transcript is, and the time when it was last tried. So a run finds such sessions without looking at all of them.

const NEVER = new Date(0);

/** The destination of runs that have no keys yet. */
export const NO_DESTINATION = 'none';

export interface Due {
  readonly sessionId: string;
  readonly destination: string;
  readonly path: string;
}

interface Named {
  readonly destination: string;
  /** As the names of files have it. */
  readonly session: string;
  readonly file: string;
}

function dueFolder(stateFolder: string): string {
  return join(stateFolder, 'cc-langfuse_due');
}

function dueFile(stateFolder: string, destination: string, sessionId: string): string {
  return join(dueFolder(stateFolder), `${destination}.${sessionFileName(sessionId)}`);
}

/** Notes that a session may have something to send. If that fails, only other sessions' runs do not find it. */
export function markDue(stateFolder: string, { destination, sessionId, path }: Due): void {
  const text = JSON.stringify({ sessionId, path });
  const file = dueFile(stateFolder, destination, sessionId);
  // Its time is that of the last try.
  if (attempt(() => readOwnFile(file)) === text) return;
  attempt(() => {
    mkdirSync(dueFolder(stateFolder), { recursive: true, mode: 0o700 });
    writeFileSync(file, text, { mode: 0o600 });
  });
}

export function removeDue(stateFolder: string, { destination, sessionId }: Omit<Due, 'path'>): void {
  attempt(() => unlinkSync(dueFile(stateFolder, destination, sessionId)));
}

/** Notes that a session is tried now, so that others come first the next time. */
export function markTried(stateFolder: string, due: Omit<Due, 'path'>): void {
  setTried(stateFolder, due, new Date());
}

/** Notes that a session is to be tried at once, by a run that is at work. */
export function markUrgent(stateFolder: string, due: Omit<Due, 'path'>): void {
  setTried(stateFolder, due, NEVER);
}

export function isUrgent(stateFolder: string, { destination, sessionId }: Omit<Due, 'path'>): boolean {
  return attempt(() => lstatSync(dueFile(stateFolder, destination, sessionId)).mtimeMs) === NEVER.getTime();
}

function setTried(stateFolder: string, { destination, sessionId }: Omit<Due, 'path'>, at: Date): void {
  attempt(() => utimesSync(dueFile(stateFolder, destination, sessionId), at, at));
}

/** What is due for each destination. Their files have not been looked at yet. */
export type DueFiles = ReadonlyMap<string, readonly Named[]>;

/** Lists what is due, except of one session. */
export function listDue(stateFolder: string, exceptOf?: string): DueFiles {
  const own = exceptOf === undefined ? undefined : sessionFileName(exceptOf);
  const others = listNames(stateFolder).filter(({ session }) => session !== own);
  return groupBy(others, ({ destination }) => destination);
}

/** Yields what is due for a destination. What was tried longest ago comes first. */
export function* findDue(files: DueFiles, destination: string): Generator<Due, void, undefined> {
  const oldestFirst = listTried(files, destination).toSorted((a, b) => a.at - b.at);
  for (const { file } of oldestFirst) yield* readDue(file, destination);
}

/** Returns what is to be tried at once. */
export function findUrgent(files: DueFiles, destination: string): Due[] {
  const urgent = listTried(files, destination).filter(({ at }) => at === NEVER.getTime());
  return urgent.flatMap(({ file }) => [...readDue(file, destination)]);
}

function listTried(files: DueFiles, destination: string) {
  return (files.get(destination) ?? []).flatMap(({ file }) => {
    const status = attempt(() => lstatSync(file));
    return status?.isFile() ? [{ file, at: status.mtimeMs }] : [];
  });
}

function* readDue(file: string, destination: string): Generator<Due, void, undefined> {
  const about = readJsonFile(file);
  if (isRecord(about) && typeof about.sessionId === 'string' && typeof about.path === 'string')
    yield { sessionId: about.sessionId, path: about.path, destination };
}

function listNames(stateFolder: string): Named[] {
  const folder = dueFolder(stateFolder);
  const names = attempt(() => readdirSync(folder)) ?? [];
  return names.map((name) => {
    const [destination = '', session = ''] = name.split('.');
    return { destination, session, file: join(folder, name) };
  });
}
