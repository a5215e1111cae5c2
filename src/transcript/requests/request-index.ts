import { parseJson } from '../../shared/json.js';
import { type Line, parseLine } from '../file/line.js';
import { type LineLocation, TranscriptReader } from '../file/reader.js';
import { BlobLine, type RequestMessage, type RequestShape, ShapeLine } from '../file/schema.js';
import { MessageHashes, type MessageSource, toBlockList } from './message-hashes.js';

/** A request to the model as Claude Code sent it, as far as its transcript holds it. */
export interface SentRequest {
  /** How many messages it had. */
  readonly count: number;
  /** The system prompt and the tools; undefined where they are not to be found. */
  readonly shape: StoredPart<RequestShape> | undefined;
  /** The newest first, each looked for when its turn comes. */
  readonly messages: Iterable<StoredPart<RequestMessage> | MissingMessages>;
}

/** Something that lies in the file: undefined where it can no longer be read. */
export interface StoredPart<T> {
  readonly kind: 'stored';
  readonly hash: string;
  readonly read: () => T | undefined;
}

/** So many messages that are not to be found. */
export interface MissingMessages {
  readonly kind: 'missing';
  readonly count: number;
}

/** A request as its line tells it: so many messages of another's, and those that came with it. */
interface Delta {
  readonly base: string | undefined;
  readonly keep: number;
  readonly tail: readonly Named[];
  readonly shapeHash: string | undefined;
  readonly start: number;
}

/** A message that a request names, whether or not it has been seen. */
interface Named {
  readonly hash: string;
  source: MessageSource | undefined;
}

const MB = 1 << 20;
/** The first request stands at the top of a file, behind the system prompt and the tools. */
const HEAD_BYTES = MB;
/** What a request adds to the one before it is small: these hold hundreds, and as much text as a field may have. */
const NEAR_BYTES = 2 * MB;
const FAR_BYTES = 32 * MB;
/** Nothing that Claude Code writes comes near it. */
const MOST_BASES = 100_000;

/**
 * Where the requests of a transcript and their messages stand, of as much of it as has been seen: bodies stay in the file.
 * A run seldom begins at its top; what lies before is looked through when something is not found, as far as the bounds go.
 */
export class RequestIndex {
  readonly #path: string;
  readonly #hashes = new MessageHashes();
  readonly #requests = new Map<string, Delta>();
  readonly #shapes = new Map<string, LineLocation>();
  readonly #messages = new Map<string, Named>();
  readonly #reader: TranscriptReader | undefined;
  #stretches: Stretch[] | undefined;

  constructor(path: string) {
    this.#path = path;
    // While it is read, a file may be moved to another folder: whoever has opened it before still has it.
    this.#reader = opened(path);
  }

  /** Takes the next line of the file. */
  addLine(line: Line): void {
    this.#stretches ??= stretchesBefore(line.location.start);
    this.#take(line, this.#hashes);
  }

  /** Undefined where no line tells of it, or none that can be understood. */
  request(id: string): SentRequest | undefined {
    const delta = this.#requests.get(id);
    if (!delta) return undefined;
    return { count: countOf(delta), shape: this.#shapeOf(delta), messages: this.#newestFirst(delta) };
  }

  close(): void {
    this.#reader?.close();
  }

  #take(line: Line, hashes: MessageHashes): void {
    if (line.kind === 'request') this.#takeRequest(line);
    if (line.kind === 'other' && line.type === 'api-request-shape' && line.hash !== undefined)
      this.#shapes.set(line.hash, line.location);
    try {
      const message = hashes.in(line);
      if (message) this.#named(message.hash).source = message.source;
    } catch {
      // nested too deeply to be written
    }
  }

  #takeRequest({ fields, location: place }: Extract<Line, { kind: 'request' }>): void {
    const { id, base, keep = 0, tail, shapeHash } = fields;
    const isSound = Array.isArray(tail) && tail.every((hash) => typeof hash === 'string');
    if (id === undefined || !isSound || keep < 0 || !Number.isSafeInteger(keep + tail.length)) return;
    const messages = tail.map((hash) => this.#named(hash));
    this.#requests.set(id, { base, keep, tail: messages, shapeHash, start: place.start });
  }

  /** Each once: in a resumed session the first request of every process names them all. */
  #named(hash: string): Named {
    const known = this.#messages.get(hash) ?? { hash, source: undefined };
    this.#messages.set(hash, known);
    return known;
  }

  *#newestFirst(newest: Delta): Generator<StoredPart<RequestMessage> | MissingMessages, void, undefined> {
    let delta = newest;
    let left = countOf(newest);
    for (let bases = 0; bases < MOST_BASES; bases += 1) {
      const tail = delta.tail.slice(0, Math.max(0, left - delta.keep));
      for (const message of tail.toReversed()) yield this.#stored(message);
      left = Math.min(left, delta.keep);
      const base = left > 0 ? this.#baseOf(delta) : undefined;
      if (!base || countOf(base) < left) break;
      delta = base;
    }
    if (left > 0) yield { kind: 'missing', count: left };
  }

  /** A request is told of before those that build on it: so they never run in a circle. */
  #baseOf({ base: id, start }: Delta): Delta | undefined {
    if (id === undefined) return undefined;
    const base = this.#sought(() => this.#requests.get(id));
    return base && base.start < start ? base : undefined;
  }

  #stored(message: Named): StoredPart<RequestMessage> | MissingMessages {
    const source = this.#sought(() => message.source);
    if (!source) return { kind: 'missing', count: 1 };
    return { kind: 'stored', hash: message.hash, read: () => this.#messageAt(source) };
  }

  #shapeOf({ shapeHash: hash }: Delta): StoredPart<RequestShape> | undefined {
    if (hash === undefined) return undefined;
    const place = this.#sought(() => this.#shapes.get(hash));
    if (!place) return undefined;
    const read = () => ShapeLine.parse(parseJson(this.#textAt(place))).shape;
    return { kind: 'stored', hash, read };
  }

  #messageAt(source: MessageSource): RequestMessage | undefined {
    if (source.kind === 'blob') return BlobLine.parse(parseJson(this.#textAt(source.place))).message;
    const { role, places, count } = source;
    const lines = places.slice(0, count).map((place) => parseLine({ ...place, bytes: this.#bytesAt(place) }));
    const contents = lines.map((line) => (line?.kind === role ? line.content : undefined));
    return contents.includes(undefined) ? undefined : { role, content: contents.flatMap(toBlockList) };
  }

  #textAt(place: LineLocation): string {
    return this.#bytesAt(place).toString('utf8');
  }

  /** None where the file is not what it was. */
  #bytesAt(place: LineLocation): Buffer {
    try {
      return this.#reader?.readBytes(place) ?? NOTHING;
    } catch {
      return NOTHING;
    }
  }

  /** What is found, after looking as far back as may be. */
  #sought<T>(find: () => T | undefined): T | undefined {
    for (;;) {
      const found = find();
      const stretch = found === undefined ? this.#stretches?.shift() : undefined;
      if (!stretch) return found;
      this.#lookThrough(stretch);
    }
  }

  #lookThrough({ from, to }: Stretch): void {
    const hashes = new MessageHashes();
    try {
      const reader = TranscriptReader.open(this.#path);
      try {
        reader.moveToLineFrom(from);
        for (const source of reader.lines()) {
          if (source.start >= to) return;
          const line = parseLine(source);
          if (line) this.#take(line, hashes);
        }
      } finally {
        reader.close();
      }
    } catch {
      // The file is gone: what it held is missing.
    }
  }
}

const NOTHING = Buffer.alloc(0);

function opened(path: string): TranscriptReader | undefined {
  try {
    return TranscriptReader.open(path);
  } catch {
    return undefined;
  }
}

function countOf({ keep, tail }: Delta): number {
  return keep + tail.length;
}

interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Where to look, in this order. A longer stretch has the shorter one in it: where that began a response may be torn. */
function stretchesBefore(start: number): Stretch[] {
  const stretches = [
    { from: 0, to: Math.min(HEAD_BYTES, start) },
    { from: Math.max(0, start - NEAR_BYTES), to: start },
    { from: Math.max(0, start - FAR_BYTES), to: start },
  ];
  const whole = stretches.findIndex(({ from, to }) => from === 0 && to === start);
  return whole < 0 ? stretches : stretches.slice(0, whole + 1);
}
