import type { DestinationConfig } from '../../config/settings.js';
import { isRecord, parseJson } from '../../shared/json.js';
import type { Limits, Outgoing, Rejected } from '../destination.js';
import { type Endpoint, otlpEndpoint } from '../endpoint.js';
import { type Http, isRefusal } from '../http/client.js';
import type { Reply } from '../transport.js';
import { encodeRequest } from './span.js';

/** Sends observations as OpenTelemetry spans, to Langfuse or to a Collector. */
export async function postSpans(
  outgoing: readonly Outgoing[],
  config: DestinationConfig,
  http: Http,
  limits: Limits,
): Promise<Reply> {
  const { url, headers } = await otlpEndpoint(config, limits);
  const { status, isPage, body } = await http.request(
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
  const { name, refusal, missing } = TEXTS[config.kind];
  const rejected = parseRejected(body, outgoing.length, headers);
  if (isPage && status < 300)
    return { status, problem: `this is not ${name}: it answered ${status} with a web page`, rejected };
  if (isRefusal(status)) return { status, problem: `${refusal} (${status})`, rejected };
  return { status, problem: status === 404 ? missing : undefined, rejected };
}

const TEXTS = {
  langfuse: {
    name: 'Langfuse',
    refusal: 'the server refuses the keys',
    missing: 'the server has no OTLP endpoint (404); Langfuse has one since version 3.22',
  },
  collector: {
    name: 'a Collector',
    refusal: 'the Collector refuses CC_LANGFUSE_OTLP_HEADERS',
    missing: "there is no OTLP endpoint at CC_LANGFUSE_OTLP_URL (404); a Collector's URL ends with /v1/traces",
  },
} as const;

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
