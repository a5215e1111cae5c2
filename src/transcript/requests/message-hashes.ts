import { createHash, type Hash } from 'node:crypto';
import { isRecord } from '../../shared/json.js';
import { hasToolResult } from '../file/content.js';
import type { Line } from '../file/line.js';
import type { LineLocation } from '../file/reader.js';

/** Where a message of a request stands: in a line of its own, or in those of the conversation. */
export type MessageSource =
  | { readonly kind: 'blob'; readonly place: LineLocation }
  /** The first so many of these places: more may have come later. */
  | { readonly kind: 'lines'; readonly role: Role; readonly places: readonly LineLocation[]; readonly count: number };

export interface HashedMessage {
  readonly hash: string;
  readonly source: MessageSource;
}

type Role = 'user' | 'assistant';

/** The lines of a response stand near each other, with other lines between them. */
const OPEN_RESPONSES = 64;

/**
 * What requests call the messages that lines hold, of lines that follow one another in a file: Claude Code writes a blob
 * only of those that no line of the conversation gives, and no run of them.
 */
export class MessageHashes {
  readonly #responses = new Map<string, GrowingMessage>();
  /** Results of tools that were called together are one message. */
  #results: GrowingMessage | undefined;

  in(line: Line): HashedMessage | undefined {
    switch (line.kind) {
      case 'other':
        if (line.type !== 'api-request-blob' || line.hash === undefined) return undefined;
        return { hash: line.hash, source: { kind: 'blob', place: line.location } };
      case 'user': {
        if (!hasToolResult(line.content)) this.#results = undefined;
        const message = this.#results ?? new GrowingMessage('user');
        if (hasToolResult(line.content)) this.#results = message;
        return message.grow(toBlockList(line.content), line.location);
      }
      case 'assistant': {
        this.#results = undefined;
        const { id } = line.fields.message ?? {};
        return id === undefined ? undefined : this.#response(id).grow(toBlockList(line.content), line.location);
      }
      default:
        return undefined;
    }
  }

  #response(id: string): GrowingMessage {
    const response = this.#responses.get(id) ?? new GrowingMessage('assistant');
    this.#responses.set(id, response);
    for (const oldest of this.#responses.keys()) {
      if (this.#responses.size <= OPEN_RESPONSES) break;
      this.#responses.delete(oldest);
    }
    return response;
  }
}

/** A request may hold a message as far as it had come: each of its lines makes another one. */
class GrowingMessage {
  readonly #role: Role;
  readonly #hash: Hash;
  readonly #places: LineLocation[] = [];
  #separator = '';

  constructor(role: Role) {
    this.#role = role;
    this.#hash = createHash('sha256').update('{"content":[');
  }

  grow(blocks: readonly unknown[], place: LineLocation): HashedMessage {
    for (const text of blocks.map(canonicalJson)) {
      this.#hash.update(this.#separator).update(text);
      this.#separator = ',';
    }
    this.#places.push(place);
    const hash = this.#hash.copy().update(`],"role":"${this.#role}"}`).digest('hex');
    return { hash, source: { kind: 'lines', role: this.#role, places: this.#places, count: this.#places.length } };
  }
}

/** The blocks of content; a text alone is one. */
export function toBlockList(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content;
  return typeof content === 'string' ? [{ type: 'text', text: content }] : [];
}

/** JSON with the keys of each object in order. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const keys = Object.keys(value).toSorted();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`).join(',')}}`;
}
