import {
  type BigIntStats,
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
import { isRecord, parseJson } from '../shared/json.js';
import { Entry, merged, NEW_ENTRY } from './entry.js';
import {
  ENCODING,
  type EntryLines,
  encoded,
  entryLinesIn,
  entryTextIn,
  linesThat,
  NO_LINES,
  splitLine,
  wholeLinesIn,
  withEntry,
  withoutEntries,
} from './entry-lines.js';
import { type Lock, sessionFileName, takeLock } from './lock.js';

const LOCK_WAIT_MS = 10_000;
const FREE_BYTES = 1 << 16;
const FILE_NAME = 'cc-langfuse_state.json';
/** What a process that was killed in the middle of writing leaves behind. */
const TEMPORARY = new RegExp(`^${FILE_NAME.replace('.', '\\.')}\\.\\d+$`);
const LEFT_BEHIND_MS = 60 * 60_000;

export function statePath(folder: string): string {
  return join(folder, FILE_NAME);
}

export function locksFolder(folder: string): string {
  return join(folder, 'cc-langfuse_locks');
}

/** What an export asks and tells the state. */
export interface SessionState {
  /** What is known of a session; nothing where it is new. */
  read(sessionId: string): Entry | undefined;
  update(sessionId: string, change: Partial<Entry>): Promise<void>;
  /** Forgets sessions. */
  remove(sessionIds: readonly string[]): Promise<void>;
  /** The other sessions that begin with this prompt. */
  sessionsWithFirst(first: string, sessionId: string): [string, Entry][];
  /** Throws where nothing can be written: what is sent then would be sent by every run. */
  ready(): Promise<void>;
  /** The right to work on a session, by the deadline (ms since 1970) or not at all. */
  lock(sessionId: string, deadline: number, stop?: AbortSignal): Promise<Lock | undefined>;
}

type Change = (lines: EntryLines) => EntryLines;

/** The state file: an entry for each session, each on a line of its own. */
export class StateStore implements SessionState {
  readonly #folder: string;
  readonly #path: string;
  readonly #onCorrupt: (keptAs: string) => void;
  readonly #writes: 'at once' | 'in the background';
  /** What the file held when it was last read or written; it is written by being replaced, so it has a number of its own. */
  #seen: { file: string; lines: EntryLines } | undefined;
  /** Changes that wait for the write under way: they go into the next one together. */
  #waiting: Change[] = [];
  #writing: Promise<void> = Promise.resolve();

  /** A process that has other work to do meanwhile writes in the background; for one that has not, that takes longer. */
  constructor(
    folder: string,
    onCorrupt: (keptAs: string) => void,
    writes: 'at once' | 'in the background' = 'at once',
  ) {
    this.#folder = folder;
    this.#path = statePath(folder);
    this.#onCorrupt = onCorrupt;
    this.#writes = writes;
  }

  /** Whether the next change will set the file aside. */
  get isCorrupt(): boolean {
    return this.#readAll() === undefined;
  }

  read(sessionId: string): Entry | undefined {
    return entryIn(entryTextIn(this.#readAll() ?? NO_LINES, sessionId));
  }

  /** The sessions that may be wanted, by the bytes of their lines: thousands are not to be parsed for a few. */
  entries(mayBeWanted: (line: string) => boolean): [string, Entry][] {
    return entriesOf(linesThat(mayBeWanted, this.#readAll() ?? NO_LINES));
  }

  /** The sessions that were changed last before a moment, the oldest first, at most so many. */
  untouchedSince(moment: string, atMost: number): [string, Entry][] {
    const old = linesThat((line) => updatedIn(line) < moment, this.#readAll() ?? NO_LINES);
    return entriesOf(old.toSorted((a, b) => updatedIn(a).localeCompare(updatedIn(b))).slice(0, atMost));
  }

  sessionsWithFirst(first: string, sessionId: string): [string, Entry][] {
    const mark = encoded(`"first":${JSON.stringify(first)}`);
    return this.entries((line) => line.includes(mark)).filter(
      ([id, entry]) => id !== sessionId && entry.first === first,
    );
  }

  /** Changes a session's entry on disk, whatever other processes do meanwhile; what it does not know of stays. */
  update(sessionId: string, change: Partial<Entry>): Promise<void> {
    return this.#change((lines) => {
      const before = parseJson(entryTextIn(lines, sessionId) ?? '');
      const known: Entry = { ...NEW_ENTRY, ...(isRecord(before) ? before : {}) };
      const after = { ...merged(known, change), updated: new Date().toISOString() };
      return withEntry(lines, sessionId, JSON.stringify(after));
    });
  }

  remove(sessionIds: readonly string[]): Promise<void> {
    return this.#change((lines) => withoutEntries(lines, sessionIds));
  }

  async ready(): Promise<void> {
    const lock = await this.#lockFile();
    lock.release();
    const { bavail, bsize } = statfsSync(this.#folder);
    const needed = 2 * (statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0) + FREE_BYTES;
    if (bavail * bsize < needed) throw new Error('the disk of the state folder is full');
  }

  /** Removes what processes that were killed have left behind. */
  tidy(): void {
    const names = existsSync(this.#folder) ? readdirSync(this.#folder).filter((name) => TEMPORARY.test(name)) : [];
    for (const path of names.map((name) => join(this.#folder, name))) {
      const { mtimeMs = Date.now() } = statSync(path, { throwIfNoEntry: false }) ?? {};
      if (Date.now() - mtimeMs > LEFT_BEHIND_MS) rmSync(path, { force: true });
    }
  }

  lock(sessionId: string, deadline: number, stop?: AbortSignal): Promise<Lock | undefined> {
    return takeLock(join(locksFolder(this.#folder), `${sessionFileName(sessionId)}.lock`), deadline, stop);
  }

  /** Resolves when the change is on disk. */
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
      const lines = changes.reduce((before, change) => change(before), this.#readAll() ?? this.#beginAnew());
      // Written by us and not by the library, which takes a write that a full disk cut short for the whole.
      const options = { mode: 0o600, tmpfileCreated: (temporary: string) => writeFileSync(temporary, lines, ENCODING) };
      if (this.#writes === 'at once') writeFileAtomic.sync(this.#path, '', options);
      else await writeFileAtomic(this.#path, '', options);
      this.#seen = { file: numberOf(statSync(this.#path, { bigint: true })), lines };
    } finally {
      lock.release();
    }
  }

  async #lockFile(): Promise<Lock> {
    const lock = await takeLock(`${this.#path}.lock`, Date.now() + LOCK_WAIT_MS);
    if (!lock) throw new Error('the state file stayed locked');
    return lock;
  }

  /** Every entry; undefined where the file is corrupt. */
  #readAll(): EntryLines | undefined {
    let file: number | undefined;
    try {
      // A FIFO in its place would hang.
      file = openSync(this.#path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
      const status = fstatSync(file, { bigint: true });
      if (!status.isFile()) throw Object.assign(new Error(), { code: 'not a regular file' });
      const number = numberOf(status);
      if (this.#seen?.file === number) return this.#seen.lines;
      const lines = entryLinesIn(readFileSync(file, ENCODING));
      if (lines !== undefined) this.#seen = { file: number, lines };
      return lines;
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return NO_LINES;
      throw new Error(`the state file ${this.#path} cannot be read: ${code}`);
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  /** Sets a corrupt file aside; the entries that stand whole in it are kept. */
  #beginAnew(): EntryLines {
    const whole = wholeLinesIn(readFileSync(this.#path, ENCODING));
    const keptAs = `${this.#path}.corrupt-${Date.now()}`;
    renameSync(this.#path, keptAs);
    this.#onCorrupt(keptAs);
    return whole;
  }
}

function updatedIn(line: string): string {
  return /"updated":"([^"]*)"/.exec(line)?.[1] ?? '';
}

function entriesOf(lines: readonly string[]): [string, Entry][] {
  return lines.flatMap((line) => {
    const [sessionId, text] = splitLine(line) ?? [];
    const entry = entryIn(text);
    return sessionId !== undefined && entry ? [[sessionId, entry] as [string, Entry]] : [];
  });
}

function entryIn(text: string | undefined): Entry | undefined {
  const entry = text === undefined ? undefined : Entry.safeParse(parseJson(text));
  return entry?.success ? entry.data : undefined;
}

function numberOf({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs}`;
}
