import type { OutgoingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, bodyOf, type Connection, connect, isPage } from './connection.js';

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly isPage: boolean;
}

interface Question {
  readonly method: 'POST' | 'PUT' | 'PATCH';
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

const ATTEMPTS = 3;
const LONGEST_ANSWER_MS = 30_000;
const FIRST_WAIT_MS = 250;

/** The ways to a server and to its storage, which is elsewhere. */
export class MediaConnections {
  readonly #connections = new Map<string, Promise<Connection>>();

  /** The last answer of a few; throws where none came in time. `until` is in ms since 1970. */
  async ask(url: URL, question: Question, until: number): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      const left = until - Date.now();
      if (left <= 0) throw new Error('there was no time left for it');
      const answer = await this.#askOnce(url, question, Math.min(left, LONGEST_ANSWER_MS)).catch(
        (error: NodeJS.ErrnoException) => error,
      );
      const isFinal =
        !(answer instanceof Error) && answer.status < 500 && answer.status !== 408 && answer.status !== 429;
      const waitMs = FIRST_WAIT_MS * 2 ** (attempt - 1);
      const isLast = attempt === ATTEMPTS || Date.now() + waitMs >= until;
      if (answer instanceof Error && isLast)
        throw new Error(`${url.host} cannot be reached: ${answer.code ?? answer.message}`);
      if (!(answer instanceof Error) && (isFinal || isLast)) return answer;
      await sleep(waitMs);
    }
  }

  async close(): Promise<void> {
    const connections = await Promise.allSettled(this.#connections.values());
    for (const connection of connections) if (connection.status === 'fulfilled') connection.value.agent.destroy();
  }

  async #askOnce(url: URL, { method, headers, body }: Question, timeoutMs: number): Promise<Answer> {
    const deadline = Date.now() + timeoutMs;
    const connection = this.#connections.get(url.origin) ?? connect(url);
    this.#connections.set(url.origin, connection);
    const question = { method, headers: { ...headers, 'content-length': body.length }, body };
    const incoming = await ask(await connection, url, question, timeoutMs);
    const text = await bodyOf(incoming, deadline - Date.now());
    return { status: incoming.statusCode ?? 0, text, isPage: isPage(incoming) };
  }
}
