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
import { isRecord, parseJson } from '../json.js';
import { fileNameOf } from '../state-folder.js';
import { Entry, merged, NEW_ENTRY } from './entry.js';
import { type Lock, takeLock } from './lock.js';

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

/** What the file has of each session, by its id: as text, since of thousands a run reads one or two. */
type Entries = ReadonlyMap<string, string>;
type Change = (entries: Map<string, string>) => void;

/** The state file: an entry for each session, each on a line of its own. */
export class StateStore implements SessionState {
  readonly #folder: string;
  readonly #path: string;
  readonly #onCorrupt: (keptAs: string) => void;
  readonly #writes: 'at once' | 'in the background';
  /** What the file held when it was last read or written; it is written by being replaced, so it has a number of its own. */
  #seen: { file: string; entries: Entries } | undefined;
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
    return entryIn(this.#readAll()?.get(sessionId));
  }

  /** The sessions that may be wanted, by what stands in the file: thousands are not to be parsed for a few. */
  entries(mayBeWanted: (text: string) => boolean): [string, Entry][] {
    return [...(this.#readAll() ?? [])].flatMap(([sessionId, text]) => {
      const entry = mayBeWanted(text) ? entryIn(text) : undefined;
      return entry ? [[sessionId, entry] as [string, Entry]] : [];
    });
  }

  /** The sessions that were changed last before a moment, the oldest first, at most so many. */
  untouchedSince(moment: string, atMost: number): [string, Entry][] {
    return [...(this.#readAll() ?? [])]
      .flatMap(([sessionId, text]) => {
        const updated = UPDATED.exec(text)?.[1] ?? '';
        return updated < moment ? [{ sessionId, text, updated }] : [];
      })
      .toSorted((a, b) => a.updated.localeCompare(b.updated))
      .slice(0, atMost)
      .flatMap(({ sessionId, text }) => {
        const entry = entryIn(text);
        return entry ? [[sessionId, entry] as [string, Entry]] : [];
      });
  }

  sessionsWithFirst(first: string, sessionId: string): [string, Entry][] {
    const mark = `"first":${JSON.stringify(first)}`;
    return this.entries((text) => text.includes(mark)).filter(
      ([id, entry]) => id !== sessionId && entry.first === first,
    );
  }

  /** Changes a session's entry on disk, whatever other processes do meanwhile; what it does not know of stays. */
  update(sessionId: string, change: Partial<Entry>): Promise<void> {
    return this.#change((all) => {
      const before = parseJson(all.get(sessionId) ?? '');
      const known: Entry = { ...NEW_ENTRY, ...(isRecord(before) ? before : {}) };
      all.set(sessionId, JSON.stringify({ ...merged(known, change), updated: new Date().toISOString() }));
    });
  }

  remove(sessionIds: readonly string[]): Promise<void> {
    return this.#change((all) => {
      for (const sessionId of sessionIds) all.delete(sessionId);
    });
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
    return takeLock(join(locksFolder(this.#folder), `${fileNameOf(sessionId)}.lock`), deadline, stop);
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
      const entries = new Map(this.#readAll() ?? this.#beginAnew());
      for (const change of changes) change(entries);
      const text = textOf(entries);
      // Written by us and not by the library, which takes a write that a full disk cut short for the whole.
      const options = { mode: 0o600, tmpfileCreated: (temporary: string) => writeFileSync(temporary, text) };
      if (this.#writes === 'at once') writeFileAtomic.sync(this.#path, '', options);
      else await writeFileAtomic(this.#path, '', options);
      this.#seen = { file: numberOf(statSync(this.#path, { bigint: true })), entries };
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
  #readAll(): Entries | undefined {
    let file: number | undefined;
    try {
      // A FIFO in its place would hang.
      file = openSync(this.#path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
      const status = fstatSync(file, { bigint: true });
      if (!status.isFile()) throw Object.assign(new Error(), { code: 'not a regular file' });
      const number = numberOf(status);
      if (this.#seen?.file === number) return this.#seen.entries;
      const entries = entriesIn(readFileSync(file, 'utf8'));
      if (entries) this.#seen = { file: number, entries };
      return entries;
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return new Map();
      throw new Error(`the state file ${this.#path} cannot be read: ${code}`);
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  /** Sets a corrupt file aside; the entries that stand whole in it are kept. */
  #beginAnew(): Entries {
    const whole = [...linesIn(readFileSync(this.#path, 'utf8'))].filter(([, text]) => isRecord(parseJson(text)));
    const keptAs = `${this.#path}.corrupt-${Date.now()}`;
    renameSync(this.#path, keptAs);
    this.#onCorrupt(keptAs);
    return new Map(whole);
  }
}

const UPDATED = /"updated":"([^"]*)"/;
const LINE = /^("(?:[^"\\]|\\.)*"):(.*?),?$/;
const [HEAD, TAIL] = ['{\n', '\n}\n'];

function entryIn(text: string | undefined): Entry | undefined {
  const entry = text === undefined ? undefined : Entry.safeParse(parseJson(text));
  return entry?.success ? entry.data : undefined;
}

function textOf(entries: Entries): string {
  return `${HEAD}${[...entries].map(([sessionId, text]) => `${JSON.stringify(sessionId)}:${text}`).join(',\n')}${TAIL}`;
}

/** As it was written here; as the first cc-langfuse, or somebody's editor, wrote it, it is parsed and taken apart. */
function entriesIn(text: string): Entries | undefined {
  if (text.startsWith(HEAD) && text.endsWith(TAIL)) {
    const lines = new Map(linesIn(text));
    if (lines.size === countOf(text, '\n') - 2) return lines;
  }
  const all = parseJson(text);
  return isRecord(all) ? new Map(Object.entries(all).map(([id, value]) => [id, JSON.stringify(value)])) : undefined;
}

function* linesIn(text: string): Generator<[string, string], void, undefined> {
  for (const line of text.split('\n')) {
    const [, key, value] = LINE.exec(line) ?? [];
    if (key !== undefined && value !== undefined) yield [JSON.parse(key), value];
  }
}

function countOf(text: string, mark: string): number {
  let count = 0;
  for (let place = text.indexOf(mark); place >= 0; place = text.indexOf(mark, place + 1)) count += 1;
  return count;
}

function numberOf({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs}`;
}
