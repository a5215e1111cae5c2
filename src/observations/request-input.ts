import { type Json, withoutUndefined } from '../json.js';
import type { Missing, SentRequest, Stored } from '../transcript/request-index.js';
import type { RequestMessage, RequestShape } from '../transcript/schema.js';
import { charsIn, type Fit } from './limits.js';
import { drawnMessages, systemMessage } from './request-messages.js';

/** The whole request as the input of the generation that answers it. */
export interface RequestInput {
  readonly input: readonly Json[];
  readonly metadata: { readonly [key: string]: Json };
}

/** What has been made fit of a message, or of the system prompt and the tools. */
interface Piece {
  readonly kind: 'piece';
  readonly messages: readonly Json[];
  readonly chars: number;
  readonly isWhole: boolean;
}

interface Gathered {
  readonly system: Piece | undefined;
  readonly newestFirst: readonly (Piece | Missing)[];
}

/** Builds the inputs of requests. From one to the next most of it is the same: it is not made fit again. */
export class RequestInputs {
  readonly #maxChars: number;
  readonly #fit: Fit;
  /** Of the request before, by their hashes. */
  #known: ReadonlyMap<string, Piece> = new Map();

  constructor({ maxChars, fit }: { readonly maxChars: number; readonly fit: Fit }) {
    this.#maxChars = maxChars;
    this.#fit = fit;
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
    const drawnShape = (read: RequestShape) => [systemMessage(read)];
    const drawn = (read: RequestMessage) => drawnMessages(read, this.#fit);
    const system = shape && this.#piece(shape, drawnShape, this.#maxChars / 2, known);
    const newestFirst: (Piece | Missing)[] = [];
    let isEmpty = true;
    let left = this.#maxChars - (system?.chars ?? 0);
    for (const message of messages) {
      if (message.kind === 'missing') {
        newestFirst.push(message);
        continue;
      }
      const piece = this.#piece(message, drawn, this.#maxChars, known);
      const fits = piece === undefined || (piece.isWhole && piece.chars <= left);
      if (!fits && !isEmpty) break;
      const taken = fits ? piece : pieceOf(message, drawn, left, this.#fit);
      newestFirst.push(taken ?? { kind: 'missing', count: 1 });
      isEmpty &&= taken === undefined;
      left -= taken?.chars ?? 0;
    }
    this.#known = known;
    return { system, newestFirst };
  }

  /** What lies in the file is read and made fit once; undefined where it cannot be read. */
  #piece<T>(
    stored: Stored<T>,
    drawn: (read: T) => readonly unknown[],
    room: number,
    known: Map<string, Piece>,
  ): Piece | undefined {
    const piece = this.#known.get(stored.hash) ?? pieceOf(stored, drawn, room, this.#fit);
    if (piece) known.set(stored.hash, piece);
    return piece;
  }
}

function pieceOf<T>(
  { read }: Stored<T>,
  drawn: (read: T) => readonly unknown[],
  room: number,
  fit: Fit,
): Piece | undefined {
  const found = read();
  if (found === undefined) return undefined;
  let left = room;
  let isWhole = true;
  const messages = drawn(found).map((message) => {
    const { value, fullChars } = fit.value(message, left);
    left = Math.max(0, left - charsIn(value));
    isWhole &&= fullChars === undefined;
    return value;
  });
  return { kind: 'piece', messages, chars: charsIn(messages), isWhole };
}

/** The oldest first, with a word where some are missing. */
function inOrder(newestFirst: readonly (Piece | Missing)[]): Json[] {
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
