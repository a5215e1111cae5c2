import type { OutgoingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, bodyOf, type Connection, connect } from '../http/connection.js';
import { type Answer, answerOf } from '../http/post.js';
import { isPassing, TOO_MANY } from '../http/status.js';

interface Question {
  readonly method: 'POST' | 'PUT' | 'PATCH';
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
}

/** Until when it is tried, in ms since 1970; what `stop` gives up is not tried again. */
export interface Patience {
  readonly until: number;
  readonly stop: AbortSignal | undefined;
}

export const NO_TIME_LEFT = 'there was no time left for it';

const ATTEMPTS = 3;
const LONGEST_ANSWER_MS = 30_000;
/** 50 kB in a second: what is large takes its time on the way. */
const SLOWEST_BYTES_PER_MS = 50;
const FIRST_WAIT_MS = 250;

/** The ways to a server and to its storage, which is elsewhere. */
export class MediaConnections {
  readonly #connections = new Map<string, Promise<Connection>>();

  /** The last answer of a few; throws where none came in time. */
  async ask(url: URL, question: Question, { until, stop }: Patience): Promise<Answer> {
    for (let attempt = 1; ; ) {
      const left = until - Date.now();
      if (left <= 0) throw new Error(NO_TIME_LEFT);
      const longestMs = LONGEST_ANSWER_MS + question.body.length / SLOWEST_BYTES_PER_MS;
      const answer = await this.#askOnce(url, question, Math.min(left, longestMs)).catch(
        (error: NodeJS.ErrnoException) => error,
      );
      const isAnswer = !(answer instanceof Error);
      const asksToWait = isAnswer && answer.status === TOO_MANY;
      const waitMs = Math.max((isAnswer && answer.retryAfterMs) || 0, FIRST_WAIT_MS * 2 ** (attempt - 1));
      const isOver = Date.now() + waitMs >= until || stop?.aborted;
      const isLast = isOver || (attempt === ATTEMPTS && !asksToWait);
      if (isAnswer && (isLast || !isPassing(answer.status))) return answer;
      if (!isAnswer && isLast) throw new Error(`${url.host} cannot be reached: ${answer.code ?? answer.message}`);
      await sleep(waitMs, undefined, { signal: stop });
      if (!asksToWait) attempt += 1;
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
    return answerOf(incoming, await bodyOf(incoming, deadline - Date.now()));
  }
}
