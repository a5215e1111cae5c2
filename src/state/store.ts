import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import writeFileAtomic from 'write-file-atomic';
import { replaceOwnFile } from '../shared/atomic-write.js';
import { attempt } from '../shared/attempt.js';
import { isRecord, parseJson } from '../shared/json.js';
import { readJsonFile, readOwnFile } from '../shared/read-file.js';
import { type Checkpoint, readCheckpoints, writeCheckpoints } from './checkpoints.js';
import { isUrgent, markDue, markTried, NO_DESTINATION, removeDue } from './due.js';
import {
  type Change,
  changeSession,
  decodeProgress,
  decodeSession,
  divideChange,
  type Entry,
  encodeProgress,
  encodeSession,
  isSettled,
  joinEntry,
  listWaiting,
  mergeChanges,
  NO_PROGRESS,
  newSession,
  type Progress,
  type Session,
  type SessionChange,
  waitsForKeys,
} from './entry.js';
import { type Lock, takeLock } from './lock.js';
import { listRuns } from './runs.js';
import { readSeeds, type Seed } from './seed.js';
import { hasAcknowledged, markAcknowledged } from './servers.js';
import { sessionFileName, sessionFolder, sessionsFolder } from './session-folder.js';

const LOCK_WAIT_MS = 10_000;
const FREE_BYTES = 1 << 17;
const A_DAY_MS = 24 * 60 * 60_000;
const SESSION_FILE = 'session.json';
const PROGRESS_FILE = /^(?!session\.json$)([^.]+)\.json$/;

/** A session with its progress at each destination. */
export interface KnownSession {
  readonly session: Session;
  readonly progress: ReadonlyMap<string, Progress>;
}

/** What an export needs of the state. */
export type SessionState = Pick<
  StateStore,
  | 'read'
  | 'readSession'
  | 'readProgress'
  | 'update'
  | 'sessionsWithFirst'
  | 'isMistaken'
  | 'acknowledge'
  | 'checkWritable'
  | 'lock'
  | 'isUrgent'
  | 'markTried'
  | 'readCheckpoints'
  | 'keepCheckpoints'
>;

/** The state: a folder for each session, with what is known of it, and a file for its progress at each destination. */
export class StateStore {
  readonly #folder: string;
  readonly #onCorrupt: (keptAs: string) => void;
  readonly #writes: 'sync' | 'async';
  readonly #acknowledged = new Set<string>();
  /** What has been marked as due, by destination, session and path. */
  readonly #due = new Set<string>();
  #seeds: ReadonlyMap<string, Seed> | undefined;
  /** The first prompts of the sessions that were read here, by the names of their folders. */
  readonly #firstPrompts = new Map<string, string | undefined>();
  /** The sessions by first prompt, as they were when this was first asked, with those that have been changed here since. */
  #byFirst: Map<string, Set<string>> | undefined;

  /** Writing asynchronously takes longer, and only pays if the process has other work to do meanwhile. */
  constructor(folder: string, onCorrupt: (keptAs: string) => void = () => {}, writes: 'sync' | 'async' = 'sync') {
    this.#folder = folder;
    this.#onCorrupt = onCorrupt;
    this.#writes = writes;
  }

  /** Returns a session with its progress at a destination; undefined if the session is new. */
  read(sessionId: string, destination: string): Entry | undefined {
    const session = this.readSession(sessionId);
    return session && joinEntry(session, this.#readProgressAt(sessionId, destination));
  }

  /** Throws if what is known of the session cannot be read: then nothing says what must stay here. */
  readSession(sessionId: string): Session | undefined {
    const path = join(this.#sessionFolder(sessionId), SESSION_FILE);
    const text = readText(path);
    if (text === undefined) return this.#findSeed(sessionId)?.session;
    const session = decodeSession(parseJson(text));
    if (session) {
      this.#firstPrompts.set(sessionFileName(sessionId), session.first);
      return session;
    }
    throw new Error(`${path} is corrupt`);
  }

  /** Returns a session's progress by destination. The name of what the first cc-langfuse sent is empty. */
  readProgress(sessionId: string): Map<string, Progress> {
    const all = new Map<string, Progress>();
    for (const destination of this.#listDestinations(sessionId)) {
      const progress = this.#readProgressFile(sessionId, destination);
      if (progress) all.set(destination, progress);
    }
    const seed = all.size === 0 ? this.#findSeed(sessionId) : undefined;
    return seed ? new Map([['', seed.progress]]) : all;
  }

  /** Returns a session with its progress where it was sent last. */
  readNewest(sessionId: string): Entry | undefined {
    const session = this.readSession(sessionId);
    const all = [...this.readProgress(sessionId).values()];
    return session && joinEntry(session, all.toSorted((a, b) => b.updated.localeCompare(a.updated))[0]);
  }

  /**
   * Differs if what `read` or, without a destination, `readNewest` returns may have changed. Undefined if it can be what the first
   * cc-langfuse knew.
   */
  identify(sessionId: string, destination: string | undefined): string | undefined {
    if (this.#findSeed(sessionId)) return undefined;
    const destinations = destination === undefined ? this.#listDestinations(sessionId) : [destination];
    const names = [SESSION_FILE, ...destinations.map((each) => `${each}.json`)];
    const folder = this.#sessionFolder(sessionId);
    const files = names.map((name) => statSync(join(folder, name), { throwIfNoEntry: false }));
    return files.map((status) => (status ? `${status.ino} ${status.size} ${status.mtimeMs}` : '-')).join(' ');
  }

  /** Returns all sessions; those that cannot be read are passed to `onUnreadable`. */
  all(onUnreadable: (path: string) => void = () => {}): KnownSession[] {
    const names = listSessions(this.#folder);
    const ids = new Set([...names, ...this.#listSeeds().keys()]);
    return [...ids].flatMap((id) => {
      try {
        const session = this.readSession(id);
        return session ? [{ session, progress: this.readProgress(id) }] : [];
      } catch {
        onUnreadable(join(this.#sessionFolder(id), SESSION_FILE));
        return [];
      }
    });
  }

  /** Whether a destination's URL or key is wrong: sending to it failed for the session, and nothing has ever arrived there. */
  isMistaken(destination: string, sessionId: string): boolean {
    const { pending } = this.#readProgressAt(sessionId, destination) ?? NO_PROGRESS;
    return (pending?.attempts ?? 0) > 0 && !hasAcknowledged(this.#folder, destination);
  }

  /** Notes that a destination has acknowledged something: then it is not a mistake. */
  acknowledge(destination: string): void {
    if (this.#acknowledged.has(destination)) return;
    this.#acknowledged.add(destination);
    markAcknowledged(this.#folder, destination);
  }

  /** Returns the other sessions that begin with this prompt. */
  sessionsWithFirst(first: string, sessionId: string): Session[] {
    this.#byFirst ??= this.#readFirstPrompts();
    const ids = [...(this.#byFirst.get(first) ?? [])].filter((id) => id !== sessionId);
    return ids.flatMap((id) => attempt(() => this.readSession(id)) ?? []);
  }

  /** Changes a session and, if the change has some, its progress at a destination. Returns the session with all processes' changes. */
  async update(sessionId: string, change: Change, destination?: string): Promise<Session> {
    return this.#change(sessionId, change, destination).catch((error: NodeJS.ErrnoException) => {
      if (error.code === undefined) throw error;
      throw new Error(`the state folder cannot be written: ${error.message}`);
    });
  }

  async #change(sessionId: string, change: Change, destination?: string): Promise<Session> {
    const folder = this.#sessionFolder(sessionId);
    const lock = await takeLock(join(folder, 'session.lock'), Date.now() + LOCK_WAIT_MS);
    if (!lock) throw new Error('the state of the session stayed locked');
    try {
      const { session: sessionChange, progress: progressChange } = divideChange(change);
      const before = this.readSession(sessionId);
      const session = await this.#writeSession(sessionId, before, sessionChange);
      if (destination !== undefined) await this.#changeProgress(session, destination, progressChange);
      if (session === before) return session;
      addFirstPrompt(this.#byFirst, session);
      const runs = [...listRuns(session), ...listRuns(before ?? session)];
      for (const other of new Set(runs.map((run) => run.destination ?? NO_DESTINATION)))
        if (other !== destination) this.#updateDue(session, other, () => this.#readProgressAt(sessionId, other));
      return session;
    } finally {
      lock.release();
    }
  }

  /** Whether another process has found the session locked and left work to do. */
  isUrgent(sessionId: string, destination: string): boolean {
    return isUrgent(this.#folder, { sessionId, destination });
  }

  /** Notes that what was left by now is being done. */
  markTried(sessionId: string, destination: string): void {
    markTried(this.#folder, { sessionId, destination });
  }

  /** Returns how far an earlier run has come in turns that are too long for one run. */
  readCheckpoints(sessionId: string, destination: string): Checkpoint[] {
    return readCheckpoints(this.#checkpointsPath(sessionId, destination));
  }

  keepCheckpoints(sessionId: string, destination: string, checkpoints: readonly Checkpoint[]): void {
    writeCheckpoints(this.#checkpointsPath(sessionId, destination), checkpoints);
  }

  remove(sessionId: string): void {
    rmSync(this.#sessionFolder(sessionId), { recursive: true, force: true });
  }

  /** Throws if nothing can be written: then every run would send the same again. */
  checkWritable(): void {
    const { bavail, bsize } = attempt(() => statfsSync(this.#folder)) ?? this.#createFolder();
    if (bavail * bsize < FREE_BYTES) throw new Error('the disk of the state folder is full');
  }

  #createFolder() {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    return statfsSync(this.#folder);
  }

  /**
   * Waits until the deadline (ms since 1970) for the right to send a session to a destination; undefined if another run keeps it.
   */
  lock(sessionId: string, destination: string, deadline: number, stop?: AbortSignal): Promise<Lock | undefined> {
    return takeLock(join(this.#sessionFolder(sessionId), `${destination}.lock`), deadline, stop);
  }

  /** Returns the changed session, or the very same one if nothing has changed. */
  async #writeSession(sessionId: string, before: Session | undefined, change: SessionChange): Promise<Session> {
    const after = changeSession(before ?? newSession(sessionId), change);
    if (before && isDeepStrictEqual(after, before)) return before;
    const path = join(this.#sessionFolder(sessionId), SESSION_FILE);
    await this.#write(path, encodeSession(after));
    return after;
  }

  async #changeProgress(session: Session, destination: string, change: Partial<Progress>): Promise<void> {
    const read = () => this.#readProgressAt(session.id, destination);
    const isChange = Object.keys(change).length > 0;
    const after = isChange ? await this.#writeProgress(session.id, destination, read(), change) : undefined;
    this.#updateDue(session, destination, () => after ?? read());
  }

  /** Returns the changed progress, or the very same if nothing has changed. */
  async #writeProgress(
    sessionId: string,
    destination: string,
    before: Progress | undefined,
    change: Partial<Progress>,
  ): Promise<Progress> {
    const path = this.#progressPath(sessionId, destination);
    const merged = mergeChanges(before ?? NO_PROGRESS, change);
    if (before && encodeProgress(merged) === encodeProgress(before)) return before;
    if (!before && existsSync(path)) this.#setAside(path);
    const after = { ...merged, updated: new Date().toISOString() };
    await this.#write(path, encodeProgress(after));
    return after;
  }

  #updateDue(session: Session, destination: string, readProgress: () => Progress | undefined): void {
    const { id: sessionId, path } = session;
    // Most often that is known without reading how far the session has been sent.
    const isLeft = () =>
      listWaiting(session, destination).length > 0 || !isSettled(session, destination, readProgress());
    const isDue = destination === NO_DESTINATION ? waitsForKeys(session) : isLeft();
    const mark = `${destination} ${sessionId} ${path}`;
    if (!isDue) {
      removeDue(this.#folder, { sessionId, destination });
      this.#due.delete(mark);
    } else if (path !== undefined && !this.#due.has(mark)) {
      markDue(this.#folder, { sessionId, destination, path });
      this.#due.add(mark);
    }
  }

  async #write(path: string, text: string): Promise<void> {
    if (this.#writes === 'sync') return replaceOwnFile(path, text);
    // We write the temporary file ourselves: the library takes a write that a full disk cut short for a complete one.
    await writeFileAtomic(path, '', { mode: 0o600, tmpfileCreated: (temporary) => writeFileSync(temporary, text) });
  }

  #readProgressAt(sessionId: string, destination: string): Progress | undefined {
    const progress = this.#readProgressFile(sessionId, destination);
    if (progress || !this.#findSeed(sessionId)) return progress;
    // The first destination that the session is sent to takes over what the first cc-langfuse sent.
    return this.#listDestinations(sessionId).length === 0 ? this.#findSeed(sessionId)?.progress : undefined;
  }

  /** A corrupt file counts for nothing: everything is sent again, under the same ids. */
  #readProgressFile(sessionId: string, destination: string): Progress | undefined {
    const text = readText(this.#progressPath(sessionId, destination));
    return text === undefined ? undefined : decodeProgress(parseJson(text));
  }

  /** Keeps a corrupt file for the user to look at. */
  #setAside(path: string): void {
    const keptAs = `${path}.corrupt-${Date.now()}`;
    renameSync(path, keptAs);
    this.#onCorrupt(keptAs);
  }

  #progressPath(sessionId: string, destination: string): string {
    return join(this.#sessionFolder(sessionId), `${destination}.json`);
  }

  #listDestinations(sessionId: string): string[] {
    const names = attempt(() => readdirSync(this.#sessionFolder(sessionId))) ?? [];
    return names.flatMap((name) => PROGRESS_FILE.exec(name)?.[1] ?? []);
  }

  /** There can be thousands of sessions, so nothing else is read of them. */
  #readFirstPrompts(): Map<string, Set<string>> {
    const byFirst = new Map<string, Set<string>>();
    for (const name of listSessions(this.#folder)) {
      const first = this.#firstPrompts.has(name) ? this.#firstPrompts.get(name) : this.#readFirstPrompt(name);
      addFirstPrompt(byFirst, { id: name, first });
    }
    return byFirst;
  }

  #readFirstPrompt(name: string): unknown {
    const about = readJsonFile(join(this.#sessionFolder(name), SESSION_FILE));
    return isRecord(about) ? about.first : undefined;
  }

  #findSeed(sessionId: string): Seed | undefined {
    return this.#listSeeds().get(sessionId);
  }

  #listSeeds(): ReadonlyMap<string, Seed> {
    this.#seeds ??= readSeeds(this.#folder);
    return this.#seeds;
  }

  #sessionFolder(sessionId: string): string {
    return sessionFolder(this.#folder, sessionId);
  }

  #checkpointsPath(sessionId: string, destination: string): string {
    return join(this.#sessionFolder(sessionId), `${destination}.part.json`);
  }
}

function addFirstPrompt(
  byFirst: Map<string, Set<string>> | undefined,
  { id, first }: { readonly id: string; readonly first?: unknown },
): void {
  if (typeof first === 'string') byFirst?.set(first, new Set(byFirst.get(first)).add(id));
}

/** Undefined if there is no such file; throws if it must not be read. */
function readText(path: string): string | undefined {
  try {
    return readOwnFile(path);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new Error(`${path} cannot be read: ${code === 'EISDIR' ? 'not a regular file' : code}`);
  }
}

/** Sessions whose folders have not changed since `before`, in ms since 1970. Looks once a day. */
export function findUntouched(stateFolder: string, before: number): string[] {
  const folder = sessionsFolder(stateFolder);
  const mark = join(folder, '.looked');
  const { mtimeMs: lookedAt = 0 } = statSync(mark, { throwIfNoEntry: false }) ?? {};
  if (Math.abs(Date.now() - lookedAt) < A_DAY_MS) return [];
  const names = listSessions(stateFolder);
  attempt(() => writeFileSync(mark, '', { mode: 0o600 }));
  return names.filter((name) => (attempt(() => statSync(join(folder, name)).mtimeMs) ?? before) < before);
}

function listSessions(stateFolder: string): string[] {
  const names = attempt(() => readdirSync(sessionsFolder(stateFolder))) ?? [];
  return names.filter((name) => !name.startsWith('.'));
}
