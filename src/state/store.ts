import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { identifyFile } from '../shared/file-identity.js';
import { type Checkpoint, readCheckpoints, writeCheckpoints } from './checkpoints.js';
import {
  changeEntryText,
  decodeEntry,
  type Entry,
  hasFailedAt,
  isAcknowledgedBy,
  type SessionEntry,
  withProgressAt,
} from './entry.js';
import {
  decodeLines,
  type FileLines,
  findEntryText,
  findUpdated,
  formatFile,
  isSettledLine,
  parseFile,
  salvage,
  toBytes,
  withEntry,
  withoutEntry,
} from './file-lines.js';
import { type Lock, sessionFileName, takeLock } from './lock.js';

const LOCK_WAIT_MS = 10_000;
const FREE_BYTES = 1 << 16;
const FILE_NAME = 'cc-langfuse_state.json';
/** A temporary file that is left over when a process is killed while it writes. */
const TEMPORARY = new RegExp(`^${FILE_NAME.replace('.', '\\.')}\\.\\d+$`);
const LEFT_OVER_AFTER_MS = 60 * 60_000;

export function statePath(folder: string): string {
  return join(folder, FILE_NAME);
}

export function locksFolder(folder: string): string {
  return join(folder, 'cc-langfuse_locks');
}

/** What an export needs of the state. */
export type SessionState = Pick<
  StateStore,
  | 'read'
  | 'update'
  | 'remove'
  | 'sessionsWithFirst'
  | 'sessionsWithAgent'
  | 'isMistaken'
  | 'checkWritable'
  | 'lock'
  | 'readCheckpoints'
  | 'keepCheckpoints'
>;

type Change = (lines: FileLines) => FileLines;

/** Of a corrupt file, the entries that are complete. */
interface Loaded {
  readonly lines: FileLines;
  readonly isCorrupt: boolean;
}

/** The state file: one entry per session. */
export class StateStore {
  readonly #folder: string;
  readonly #path: string;
  readonly #onCorrupt: (keptAs: string) => void;
  readonly #writes: 'sync' | 'async';
  /** The file as it was last read or written. It is always replaced, never changed, so its inode, size and time identify it. */
  #cached: ({ id: string } & Loaded) | undefined;
  /** Changes that wait for the write under way: the next write takes all of them. */
  #waiting: Change[] = [];
  #writing: Promise<void> = Promise.resolve();

  /** Writing asynchronously takes longer, and only pays if the process has other work to do meanwhile. */
  constructor(folder: string, onCorrupt: (keptAs: string) => void, writes: 'sync' | 'async' = 'sync') {
    this.#folder = folder;
    this.#path = statePath(folder);
    this.#onCorrupt = onCorrupt;
    this.#writes = writes;
  }

  /** Whether the next change will set the file aside. The entries in it that are complete are read until then, and kept. */
  get isCorrupt(): boolean {
    return this.#load().isCorrupt;
  }

  /** Returns a session with its progress at a destination, or at the last one. Undefined if the session is new. */
  read(sessionId: string, destination?: string): Entry | undefined {
    const text = findEntryText(this.#lines(), sessionId);
    const entry = text === undefined ? undefined : decodeEntry(text);
    return entry && destination !== undefined ? withProgressAt(entry, destination) : entry;
  }

  all(): SessionEntry[] {
    return decodeLines(this.#lines());
  }

  /** Returns the sessions that a later run has to look at. */
  unsettled(): SessionEntry[] {
    return decodeLines(this.#lines().filter((line) => !isSettledLine(line)));
  }

  /** Whether a destination's URL or key is wrong: sending to it failed for the session, and nothing has ever arrived there. */
  isMistaken(destination: string, entry: Entry): boolean {
    return hasFailedAt(entry, destination) && !this.hasAcknowledged(destination);
  }

  /** Whether a destination has acknowledged anything of any session. */
  hasAcknowledged(destination: string): boolean {
    const candidates = this.#lines().filter((line) => line.includes(destination));
    return decodeLines(candidates).some(([, entry]) => isAcknowledgedBy(entry, destination));
  }

  /** Returns at most `limit` sessions that have not changed since a moment, the oldest first. */
  untouchedSince(moment: string, limit: number): SessionEntry[] {
    const candidates = this.#lines().filter((line) => findUpdated(line) < moment);
    const oldestFirst = candidates.toSorted((a, b) => findUpdated(a).localeCompare(findUpdated(b)));
    return decodeLines(oldestFirst.slice(0, limit)).filter(([, { updated }]) => updated < moment);
  }

  /** Returns the other sessions that begin with this prompt. */
  sessionsWithFirst(first: string, sessionId: string): SessionEntry[] {
    const mark = toBytes(`"first":${JSON.stringify(first)}`);
    const candidates = this.#lines().filter((line) => line.includes(mark));
    return decodeLines(candidates).filter(([id, entry]) => id !== sessionId && entry.first === first);
  }

  /** Returns the sessions that know an agent, with their progress at a destination. */
  sessionsWithAgent(agentId: string, destination: string): SessionEntry[] {
    const mark = toBytes(`${JSON.stringify(agentId)}:`);
    const candidates = decodeLines(this.#lines().filter((line) => line.includes(mark)));
    return candidates
      .map(([id, entry]): SessionEntry => [id, withProgressAt(entry, destination)])
      .filter(([, { agents }]) => agents?.[agentId] !== undefined);
  }

  /**
   * Changes a session's entry on disk, and with a destination its progress there, whatever other processes change meanwhile.
   * Resolves once it is written.
   */
  update(sessionId: string, change: Partial<Entry>, destination?: string): Promise<void> {
    return this.#change((lines) =>
      withEntry(lines, sessionId, changeEntryText(findEntryText(lines, sessionId), change, destination)),
    );
  }

  /** Returns how far an earlier run has come in turns that are too long for one run. */
  readCheckpoints(sessionId: string, destination: string): Checkpoint[] {
    return readCheckpoints(this.#checkpointsPath(sessionId), destination);
  }

  keepCheckpoints(sessionId: string, destination: string, checkpoints: readonly Checkpoint[]): void {
    writeCheckpoints(this.#checkpointsPath(sessionId), destination, checkpoints);
  }

  remove(sessionIds: readonly string[]): Promise<void> {
    for (const sessionId of sessionIds) writeCheckpoints(this.#checkpointsPath(sessionId), '', []);
    return this.#change((lines) => sessionIds.reduce(withoutEntry, lines));
  }

  /** Throws if nothing can be written: then every run would send the same again. */
  async checkWritable(): Promise<void> {
    const lock = await this.#lockFile();
    lock.release();
    const { bavail, bsize } = statfsSync(this.#folder);
    const needed = 2 * (statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0) + FREE_BYTES;
    if (bavail * bsize < needed) throw new Error('the disk of the state folder is full');
  }

  /** Removes temporary files that killed processes have left over. */
  tidy(): void {
    const names = existsSync(this.#folder) ? readdirSync(this.#folder).filter((name) => TEMPORARY.test(name)) : [];
    for (const path of names.map((name) => join(this.#folder, name))) {
      const { mtimeMs = Date.now() } = statSync(path, { throwIfNoEntry: false }) ?? {};
      if (Date.now() - mtimeMs > LEFT_OVER_AFTER_MS) rmSync(path, { force: true });
    }
  }

  /**
   * Waits until the deadline (ms since 1970) for the right to send a session to a destination; undefined if another run keeps it.
   */
  lock(sessionId: string, destination: string, deadline: number, stop?: AbortSignal): Promise<Lock | undefined> {
    return takeLock(
      join(locksFolder(this.#folder), `${sessionFileName(sessionId)}.${destination}.lock`),
      deadline,
      stop,
    );
  }

  #checkpointsPath(sessionId: string): string {
    return join(this.#folder, 'cc-langfuse_parts', `${sessionFileName(sessionId)}.json`);
  }

  #change(change: Change): Promise<void> {
    this.#waiting.push(change);
    if (this.#waiting.length === 1) this.#writing = this.#writing.catch(() => {}).then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    let changes: Change[] = [];
    const lock = await this.#lockFile().finally(() => {
      changes = this.#waiting;
      this.#waiting = [];
    });
    try {
      const loaded = this.#load();
      if (loaded.isCorrupt) this.#setAside();
      const lines = changes.reduce((before, change) => change(before), loaded.lines);
      const bytes = formatFile(lines);
      // We write the temporary file ourselves: the library takes a write that a full disk cut short for a complete one.
      const options = { mode: 0o600, tmpfileCreated: (temporary: string) => writeFileSync(temporary, bytes) };
      if (this.#writes === 'sync') writeFileAtomic.sync(this.#path, '', options);
      else await writeFileAtomic(this.#path, '', options);
      this.#cached = { id: identifyFile(statSync(this.#path, { bigint: true })), lines, isCorrupt: false };
    } finally {
      lock.release();
    }
  }

  async #lockFile(): Promise<Lock> {
    const lock = await takeLock(`${this.#path}.lock`, Date.now() + LOCK_WAIT_MS);
    if (!lock) throw new Error('the state file stayed locked');
    return lock;
  }

  #lines(): FileLines {
    return this.#load().lines;
  }

  #load(): Loaded {
    let file: number | undefined;
    try {
      // Without O_NONBLOCK, opening a FIFO would hang.
      file = openSync(this.#path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
      const status = fstatSync(file, { bigint: true });
      if (!status.isFile()) throw Object.assign(new Error(), { code: 'not a regular file' });
      const id = identifyFile(status);
      if (this.#cached?.id === id) return this.#cached;
      const bytes = readFileSync(file);
      const lines = parseFile(bytes);
      this.#cached = { id, lines: lines ?? salvage(bytes), isCorrupt: lines === undefined };
      return this.#cached;
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return { lines: [], isCorrupt: false };
      throw new Error(`the state file ${this.#path} cannot be read: ${code}`);
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  #setAside(): void {
    const keptAs = `${this.#path}.corrupt-${Date.now()}`;
    renameSync(this.#path, keptAs);
    this.#onCorrupt(keptAs);
  }
}
