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
/** A server that refuses whatever it is sent is not to be asked about each span. */
const REFUSALS_WITHOUT_SUCCESS = 16;

interface Delivery {
  readonly deadline: number;
  readonly accepted: Set<number>;
  readonly refused: number[];
}

/** Sends spans and knows of each whether the server has acknowledged it. */
export class Sender {
  readonly #post: Post;

  constructor(endpoint: Endpoint) {
    this.#post = new Post(endpoint);
  }

  /** `deadline` is when to give up, in ms since 1970. */
  async send(spans: readonly string[], deadline: number): Promise<SendReport> {
    const delivery: Delivery = { deadline, accepted: new Set(), refused: [] };
    const failure = await this.#deliver(spans, 0, spans.length, delivery);
    const isSpansFault = delivery.accepted.size > 0;
    const dropped = isSpansFault ? delivery.refused : [];
    let settled = 0;
    while (settled < spans.length && (delivery.accepted.has(settled) || dropped.includes(settled))) settled += 1;
    const refused = delivery.refused.length > 0 && !isSpansFault ? 'the server refuses every span (400)' : undefined;
    return { settled, dropped: dropped.filter((place) => place < settled), failure: failure ?? refused };
  }

  close(): Promise<void> {
    return this.#post.close();
  }

  /** Delivers the spans from `from` up to `to`; a request that is refused for its size or for one bad span is halved. */
  async #deliver(spans: readonly string[], from: number, to: number, delivery: Delivery): Promise<string | undefined> {
    const answer = await this.#request(encodeRequest(spans.slice(from, to)), delivery.deadline);
    if (typeof answer === 'string') return answer;
    const { status } = answer;
    if (status >= 200 && status < 300) {
      for (let place = from; place < to; place += 1) delivery.accepted.add(place);
      return undefined;
    }
    if (status !== 400 && status !== 413) return refusal(status);
    if (to - from > 1) {
      const middle = from + Math.ceil((to - from) / 2);
      return (await this.#deliver(spans, from, middle, delivery)) ?? (await this.#deliver(spans, middle, to, delivery));
    }
    if (status === 413) return 'the server refuses a single observation for its size (413)';
    delivery.refused.push(from);
    const isHopeless = delivery.accepted.size === 0 && delivery.refused.length >= REFUSALS_WITHOUT_SUCCESS;
    return isHopeless ? 'the server refuses every span (400)' : undefined;
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
