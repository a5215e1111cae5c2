import { createHash } from 'node:crypto';
import { isRecord } from '../../src/shared/json.js';
import { assistant, at, user } from './lines.js';

/** A message as it is sent to the API. */
export interface ApiMessage {
  readonly role: string;
  readonly content: unknown;
}

interface Shape {
  readonly system: readonly object[];
  readonly tools: readonly object[];
}

export const SHAPE: Shape = {
  system: [
    { type: 'text', text: 'You are an agent.' },
    { type: 'text', text: 'Be brief.' },
  ],
  tools: [{ name: 'Read', description: 'Reads a file.', input_schema: { type: 'object', properties: {} } }],
};

/** Computes the hash that Claude Code writes: of JSON whose objects have sorted keys. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex');
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const members = Object.keys(value).map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.toSorted().join(',')}}`;
}

/** Returns a message whose content is a list of blocks, as Claude Code hashes it. */
export function inBlocks<T extends ApiMessage>(message: T): T {
  const { content } = message;
  return typeof content === 'string' ? { ...message, content: [{ type: 'text', text: content }] } : message;
}

export function blobLine(message: ApiMessage, hash = hashOf(inBlocks(message))): object {
  return { type: 'api-request-blob', sessionId: 's', hash, message };
}

export function shapeLine(shape: Shape): object {
  return { type: 'api-request-shape', sessionId: 's', shapeHash: hashOf(shape), timestamp: at(0), shape };
}

export function requestLine(id: string, tail: readonly ApiMessage[], more: object = {}): object {
  const hashes = tail.map((message) => hashOf(inBlocks(message)));
  return { type: 'api-request', id, timestamp: at(0), shapeHash: hashOf(SHAPE), keep: 0, tail: hashes, ...more };
}

/** A request as it was sent to the API. */
interface Sent {
  readonly id: string;
  readonly messages: readonly ApiMessage[];
}

/** Builds the lines of a session as Claude Code writes them, and the requests that they record. */
export class ScriptedSession {
  readonly sent: Sent[] = [];
  #lines: object[];
  #messages: ApiMessage[] = [];
  /** How many messages earlier `api-request` lines contain. */
  #recorded = 0;
  #base: string | undefined;
  #requests = 0;
  #seconds = 0;
  readonly #name: string;
  readonly #shapeHash: string;

  /** The ids of the session's lines begin with its name. */
  constructor(name = '', shape = SHAPE) {
    this.#name = name;
    this.#shapeHash = hashOf(shape);
    this.#lines = [shapeLine(shape)];
  }

  /** Returns the lines since the last call. */
  takeLines(): object[] {
    const lines = this.#lines;
    this.#lines = [];
    return lines;
  }

  /** Continues in another process, which records all messages of its first request again. */
  resume(): this {
    this.#recorded = 0;
    this.#base = undefined;
    return this;
  }

  /** Adds a message that only the request contains, no other line. */
  remind(message: ApiMessage): this {
    this.#lines.push(blobLine(message));
    this.#messages.push(message);
    return this;
  }

  prompt(content: string): this {
    return this.#say(user(content, this.#stamp('u')), { role: 'user', content });
  }

  /** Adds the results of tools that were called together: one line each. */
  results(...results: readonly object[]): this {
    for (const result of results) this.#lines.push(user([result], this.#stamp('u')));
    this.#messages.push({ role: 'user', content: results });
    return this;
  }

  /** Adds a request, and the lines of its answer, one for each block. */
  answer(...blocks: readonly object[]): this {
    this.#requests += 1;
    const id = `${this.#name}request-${this.#requests}`;
    const { length } = this.#messages;
    const delta = {
      shapeHash: this.#shapeHash,
      keep: this.#recorded,
      ...(this.#base !== undefined && { base: this.#base }),
    };
    this.#lines.push(requestLine(id, this.#messages.slice(this.#recorded), delta));
    this.sent.push({ id, messages: [...this.#messages] });
    this.#recorded = length;
    this.#base = id;
    for (const block of blocks) {
      const more = { ...this.#stamp('a'), requestRef: id };
      this.#lines.push(assistant(`${this.#name}msg-${this.#requests}`, [block], more));
    }
    this.#messages.push({ role: 'assistant', content: blocks });
    return this;
  }

  #say(line: object, message: ApiMessage): this {
    this.#lines.push(line);
    this.#messages.push(message);
    return this;
  }

  #stamp(name: string): object {
    this.#seconds += 1;
    return { uuid: `${this.#name}${name}-${this.#seconds}`, timestamp: at(this.#seconds) };
  }
}
