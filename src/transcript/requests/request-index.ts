import { attempt } from '../../shared/attempt.js';
import { parseJson } from '../../shared/json.js';
import { memoize } from '../../shared/memoize.js';
import { type Line, parseLine, type RequestLine } from '../file/line.js';
import { parseLines, withReader } from '../file/lines.js';
import { type LineLocation, TranscriptReader } from '../file/reader.js';
import { BlobLine, type RequestMessage, type RequestShape, ShapeLine } from '../file/schema.js';
import { type HashedMessage, MessageHashes, type MessageSource, toBlockList } from './message-hashes.js';

/** A request to the model as Claude Code sent it, as far as its transcript has it. */
export interface SentRequest {
  readonly count: number;
  /** The system prompt and the tools; undefined if they are not found. */
  readonly shape: StoredPart<RequestShape> | undefined;
  /** The newest first. Each is searched for only when the iteration reaches it. */
  readonly messages: Iterable<StoredPart<RequestMessage> | MissingMessages>;
}

/** A part of a request that is in the file. Reading it returns undefined if the file has changed. */
export interface StoredPart<T> {
  readonly kind: 'stored';
  readonly hash: string;
  readonly read: () => T | undefined;
}

/** A number of messages that are not found. */
export interface MissingMessages {
  readonly kind: 'missing';
  readonly count: number;
}

/** A request as its line describes it: the first messages of another request, and those that it adds. */
interface Delta {
  readonly base: string | undefined;
  readonly keep: number;
  readonly added: readonly HashedMessage[];
  readonly count: number;
  readonly shapeHash: string | undefined;
  readonly start: number;
}

const MB = 1 << 20;
/** The first request is at the top of a file, after the system prompt and the tools. */
const HEAD_BYTES = MB;
/** A request adds little to the one before it: this holds hundreds of them, and as much text as a field may have. */
const NEAR_BYTES = 2 * MB;
const FAR_BYTES = 32 * MB;
/** Far more than Claude Code writes. */
const MAX_BASES = 100_000;

/**
 * Finds the requests of a transcript and their messages. It remembers only where they are; their content stays in the
 * file. A run seldom starts at the top of a file: if something is not found, parts of the file before the start are searched.
 */
export class RequestIndex {
  readonly #path: string;
  readonly #hashes = new MessageHashes();
  readonly #requests = new Map<string, Delta>();
  readonly #shapes = new Map<string, LineLocation>();
  /** One object per message: in a resumed session, the first request of each process lists all messages again. */
  readonly #message = memoize((hash: string): HashedMessage => ({ hash, source: undefined }));
  /** Opened at once, since the file can be moved to another folder while it is read. */
  readonly #reader: TranscriptReader | undefined;
  #unsearched: ReturnType<typeof rangesBefore> | undefined;

  constructor(path: string) {
    this.#path = path;
    this.#reader = attempt(() => TranscriptReader.open(path));
  }

  addLine(line: Line): void {
    this.#unsearched ??= rangesBefore(line.location.start);
    this.#add(line, this.#hashes);
  }

  /** Takes lines as they pass. */
  *observe(lines: Iterable<Line>): Generator<Line, void, undefined> {
    for (const line of lines) {
      this.addLine(line);
      yield line;
    }
  }

  /** Undefined if there is no valid line for the request. */
  find(id: string): SentRequest | undefined {
    const delta = this.#requests.get(id);
    return delta && { count: delta.count, shape: this.#findShape(delta), messages: this.#newestFirst(delta) };
  }

  close(): void {
    this.#reader?.close();
  }

  #add(line: Line, hashes: MessageHashes): void {
    if (line.kind === 'request') this.#addRequest(line);
    if (line.kind === 'other' && line.type === 'api-request-shape' && line.hash !== undefined)
      this.#shapes.set(line.hash, line.location);
    // This throws if the message is nested too deeply to be written as JSON.
    const message = attempt(() => hashes.add(line));
    if (message) this.#message(message.hash).source = message.source;
  }

  #addRequest({ fields, location }: RequestLine): void {
    const { id, base, keep = 0, tail, shapeHash } = fields;
    if (id === undefined || !Array.isArray(tail) || !tail.every((hash) => typeof hash === 'string')) return;
    const count = keep + tail.length;
    if (keep < 0 || !Number.isSafeInteger(count)) return;
    const added = tail.map((hash) => this.#message(hash));
    this.#requests.set(id, { base, keep, added, count, shapeHash, start: location.start });
  }

  *#newestFirst(newest: Delta): Generator<StoredPart<RequestMessage> | MissingMessages, void, undefined> {
    let delta = newest;
    let left = newest.count;
    for (let bases = 0; bases < MAX_BASES; bases += 1) {
      const added = delta.added.slice(0, Math.max(0, left - delta.keep));
      for (const message of added.toReversed()) yield this.#findMessage(message);
      left = Math.min(left, delta.keep);
      const base = left > 0 ? this.#findBase(delta) : undefined;
      if (!base || base.count < left) break;
      delta = base;
    }
    if (left > 0) yield { kind: 'missing', count: left };
  }

  /** Only a request from an earlier line, so that bases cannot form a circle. */
  #findBase({ base: id, start }: Delta): Delta | undefined {
    const base = id === undefined ? undefined : this.#search(() => this.#requests.get(id));
    return base && base.start < start ? base : undefined;
  }

  #findMessage(message: HashedMessage): StoredPart<RequestMessage> | MissingMessages {
    const source = this.#search(() => message.source);
    if (!source) return { kind: 'missing', count: 1 };
    return { kind: 'stored', hash: message.hash, read: () => this.#readMessage(source) };
  }

  #findShape({ shapeHash: hash }: Delta): StoredPart<RequestShape> | undefined {
    const location = hash === undefined ? undefined : this.#search(() => this.#shapes.get(hash));
    if (hash === undefined || !location) return undefined;
    return { kind: 'stored', hash, read: () => ShapeLine.parse(this.#readJson(location)).shape };
  }

  #readMessage(source: MessageSource): RequestMessage | undefined {
    if (source.kind === 'blob') return BlobLine.parse(this.#readJson(source.location)).message;
    const { role, lines, count } = source;
    const contents = lines.slice(0, count).map((location) => {
      const line = parseLine({ ...location, bytes: this.#read(location) });
      return line?.kind === role ? line.content : undefined;
    });
    return contents.includes(undefined) ? undefined : { role, content: contents.flatMap(toBlockList) };
  }

  #readJson(location: LineLocation): unknown {
    return parseJson(this.#read(location).toString('utf8'));
  }

  #read(location: LineLocation): Buffer {
    return attempt(() => this.#reader?.readBytes(location)) ?? Buffer.alloc(0);
  }

  /** Searches more and more of the file until something is found, or the limit is reached. */
  #search<T>(find: () => T | undefined): T | undefined {
    for (;;) {
      const found = find();
      const range = found === undefined ? this.#unsearched?.shift() : undefined;
      if (!range) return found;
      // If the file is gone, its messages are missing.
      attempt(() => this.#addRange(range.from, range.to));
    }
  }

  #addRange(from: number, to: number): void {
    const hashes = new MessageHashes();
    withReader(this.#path, (reader) => {
      reader.moveToLineFrom(from);
      for (const line of parseLines(reader.lines())) {
        if (line.location.start >= to) return;
        this.#add(line, hashes);
      }
    });
  }
}

/** Where to search, in this order. A longer range contains the shorter one, at whose start a response can be torn. */
function rangesBefore(start: number) {
  const ranges = [
    { from: 0, to: Math.min(HEAD_BYTES, start) },
    { from: Math.max(0, start - NEAR_BYTES), to: start },
    { from: Math.max(0, start - FAR_BYTES), to: start },
  ];
  const whole = ranges.findIndex(({ from, to }) => from === 0 && to === start);
  return whole < 0 ? ranges : ranges.slice(0, whole + 1);
}
