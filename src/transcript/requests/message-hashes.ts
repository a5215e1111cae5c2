import { createHash } from 'node:crypto';
import { isRecord } from '../../shared/json.js';
import { hasToolResult } from '../file/content.js';
import type { AssistantLine, Line, UserLine } from '../file/line.js';
import type { LineLocation } from '../file/reader.js';

/** Where a message of a request is stored: in a line of its own, or in lines of the conversation. */
export type MessageSource =
  | { readonly kind: 'blob'; readonly location: LineLocation }
  /** The first `count` of these lines: later ones may have been added since. */
  | { readonly kind: 'lines'; readonly role: Role; readonly lines: readonly LineLocation[]; readonly count: number };

/** A message that a request refers to. Its source is undefined until its lines have been read. */
export interface HashedMessage {
  readonly hash: string;
  source: MessageSource | undefined;
}

type Role = 'user' | 'assistant';

/** The lines of a response are near each other, with other lines in between. */
const MAX_OPEN_RESPONSES = 64;

/**
 * Computes the hashes by which requests refer to messages, from lines that follow one another in a file. Claude Code writes
 * a message as a blob only if no run of conversation lines contains it.
 */
export class MessageHashes {
  readonly #responses = new Map<string, GrowingMessage>();
  /** The results of tools that were called together are one message. */
  #results: GrowingMessage | undefined;

  /** The message that ends with this line, as far as it has come. */
  add(line: Line): HashedMessage | undefined {
    if (line.kind === 'other' && line.type === 'api-request-blob' && line.hash !== undefined)
      return { hash: line.hash, source: { kind: 'blob', location: line.location } };
    if (line.kind === 'user') {
      const isResult = hasToolResult(line.content);
      const message = (isResult && this.#results) || new GrowingMessage();
      this.#results = isResult ? message : undefined;
      return message.grow(line);
    }
    if (line.kind !== 'assistant') return undefined;
    this.#results = undefined;
    const { id } = line.fields.message ?? {};
    return id === undefined ? undefined : this.#response(id).grow(line);
  }

  #response(id: string): GrowingMessage {
    const response = this.#responses.get(id) ?? new GrowingMessage();
    this.#responses.set(id, response);
    const [oldest] = this.#responses.keys();
    if (oldest !== undefined && this.#responses.size > MAX_OPEN_RESPONSES) this.#responses.delete(oldest);
    return response;
  }
}

/** A message whose lines come one by one. A request may contain it as far as it had come by then. */
class GrowingMessage {
  readonly #hash = createHash('sha256').update('{"content":[');
  readonly #lines: LineLocation[] = [];
  #separator = '';

  grow({ kind: role, content, location }: UserLine | AssistantLine): HashedMessage {
    for (const text of toBlockList(content).map(canonicalJson)) {
      this.#hash.update(this.#separator).update(text);
      this.#separator = ',';
    }
    this.#lines.push(location);
    const hash = this.#hash.copy().update(`],"role":"${role}"}`).digest('hex');
    const count = this.#lines.length;
    return { hash, source: { kind: 'lines', role, lines: this.#lines, count } };
  }
}

/** The blocks of content, of which a string is one. */
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
