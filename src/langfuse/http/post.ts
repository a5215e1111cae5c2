import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { ask, bodyOf, type Connection, connect, isPage } from './connection.js';

/** Where spans go, and what is said at the door. */
export interface Endpoint {
  readonly url: URL;
  readonly headers: { readonly [name: string]: string };
}

export interface Answer {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly isPage: boolean;
  /** What stands below its head; nothing where that did not come. */
  readonly text: string;
}

/** With its head a request is answered; what else there is to be read is not waited for as long. */
const BODY_WAIT_MS = 1_000;

/** Posts JSON to an endpoint over one kept connection, through the proxy that the environment names. */
export class Post {
  readonly #endpoint: Endpoint;
  #connection: Promise<Connection> | undefined;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  /** The server's answer; throws where none came in time. */
  async send(body: string, timeoutMs: number): Promise<Answer> {
    const { url, headers } = this.#endpoint;
    this.#connection ??= connect(url);
    const [connection, payload] = await Promise.all([this.#connection, promisify(gzip)(body)]);
    const question = {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        'content-encoding': 'gzip',
        'content-length': payload.length,
      },
      body: payload,
    } as const;
    const incoming = await ask(connection, url, question, timeoutMs);
    const text = await bodyOf(incoming, Math.min(timeoutMs, BODY_WAIT_MS)).catch(() => '');
    return answerOf(incoming, text);
  }

  async close(): Promise<void> {
    const connection = await this.#connection?.catch(() => undefined);
    connection?.agent.destroy();
  }
}

export function answerOf(incoming: IncomingMessage, text: string): Answer {
  const { statusCode: status = 0, headers } = incoming;
  return { status, retryAfterMs: retryAfter(headers['retry-after']), isPage: isPage(incoming), text };
}

/** `Retry-After` is a number of seconds or a date. */
export function retryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
