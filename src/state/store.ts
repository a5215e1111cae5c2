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
  /** Only a backfill knows it: whether it ran with tracing on nobody has told. */
  backfilled: optional(z.boolean()),
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
    this.#path = join(folder, FILE_NAME);
    this.#onCorrupt = onCorrupt;
    this.#writes = writes;
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
    return takeLock(join(this.#folder, 'cc-langfuse_locks', `${fileNameOf(sessionId)}.lock`), deadline, stop);
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
