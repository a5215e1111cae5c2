import { setTimeout as sleep } from 'node:timers/promises';
import { encodeRequest } from './otlp.js';
import { type Endpoint, Post, type Reply } from './post.js';

export interface SendReport {
  /** How many of the spans, from the first on, need not be sent again. */
  readonly settled: number;
  /** Those among them that the server refuses for what they are, by their place. */
  readonly dropped: readonly number[];
  /** Why the others are not settled. */
  readonly failure: string | undefined;
}

const ATTEMPTS = 4;
const FIRST_WAIT_MS = 250;
const REQUEST_TIMEOUT_MS = 10_000;
/** A server that refuses whatever it is sent is not to be asked about each span: after as many it is asked once more. */
const REFUSALS_WITHOUT_SUCCESS = 16;
const REFUSES_EVERY_SPAN = 'the server refuses every span (400)';

interface Delivery {
  readonly spans: readonly string[];
  readonly deadline: number;
  /** Places of spans. */
  readonly accepted: Set<number>;
  readonly refused: Set<number>;
}

/** Sends spans and knows of each whether the server has acknowledged it. */
export class Sender {
  readonly #post: Post;
  #refusedKeys: 401 | 403 | undefined;

  constructor(endpoint: Endpoint) {
    this.#post = new Post(endpoint);
  }

  /** `deadline` is when to give up, in ms since 1970. */
  async send(spans: readonly string[], deadline: number): Promise<SendReport> {
    const delivery: Delivery = { spans, deadline, accepted: new Set(), refused: new Set() };
    const failure = await this.#deliver([...spans.keys()], delivery);
    const { accepted, refused } = delivery;
    if (accepted.size === 0) return { settled: 0, dropped: [], failure: failure ?? REFUSES_EVERY_SPAN };
    const unsettled = spans.findIndex((_, place) => !accepted.has(place) && !refused.has(place));
    const settled = unsettled < 0 ? spans.length : unsettled;
    return { settled, dropped: [...refused].filter((place) => place < settled), failure };
  }

  /** The status with which the server refused the keys, where its last answer was that. */
  get refusedKeys(): 401 | 403 | undefined {
    return this.#refusedKeys;
  }

  close(): Promise<void> {
    return this.#post.close();
  }

  /** Delivers spans, by their places; a request that is refused for its size or for one bad span is halved. */
  async #deliver(places: readonly number[], delivery: Delivery): Promise<string | undefined> {
    const { spans, accepted, refused } = delivery;
    const due = places.filter((place) => !accepted.has(place));
    const [first] = due;
    if (first === undefined) return undefined;
    const answer = await this.#request(encodeRequest(due.map((place) => spans[place] ?? '')), delivery.deadline);
    if (typeof answer === 'string') return answer;
    const { status } = answer;
    this.#refusedKeys = status === 401 || status === 403 ? status : undefined;
    if (status >= 200 && status < 300) {
      for (const place of due) accepted.add(place);
      return undefined;
    }
    if (status !== 400 && status !== 413) return refusal(status);
    if (due.length > 1) {
      const middle = Math.ceil(due.length / 2);
      return (
        (await this.#deliver(due.slice(0, middle), delivery)) ?? (await this.#deliver(due.slice(middle), delivery))
      );
    }
    if (status === 413) return 'the server refuses a single observation for its size (413)';
    refused.add(first);
    const last = spans.length - 1;
    if (accepted.size > 0 || refused.size !== REFUSALS_WITHOUT_SUCCESS || first === last) return undefined;
    return (await this.#deliver([last], delivery)) ?? (accepted.size === 0 ? REFUSES_EVERY_SPAN : undefined);
  }

  /** The server's last word, or why there was none. */
  async #request(body: string, deadline: number): Promise<Reply | string> {
    for (let attempt = 1; ; attempt += 1) {
      const left = deadline - Date.now();
      if (left <= 0) return 'out of time';
      const answer = await this.#post
        .send(body, Math.min(left, REQUEST_TIMEOUT_MS))
        .catch((error: Error & { code?: string }) => `cannot reach the server: ${error.code ?? error.message}`);
      const isFinal = typeof answer !== 'string' && !isPassing(answer.status);
      if (isFinal || attempt === ATTEMPTS) return answer;
      const asked = typeof answer === 'string' ? undefined : answer.retryAfterMs;
      const waitMs = asked ?? FIRST_WAIT_MS * 2 ** (attempt - 1) * (0.75 + Math.random() / 2);
      if (Date.now() + waitMs >= deadline) return answer;
      await sleep(waitMs);
    }
  }
}

function isPassing(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

function refusal(status: number): string {
  switch (status) {
    case 401:
    case 403:
      return `the server refuses the keys (${status})`;
    case 404:
      return 'the server has no OTLP endpoint (404); Langfuse has one from 3.22 on';
    case 429:
      return 'the server asks to wait (429)';
    default:
      return status >= 300 && status < 400
        ? `the server redirects elsewhere (${status}), which is not followed`
        : `the server answers ${status}`;
  }
}
