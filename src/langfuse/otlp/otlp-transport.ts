import type { DestinationConfig } from '../../config/settings.js';
import type { Observation } from '../../observations/model.js';
import { isRecord, parseJson } from '../../shared/json.js';
import { type Endpoint, Post } from '../http/post.js';
import { otlpEndpoint } from '../receiver.js';
import type { Outgoing, Rejected, Reply, Transport } from '../transport.js';
import { encodeRequest, encodeSpan } from './span.js';

/** Brings observations as OpenTelemetry's spans, to Langfuse or to a Collector. */
export class OtlpTransport implements Transport {
  readonly #kind: DestinationConfig['kind'];
  readonly #endpoint: Endpoint;
  readonly #post: Post;

  constructor(receiver: DestinationConfig) {
    this.#kind = receiver.kind;
    this.#endpoint = otlpEndpoint(receiver);
    this.#post = new Post(this.#endpoint);
  }

  encode(observation: Observation): Outgoing {
    return asSpan(observation);
  }

  async post(outgoing: readonly Outgoing[], timeoutMs: number): Promise<Reply> {
    const body = encodeRequest(outgoing.map(({ json }) => json));
    const { status, retryAfterMs, isPage, text } = await this.#post.send(body, timeoutMs);
    const problem = isPage && status < 300 ? PAGES[this.#kind](status) : REFUSALS[this.#kind][status];
    return { status, retryAfterMs, problem, rejected: rejectedIn(text, outgoing.length, this.#endpoint) };
  }

  close(): Promise<void> {
    return this.#post.close();
  }
}

export function asSpan(observation: Observation): Outgoing {
  return { json: encodeSpan(observation) };
}

const PAGES: { readonly [kind in DestinationConfig['kind']]: (status: number) => string } = {
  langfuse: (status) => `what answers ${status} is no Langfuse: it sent a page`,
  collector: (status) => `what answers ${status} is no Collector: it sent a page`,
};

const REFUSALS: { readonly [kind in DestinationConfig['kind']]: { readonly [status: number]: string } } = {
  langfuse: {
    401: 'the server refuses the keys (401)',
    403: 'the server refuses the keys (403)',
    404: 'the server has no OTLP endpoint (404); Langfuse has one from 3.22 on',
  },
  collector: {
    401: 'the Collector refuses CC_LANGFUSE_OTLP_HEADERS (401)',
    403: 'the Collector refuses CC_LANGFUSE_OTLP_HEADERS (403)',
    404: 'there is no OTLP endpoint at CC_LANGFUSE_OTLP_URL (404); of a Collector it ends with /v1/traces',
  },
};

/** A shorter text could be part of anything. */
const SHORTEST_SECRET = 4;

/** Returns what must not be shown of headers: the words of each value, which may be a scheme and a secret. */
export function headerSecrets(headers: Endpoint['headers']): string[] {
  return Object.values(headers)
    .flatMap((value) => value.split(/\s+/))
    .filter(({ length }) => length >= SHORTEST_SECRET);
}

const REASON_CHARS = 200;

/** What OTLP calls a partial success. Langfuse answers with a queue's job instead, or with nothing. */
function rejectedIn(text: string, sent: number, { headers }: Endpoint): Rejected | undefined {
  const answer = parseJson(text);
  const { partialSuccess } = isRecord(answer) ? answer : {};
  if (!isRecord(partialSuccess)) return undefined;
  // As JSON a 64-bit number is a string.
  const count = Math.trunc(Number(partialSuccess.rejectedSpans));
  const spans = Math.min(sent, Math.max(0, count || 0));
  const reason = typeof partialSuccess.errorMessage === 'string' ? partialSuccess.errorMessage : '';
  // One that rejects nothing and says nothing is none.
  if (spans === 0 && reason === '') return undefined;
  const told = headerSecrets(headers).reduce((words, secret) => words.replaceAll(secret, '…'), reason);
  return { spans, reason: told.slice(0, REASON_CHARS).toWellFormed() };
}
