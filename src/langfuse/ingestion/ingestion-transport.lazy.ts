import { type ApiIngestionEvent, type ApiIngestionResponse, Langfuse } from 'langfuse';
import type { LangfuseConfig } from '../../config/settings.js';
import { isRecord, parseJson } from '../../shared/json.js';
import type { Limits, Outgoing } from '../destination.js';
import { describeRefusedKeys, langfuseUrl, resolveSecretKey, SDK_HEADERS } from '../endpoint.js';
import { type Http, isRefusal, isSuccess } from '../http/client.js';
import type { Reply } from '../transport.js';
import { type Refusal, readWords } from '../words.js';
import { buildEvents, type IngestionEvent } from './events.js';

/** The server accepts 3.5 MB. */
const BATCH_BYTES = 3_000_000;

const CLOSED =
  'Langfuse refuses every event (400): since version 4 its ingestion API accepts no traces; unset CC_LANGFUSE_TRANSPORT to send them by OpenTelemetry';
const NOT_LANGFUSE = 'this is not Langfuse: its answer does not mention the events';

/** What the answer does not mention was not accepted; it may be later. */
const UNMENTIONED_STATUS = 500;

type Verdict = ApiIngestionResponse['errors'][number] | ApiIngestionResponse['successes'][number];

/**
 * Sends observations by the ingestion API, the only one that Langfuse had before 3.22. The package `langfuse` builds the
 * request, our own client sends it: the package uses the global `fetch`, which knows no proxy and takes the keys wherever
 * it is redirected to.
 */
export async function postEvents(
  outgoing: readonly Outgoing[],
  config: LangfuseConfig,
  http: Http,
  limits: Limits,
): Promise<Reply> {
  const { publicKey } = config;
  const secretKey = await resolveSecretKey(config, limits);
  const url = langfuseUrl(config, '/api/public/ingestion');
  const additionalHeaders = { ...config.headers, ...SDK_HEADERS };
  // Without an environment it would read one from a variable, and print whether it is valid.
  const client = new Langfuse({ publicKey, secretKey, environment: 'default', additionalHeaders });
  const sentAt = new Date().toISOString();
  const events = outgoing.map(({ observation }) => (observation ? buildEvents(observation, sentAt) : []));
  const verdicts = new Map<string, Verdict>();
  for (const batch of splitIntoBatches(events.flat())) {
    const { headers, body } = client._getFetchOptions({ method: 'POST', body: JSON.stringify({ batch }) });
    const response = await http.request({ method: 'POST', url, headers, body }, limits);
    const { status } = response;
    if (!isSuccess(status)) {
      const words = isRefusal(status) && outgoing.length === 0 ? readWords(response.body, headers) : undefined;
      return { status, words, problem: describeProblem({ status, words }) };
    }
    const answer = parseJson(response.body);
    if (!isIngestionResponse(answer)) return { status, problem: NOT_LANGFUSE };
    for (const verdict of [...answer.errors, ...answer.successes]) verdicts.set(verdict.id, verdict);
  }
  const refusals = new Map<number, number>();
  for (const [index, own] of events.entries()) {
    const statuses = own.map(({ event }) => verdicts.get(event.id)?.status ?? UNMENTIONED_STATUS);
    const refusal = own.length === 0 ? UNMENTIONED_STATUS : statuses.find((status) => status >= 300);
    if (refusal !== undefined) refusals.set(index, refusal);
  }
  return { status: 207, ...findProblem([...verdicts.values()]), refusals };
}

function describeProblem(refusal: Refusal): string | undefined {
  if (isRefusal(refusal.status)) return describeRefusedKeys(refusal);
  return refusal.status === 404 ? 'the server has no ingestion API (404)' : undefined;
}

/** Langfuse 4 refuses traces and observations one by one, each with a 400 and these words. */
function findProblem(verdicts: readonly Verdict[]): Pick<Reply, 'problem' | 'isClosed'> {
  const keys = verdicts.find(({ status }) => isRefusal(status));
  if (keys) return { problem: describeProblem(keys) };
  const isClosed = verdicts.length > 0 && verdicts.every(({ status }) => status === 400);
  const isTold = verdicts.some((verdict) => 'message' in verdict && verdict.message === 'Event type not accepted');
  return isClosed && (isTold || verdicts.length > 1) ? { problem: CLOSED, isClosed } : {};
}

function isIngestionResponse(answer: unknown): answer is ApiIngestionResponse {
  return (
    isRecord(answer) && [answer.successes, answer.errors].every((list) => Array.isArray(list) && list.every(isVerdict))
  );
}

function isVerdict(value: unknown): value is Verdict {
  return isRecord(value) && typeof value.id === 'string' && typeof value.status === 'number';
}

function splitIntoBatches(events: readonly IngestionEvent[]): ApiIngestionEvent[][] {
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
