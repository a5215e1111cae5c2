import type { DestinationConfig } from '../../config/settings.js';
import { isRecord, parseJson } from '../../shared/json.js';
import type { Limits, Outgoing, Rejected } from '../destination.js';
import { type Endpoint, otlpEndpoint } from '../endpoint.js';
import type { Http } from '../http/client.js';
import type { Reply, Transport } from '../transport.js';
import { encodeRequest } from './span.js';

/** Sends observations as OpenTelemetry spans, to Langfuse or to a Collector. */
export class OtlpTransport implements Transport {
  readonly #config: DestinationConfig;
  readonly #http: Http;

  constructor(config: DestinationConfig, http: Http) {
    this.#config = config;
    this.#http = http;
  }

  async post(outgoing: readonly Outgoing[], limits: Limits): Promise<Reply> {
    const { kind } = this.#config;
    const { url, headers } = otlpEndpoint(this.#config);
    const { status, isPage, body } = await this.#http.request(
      {
        method: 'POST',
        url,
        headers: { ...headers, 'content-type': 'application/json' },
        body: encodeRequest(outgoing.map(({ json }) => json)),
        isCompressed: true,
        isBodyOptional: true,
      },
      limits,
    );
    const isForeign = isPage && status < 300;
    const problem = isForeign
      ? `this is not ${NAMES[kind]}: it answered ${status} with a web page`
      : PROBLEMS[kind][status];
    return { status, problem, rejected: parseRejected(body, outgoing.length, headers) };
  }
}

const NAMES = { langfuse: 'Langfuse', collector: 'a Collector' } as const;

const PROBLEMS: { readonly [kind in DestinationConfig['kind']]: { readonly [status: number]: string } } = {
  langfuse: {
    401: 'the server refuses the keys (401)',
    403: 'the server refuses the keys (403)',
    404: 'the server has no OTLP endpoint (404); Langfuse has one since version 3.22',
  },
  collector: {
    401: 'the Collector refuses CC_LANGFUSE_OTLP_HEADERS (401)',
    403: 'the Collector refuses CC_LANGFUSE_OTLP_HEADERS (403)',
    404: "there is no OTLP endpoint at CC_LANGFUSE_OTLP_URL (404); a Collector's URL ends with /v1/traces",
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
function parseRejected(body: string, sent: number, headers: Endpoint['headers']): Rejected | undefined {
  const answer = parseJson(body);
  const { partialSuccess } = isRecord(answer) ? answer : {};
  if (!isRecord(partialSuccess)) return undefined;
  // As JSON a 64-bit number is a string.
  const count = Math.trunc(Number(partialSuccess.rejectedSpans));
  const spans = Math.min(sent, Math.max(0, count || 0));
  const reason = typeof partialSuccess.errorMessage === 'string' ? partialSuccess.errorMessage : '';
  if (spans === 0 && reason === '') return undefined;
  const masked = headerSecrets(headers).reduce((text, secret) => text.replaceAll(secret, '…'), reason);
  return { spans, reason: masked.slice(0, REASON_CHARS).toWellFormed() };
}
