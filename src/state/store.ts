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
import * as z from 'zod/mini';
import { isRecord, type Json, parseJson } from '../json.js';
import { optional } from '../lenient.js';
import { fileNameOf } from '../state-folder.js';
import { type Lock, takeLock } from './lock.js';

const count = z.number().check(z.int(), z.nonnegative());

const Tokens = z.object({ input: z.number(), output: z.number(), cacheRead: z.number(), cacheWritten: z.number() });

const Facts = z.object({
  titles: z.object({
    'custom-title': optional(z.string()),
    'ai-title': optional(z.string()),
    summary: optional(z.string()),
  }),
  pullRequest: optional(z.string()),
  account: z.object({
    told: optional(Tokens),
    line: count,
    since: Tokens,
    compactions: count,
    hasAgents: z.boolean(),
  }),
});

/** How far a subagent has been exported, and where it hangs: it may end long after the turn that started it. */
const AgentEntry = z.object({
  last_line: count,
  sent_line: optional(count),
  /** How long its file was then: what has not grown has nothing new. */
  bytes: optional(count),
  trace: z.string(),
  trace_name: z.string(),
  trace_metadata: z.custom<{ readonly [key: string]: Json }>(isRecord),
  trace_tags: optional(z.array(z.string())),
  /** The span of the call that started it; none where no call did. */
  parent: optional(z.string()),
  /** That call's id, and the task that a workflow is called by as long as it runs. */
  call: optional(z.string()),
  task: optional(z.string()),
  type: optional(z.string()),
  description: optional(z.string()),
  background: optional(z.boolean()),
  /** It was made of what its call's result told: its file was gone. */
  lost: optional(z.boolean()),
});
export type AgentEntry = z.infer<typeof AgentEntry>;

/**
 * How far a session has been exported. The first three are what the first cc-langfuse wrote, and its file is read as it
 * is; `last_line` and `turn_line` are 1-based line numbers.
 */
const Entry = z.object({
  /** The last line of the last turn that the server has acknowledged whole. */
  last_line: count,
  turn_count: count,
  updated: z.catch(z.string(), ''),
  /** Where that turn starts, by line and by byte: the next run reads it again, since it may have grown. */
  turn_line: optional(count),
  offset: optional(count),
  /** Its first prompt, to see that it is the same turn. */
  prompt: optional(z.string()),
  /** The first prompt of the session: one that begins with the same is its fork. */
  first: optional(z.string()),
  /** Up to where it is a fork: what stands there is exported by another session. */
  copied_line: optional(count),
  /** The time that its lines without one took over from the lines before. */
  time: optional(count),
  /** Up to which line observations are acknowledged; beyond `last_line` where a turn was sent in part. */
  sent_line: optional(count),
  /** Its SessionEnd was seen: what is written after it, without a SessionStart, ran with tracing off. */
  ended: optional(z.boolean()),
  /** Up to which byte its transcript holds nothing that is left. */
  bytes: optional(count),
  /** How long the files of its agents were when nothing of them was left. */
  agents_bytes: optional(count),
  /** The settings that describe it, as its own runs had them: whichever run brings what is missing, it reads the same. */
  given: optional(z.record(z.string(), z.string())),
  /** What lines of their own had told of the session before that turn. */
  session: optional(Facts),
  /** When the session was taken over from the first cc-langfuse, which saw to the agents before. */
  agents_since: optional(z.string()),
  /** By agent id; a workflow's, as `workflow <run id>`, tells where its steps hang. */
  agents: optional(z.record(z.string(), optional(AgentEntry))),
  path: optional(z.string()),
  destination: optional(z.string()),
  pending: optional(z.object({ since: z.string(), attempts: count, reason: z.string(), closed_line: optional(count) })),
});
export type Entry = z.infer<typeof Entry>;

/** One change after the other; what they say of different agents stands side by side. */
export function merged<T extends Partial<Entry>>(before: T, change: Partial<Entry>): T {
  const agents = before.agents || change.agents ? { agents: { ...before.agents, ...change.agents } } : {};
  return { ...before, ...change, ...agents };
}

export const NEW_ENTRY: Entry = { last_line: 0, turn_count: 0, updated: '' };

const LOCK_WAIT_MS = 10_000;
const FREE_BYTES = 1 << 16;
const FILE_NAME = 'cc-langfuse_state.json';
/** What a process that was killed in the middle of writing leaves behind. */
const TEMPORARY = new RegExp(`^${FILE_NAME.replace('.', '\\.')}\\.\\d+$`);
const LEFT_BEHIND_MS = 60 * 60_000;

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
  lock(sessionId: string, deadline: number): Promise<Lock | undefined>;
}

type Entries = Readonly<Record<string, unknown>>;
type Change = (entries: Entries) => Entries;

/** The state file: an entry for each session. */
export class StateStore implements SessionState {
  readonly #folder: string;
  readonly #path: string;
  readonly #onCorrupt: (keptAs: string) => void;
  /** What the file held when it was last read or written; it is written by being replaced, so it has a number of its own. */
  #seen: { file: string; entries: Entries } | undefined;
  /** Entries as they stand in the file: a file of thousands is not to be written anew for one of them. */
  readonly #texts = new WeakMap<object, string>();
  /** Changes that wait for the write under way: they go into the next one together. */
  #waiting: Change[] = [];
  #writing: Promise<void> = Promise.resolve();

  constructor(folder: string, onCorrupt: (keptAs: string) => void) {
    this.#folder = folder;
    this.#path = join(folder, FILE_NAME);
    this.#onCorrupt = onCorrupt;
  }

  read(sessionId: string): Entry | undefined {
    const entry = Entry.safeParse(this.#readAll()?.[sessionId]);
    return entry.success ? entry.data : undefined;
  }

  /** The sessions whose entry, as it stands in the file, is wanted. */
  entries(isWanted: (entry: Readonly<Record<string, unknown>>) => boolean): [string, Entry][] {
    return Object.entries(this.#readAll() ?? {}).flatMap(([sessionId, value]) => {
      if (!isRecord(value) || !isWanted(value)) return [];
      const entry = Entry.safeParse(value);
      return entry.success ? [[sessionId, entry.data] as [string, Entry]] : [];
    });
  }

  sessionsWithFirst(first: string, sessionId: string): [string, Entry][] {
    return this.entries((entry) => entry.first === first).filter(([id]) => id !== sessionId);
  }

  /** Changes a session's entry on disk, whatever other processes do meanwhile; what it does not know of stays. */
  update(sessionId: string, change: Partial<Entry>): Promise<void> {
    return this.#change((all) => {
      const before = all[sessionId];
      const known: Entry = { ...NEW_ENTRY, ...(isRecord(before) ? before : {}) };
      return { ...all, [sessionId]: { ...merged(known, change), updated: new Date().toISOString() } };
    });
  }

  remove(sessionIds: readonly string[]): Promise<void> {
    return this.#change((all) => Object.fromEntries(Object.entries(all).filter(([id]) => !sessionIds.includes(id))));
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

  lock(sessionId: string, deadline: number): Promise<Lock | undefined> {
    return takeLock(join(this.#folder, 'cc-langfuse_locks', `${fileNameOf(sessionId)}.lock`), deadline);
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
      let entries = this.#readAll() ?? this.#beginAnew();
      for (const change of changes) entries = change(entries);
      const text = this.#textOf(entries);
      // Written by us and not by the library, which takes a write that a full disk cut short for the whole.
      const tmpfileCreated = (temporary: string) => writeFileSync(temporary, text);
      writeFileAtomic.sync(this.#path, '', { mode: 0o600, tmpfileCreated });
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

  #textOf(entries: Entries): string {
    const texts = Object.entries(entries).map(([sessionId, value]) => {
      const isKept = typeof value === 'object' && value !== null;
      const text = (isKept && this.#texts.get(value)) || JSON.stringify(value);
      if (isKept) this.#texts.set(value, text);
      return `${JSON.stringify(sessionId)}:${text}`;
    });
    return `{${texts.join(',')}}\n`;
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
      const entries = parseJson(readFileSync(file, 'utf8'));
      if (!isRecord(entries)) return undefined;
      this.#seen = { file: number, entries };
      return entries;
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return {};
      throw new Error(`the state file ${this.#path} cannot be read: ${code}`);
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  /** Sets a corrupt file aside; the entries that stand whole in it before the first that does not are kept. */
  #beginAnew(): Entries {
    const entries = wholeEntriesOf(readFileSync(this.#path, 'utf8'));
    const keptAs = `${this.#path}.corrupt-${Date.now()}`;
    renameSync(this.#path, keptAs);
    this.#onCorrupt(keptAs);
    return entries;
  }
}

function numberOf({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs}`;
}

const CUTS_TRIED = 100;

function wholeEntriesOf(text: string): Entries {
  let end = text.length;
  for (let tries = 0; tries < CUTS_TRIED && end > 0; tries += 1) {
    end = text.lastIndexOf('},', end - 1);
    const entries = end < 0 ? undefined : parseJson(`${text.slice(0, end + 1)}}`);
    if (isRecord(entries)) return entries;
  }
  return {};
}
