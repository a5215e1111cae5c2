import { createHash } from 'node:crypto';
import { isRecord } from '../../src/shared/json.js';
import { assistant, at, user } from './lines.js';

/** A message as the API gets it. */
export interface ApiMessage {
  readonly role: string;
  readonly content: unknown;
}

export interface Shape {
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

/** What Claude Code takes its hashes over: JSON with the keys of each object in order, a text alone as a block. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex');
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const members = Object.keys(value).map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.toSorted().join(',')}}`;
}

/** A message whose content is a list of blocks. */
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

/** What the API got. */
export interface Sent {
  readonly id: string;
  readonly messages: readonly ApiMessage[];
}

/** The lines of a session as Claude Code writes them, and the requests that they tell of. */
export class ScriptedSession {
  readonly sent: Sent[] = [];
  #lines: object[];
  #messages: ApiMessage[] = [];
  #told = 0;
  #base: string | undefined;
  #requests = 0;
  #seconds = 0;
  readonly #name: string;
  readonly #shapeHash: string;

  /** Its ids begin with its name. */
  constructor(name = '', shape = SHAPE) {
    this.#name = name;
    this.#shapeHash = hashOf(shape);
    this.#lines = [shapeLine(shape)];
  }

  /** The lines since this was asked for last. */
  takeLines(): object[] {
    const lines = this.#lines;
    this.#lines = [];
    return lines;
  }

  /** The user goes on in another process: it tells of its first request from the beginning. */
  resume(): this {
    this.#told = 0;
    this.#base = undefined;
    return this;
  }

  /** Something that only the request holds. */
  remind(message: ApiMessage): this {
    this.#lines.push(blobLine(message));
    this.#messages.push(message);
    return this;
  }

  prompt(content: string): this {
    return this.#say(user(content, this.#stamp('u')), { role: 'user', content });
  }

  /** What tools answered that were called together: a line for each. */
  results(...results: readonly object[]): this {
    for (const result of results) this.#lines.push(user([result], this.#stamp('u')));
    this.#messages.push({ role: 'user', content: results });
    return this;
  }

  /** A request, and the lines of its answer, one for each block. */
  answer(...blocks: readonly object[]): this {
    this.#requests += 1;
    const id = `${this.#name}request-${this.#requests}`;
    const { length } = this.#messages;
    const delta = {
      shapeHash: this.#shapeHash,
      keep: this.#told,
      ...(this.#base !== undefined && { base: this.#base }),
    };
    this.#lines.push(requestLine(id, this.#messages.slice(this.#told), delta));
    this.sent.push({ id, messages: [...this.#messages] });
    this.#told = length;
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
