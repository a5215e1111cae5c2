import { isRecord, parseJson } from '../../shared/json.js';
import type { Limits, Outgoing, Rejected } from '../destination.js';
import { type Http, isRefusal } from '../http/client.js';
import type { Reply } from '../transport.js';
import { cleanWords, type Headers, type Refusal, readWords } from '../words.js';
import { encodeRequest } from './span.js';

/** Something that accepts OpenTelemetry's traces, and how its answers are put for the user. */
export interface OtlpEndpoint {
  readonly url: URL;
  /** Throws if they are not there in time. */
  readHeaders(limits: Limits): Promise<Headers>;
  readonly name: string;
  describeRefusal(refusal: Refusal): string;
  readonly missing: string;
}

/** Sends observations as OpenTelemetry spans. */
export async function postSpans(
  outgoing: readonly Outgoing[],
  { url, readHeaders, name, describeRefusal, missing }: OtlpEndpoint,
  http: Http,
  limits: Limits,
): Promise<Reply> {
  const headers = await readHeaders(limits);
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
  const rejected = parseRejected(body, outgoing.length, headers);
  if (isPage && status < 300)
    return { status, problem: `this is not ${name}: it answered ${status} with a web page`, rejected };
  if (isRefusal(status)) {
    const words = outgoing.length === 0 ? readWords(body, headers) : undefined;
    return { status, words, problem: describeRefusal({ status, words }), rejected };
  }
  return { status, problem: status === 404 ? missing : undefined, rejected };
}

/** What OTLP calls a partial success. Langfuse answers with a queue's job instead, or with nothing. */
function parseRejected(body: string, sent: number, headers: Headers): Rejected | undefined {
  const answer = parseJson(body);
  const { partialSuccess } = isRecord(answer) ? answer : {};
  if (!isRecord(partialSuccess)) return undefined;
  // As JSON a 64-bit number is a string.
  const count = Math.trunc(Number(partialSuccess.rejectedSpans));
  const spans = Math.min(sent, Math.max(0, count || 0));
  const reason = typeof partialSuccess.errorMessage === 'string' ? partialSuccess.errorMessage : '';
  if (spans === 0 && reason === '') return undefined;
  return { spans, reason: cleanWords(reason, headers) };
}
