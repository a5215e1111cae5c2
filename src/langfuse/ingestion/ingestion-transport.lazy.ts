import { type ApiIngestionEvent, type ApiIngestionResponse, Langfuse as Client } from 'langfuse';
import type { LangfuseConfig } from '../../config/settings.js';
import type { Observation } from '../../observations/model.js';
import { isRecord } from '../../shared/json.js';
import { version } from '../../shared/version.js';
import { ask, bodyOf, type Connection, connect, late } from '../http/connection.js';
import { retryAfter } from '../http/post.js';
import { encodeSpan } from '../otlp/span.js';
import { langfuseUrl } from '../receiver.js';
import { INGESTION_CLOSED, type Outgoing, REQUEST_TIMEOUT_MS, type Reply, type Transport } from '../transport.js';
import { buildEvents, type IngestionEvent } from './events.js';

/** The server takes 3.5 MB. */
const BATCH_BYTES = 3_000_000;

const REFUSALS: { readonly [status: number]: string } = {
  401: 'the server refuses the keys (401)',
  403: 'the server refuses the keys (403)',
  404: 'the server has no ingestion API (404)',
};
const NO_ANSWER = 'what answers is no Langfuse: it told nothing of the events';

/** Brings observations by the ingestion API, which is all that Langfuse had before 3.22. */
export class IngestionTransport implements Transport {
  readonly #connection: Promise<Connection>;
  readonly #api: Client['api'];

  constructor(receiver: LangfuseConfig) {
    const url = langfuseUrl(receiver, '');
    this.#connection = connect(url);
    // The package asks by the global one, which knows no proxy and takes the keys wherever it is redirected to.
    globalThis.fetch = fetchOver(this.#connection);
    const { publicKey, secretKey } = receiver;
    const additionalHeaders = { 'X-Langfuse-Sdk-Name': 'cc-langfuse', 'X-Langfuse-Sdk-Version': version };
    // Without an environment it would look for one, and print what it thinks of it.
    const options = { publicKey, secretKey, baseUrl: url.href, environment: 'default', additionalHeaders };
    this.#api = new Client(options).api;
  }

  encode(observation: Observation): Outgoing {
    return { json: encodeSpan(observation), observation };
  }

  async post(outgoing: readonly Outgoing[], timeoutMs: number): Promise<Reply> {
    const deadline = Date.now() + timeoutMs;
    const sentAt = new Date().toISOString();
    const events = outgoing.map(({ observation }) => (observation ? buildEvents(observation, sentAt) : []));
    const verdicts = new Map<string, Verdict>();
    for (const batch of batchesOf(events.flat())) {
      const answer = await this.#ask(batch, Math.max(1, deadline - Date.now()));
      if (!('successes' in answer)) return answer;
      for (const verdict of [...answer.errors, ...answer.successes]) verdicts.set(verdict.id, verdict);
    }
    const refusals = new Map<number, number>();
    for (const [place, own] of events.entries()) {
      // What the answer does not mention was not acknowledged.
      const statuses = own.map(({ event }) => verdicts.get(event.id)?.status ?? UNMENTIONED);
      const refusal = own.length === 0 ? UNMENTIONED : statuses.find((status) => status >= 300);
      if (refusal !== undefined) refusals.set(place, refusal);
    }
    return { status: 207, retryAfterMs: undefined, problem: problemOf([...verdicts.values()]), refusals };
  }

  /** What the server says of each event, or that it does not. */
  async #ask(batch: ApiIngestionEvent[], timeoutMs: number): Promise<ApiIngestionResponse | Reply> {
    try {
      const answer: unknown = await within(timeoutMs, this.#api.ingestionBatch({ batch }));
      return isOfEvents(answer) ? answer : { status: 200, retryAfterMs: undefined, problem: NO_ANSWER };
    } catch (error) {
      if (!(error instanceof Response)) throw error;
      const { status, headers } = error;
      return { status, retryAfterMs: retryAfter(headers.get('retry-after') ?? undefined), problem: REFUSALS[status] };
    }
  }

  async close(): Promise<void> {
    const connection = await this.#connection.catch(() => undefined);
    connection?.agent.destroy();
  }
}

const UNMENTIONED = 500;

type Verdict = ApiIngestionResponse['errors'][number] | ApiIngestionResponse['successes'][number];

/** Langfuse 4 refuses traces and observations one by one, each with a 400 and these words. */
function problemOf(verdicts: readonly Verdict[]): string | undefined {
  const keys = verdicts.find(({ status }) => status === 401 || status === 403);
  if (keys) return REFUSALS[keys.status];
  const isClosed = verdicts.length > 0 && verdicts.every(({ status }) => status === 400);
  const isTold = verdicts.some((verdict) => 'message' in verdict && verdict.message === 'Event type not accepted');
  return isClosed && (isTold || verdicts.length > 1) ? INGESTION_CLOSED : undefined;
}

function isOfEvents(answer: unknown): answer is ApiIngestionResponse {
  return (
    isRecord(answer) && [answer.successes, answer.errors].every((list) => Array.isArray(list) && list.every(isVerdict))
  );
}

function isVerdict(value: unknown): value is Verdict {
  return isRecord(value) && typeof value.id === 'string' && typeof value.status === 'number';
}

function batchesOf(events: readonly IngestionEvent[]): ApiIngestionEvent[][] {
  const batches: ApiIngestionEvent[][] = [[]];
  let left = BATCH_BYTES;
  for (const { event, bytes } of events) {
    if (bytes > left && left < BATCH_BYTES) {
      batches.push([]);
      left = BATCH_BYTES;
    }
    batches.at(-1)?.push(event);
    left -= bytes;
  }
  return batches;
}

/** The global `fetch` by our own connection, as far as the package needs it. */
function fetchOver(connection: Promise<Connection>): typeof fetch {
  return async (input, { body: json, headers: given } = {}) => {
    const body = Buffer.from(String(json));
    const headers = { ...Object.fromEntries(new Headers(given)), 'content-length': body.length };
    const question = { method: 'POST', headers, body } as const;
    const incoming = await ask(await connection, new URL(String(input)), question, REQUEST_TIMEOUT_MS);
    const text = await bodyOf(incoming, REQUEST_TIMEOUT_MS);
    const { statusCode: status = 0, headers: answered } = incoming;
    const { 'retry-after': wait } = answered;
    // Some statuses allow no body, not even an empty one.
    return new Response(text || null, { status, headers: wait === undefined ? {} : { 'retry-after': wait } });
  };
}

async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const isLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late(timeoutMs)), timeoutMs);
  });
  return Promise.race([promise, isLate]).finally(() => clearTimeout(timer));
}
