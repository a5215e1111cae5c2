import { type Json, withoutUndefined } from '../../shared/json.js';
import type { RequestMessage, RequestShape } from '../../transcript/file/schema.js';
import type { MissingMessages, SentRequest, StoredPart } from '../../transcript/requests/request-index.js';
import type { Media } from '../model.js';
import { countChars } from './limits.js';
import { type MediaRules, replaceMedia } from './media.js';
import { buildRequestMessages, buildSystemMessage } from './request-messages.js';

/** The whole request as the input of the generation that answers it. */
export interface RequestInput {
  readonly input: readonly Json[];
  /** The images and documents that it refers to. */
  readonly media: readonly Omit<Media, 'field'>[];
  readonly metadata: { readonly [key: string]: Json };
}

/** What has been made fit of a message, or of the system prompt and the tools. */
interface Piece {
  readonly kind: 'piece';
  readonly messages: readonly Json[];
  readonly chars: number;
  readonly isWhole: boolean;
  readonly media: RequestInput['media'];
  /** How many it refers to, or names in words. */
  readonly mediaCount: number;
}

interface Gathered {
  readonly system: Piece | undefined;
  readonly newestFirst: readonly (Piece | MissingMessages)[];
}

/** A request may hold hundreds, each kept in memory and told of: of the others, the older, words stand in their place. */
const MOST_MEDIA = 20;

/** Builds the inputs of requests. From one to the next most of it is the same: it is not made fit again. */
export class RequestInputBuilder {
  readonly #maxChars: number;
  readonly #rules: MediaRules;
  /** Of the request before, by their hashes. */
  #known: ReadonlyMap<string, Piece> = new Map();

  constructor({ maxChars, ...rules }: MediaRules & { readonly maxChars: number }) {
    this.#maxChars = maxChars;
    this.#rules = rules;
  }

  /** Undefined where none of its messages is to be found. */
  of(request: SentRequest): RequestInput | undefined {
    const { system, newestFirst } = this.#gather(request);
    const held = newestFirst.filter(({ kind }) => kind === 'piece').length;
    if (held === 0) return undefined;
    const missing = newestFirst.reduce((total, part) => total + (part.kind === 'missing' ? part.count : 0), 0);
    const leftOut = request.count - held - missing;
    return {
      input: [
        ...(system?.messages ?? []),
        ...(leftOut > 0 ? [mark(`${wordsFor(leftOut, 'older message')} left out`)] : []),
        ...inOrder(newestFirst),
      ],
      media: newestFirst.flatMap((part) => (part.kind === 'piece' ? part.media : [])),
      metadata: withoutUndefined<Json>({
        request_messages: request.count,
        request_messages_left_out: leftOut || undefined,
        request_messages_missing: missing || undefined,
        request_system_missing: system ? undefined : true,
      }),
    };
  }

  /** System prompt and tools get at most half of the room; then messages, as many as fit, but always the newest. */
  #gather({ shape, messages }: SentRequest): Gathered {
    const known = new Map<string, Piece>();
    const drawnShape = (read: RequestShape) => [buildSystemMessage(read)];
    const drawn = (read: RequestMessage) => buildRequestMessages(read, this.#rules);
    const system = shape && this.#piece(shape, drawnShape, { chars: Math.floor(this.#maxChars / 2), media: 0 }, known);
    const newestFirst: (Piece | MissingMessages)[] = [];
    let isEmpty = true;
    let left: Room = { chars: this.#maxChars - (system?.chars ?? 0), media: MOST_MEDIA };
    for (const message of messages) {
      if (message.kind === 'missing') {
        newestFirst.push(message);
        continue;
      }
      const piece = this.#piece(message, drawn, { chars: this.#maxChars, media: left.media }, known);
      const fits = piece === undefined || (piece.isWhole && piece.chars <= left.chars);
      if (!fits && !isEmpty) break;
      const taken = fits ? piece : pieceOf(message, drawn, left, this.#rules);
      newestFirst.push(taken ?? { kind: 'missing', count: 1 });
      isEmpty &&= taken === undefined;
      if (taken) left = { chars: left.chars - taken.chars, media: left.media - taken.media.length };
    }
    this.#known = known;
    return { system, newestFirst };
  }

  /** What lies in the file is read and made fit once; undefined where it cannot be read. */
  #piece<T>(
    stored: StoredPart<T>,
    drawn: (read: T) => readonly unknown[],
    room: Room,
    known: Map<string, Piece>,
  ): Piece | undefined {
    const before = this.#known.get(stored.hash);
    const piece =
      before && isUsable(before, room) ? withAtMost(room.media, before) : pieceOf(stored, drawn, room, this.#rules);
    if (piece) known.set(stored.hash, piece);
    return piece;
  }
}

/** How much more an input may hold. */
interface Room {
  readonly chars: number;
  readonly media: number;
}

function pieceOf<T>(
  { read }: StoredPart<T>,
  drawn: (read: T) => readonly unknown[],
  room: Room,
  { fit }: MediaRules,
): Piece | undefined {
  const found = read();
  if (found === undefined) return undefined;
  let left = room.chars;
  const fitted = drawn(found).map((message) => {
    const limited = fit.value(message, left);
    left = Math.max(0, left - countChars(limited.value));
    return limited;
  });
  const messages = fitted.map(({ value }) => value);
  const isWhole = fitted.every(({ fullChars }) => fullChars === undefined);
  const media = fitted.flatMap((limited) => limited.media);
  const chars = countChars(messages);
  return withAtMost(room.media, { kind: 'piece', messages, chars, isWhole, media, mediaCount: media.length });
}

/** Words have taken the place of its images, and in this request, as after a rewind, there may be room for them. */
function isUsable({ media, mediaCount }: Piece, room: Room): boolean {
  return media.length === mediaCount || mediaCount > room.media;
}

function withAtMost(media: number, piece: Piece): Piece {
  if (piece.media.length <= media) return piece;
  return { ...piece, messages: piece.messages.map((message) => replaceMedia(message, piece.media)), media: [] };
}

/** The oldest first, with a word where some are missing. */
function inOrder(newestFirst: readonly (Piece | MissingMessages)[]): Json[] {
  const messages: Json[] = [];
  let missing = 0;
  const tellMissing = () => {
    if (missing > 0) messages.push(mark(`${wordsFor(missing, 'message')} not found in the transcript`));
    missing = 0;
  };
  for (const part of newestFirst.toReversed()) {
    if (part.kind === 'missing') {
      missing += part.count;
      continue;
    }
    tellMissing();
    messages.push(...part.messages);
  }
  tellMissing();
  return messages;
}

function mark(words: string): Json {
  return { role: 'system', content: `[${words}]` };
}

function wordsFor(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}
