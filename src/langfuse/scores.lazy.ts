import type { LangfuseConfig } from '../config/settings.js';
import { deriveScoreId } from '../observations/build/ids.js';
import { RATING, SCORE_NAMES, type TurnScores } from '../observations/build/scores.js';
import { otherFailure, toFailure } from '../shared/failure.js';
import { hashText } from '../shared/hash.js';
import { isRecord, parseJson } from '../shared/json.js';
import type { Limits, ScoreReport } from './destination.js';
import { adviseOnRefusal, apiRequest } from './endpoint.js';
import { type Http, isRefusal, isSuccess } from './http/client.js';

const TIMEOUT_MS = 10_000;

/**
 * Sends the scores of turns, by the ingestion API: only its events have a time, which is the score's. Version 4, which refuses
 * all its other events, accepts them in every write mode (Langfuse's web/src/pages/api/public/ingestion.ts). What that API does
 * not accept is sent to POST /api/public/scores, which every server has, and gets the time at which it arrives. Neither is
 * compressed: Next.js, which answers there, does not unpack it.
 */
export async function sendScores(
  turns: readonly TurnScores[],
  config: LangfuseConfig,
  http: Http,
  { deadline, stop }: Limits,
): Promise<ScoreReport> {
  const refused: string[] = [];
  for (const [settled, turn] of turns.entries()) {
    if (Date.now() >= deadline) return { settled, refused, failure: otherFailure('out of time') };
    if (stop?.aborted) return { settled, refused, failure: otherFailure('stopped') };
    const limits = { deadline: Math.min(deadline, Date.now() + TIMEOUT_MS) };
    try {
      const left = await sendEvents(buildScores(turn), turn.endTime, config, http, limits);
      const labels = await Promise.all(left.map((score) => sendScore(score, config, http, limits)));
      refused.push(...labels.filter((label) => label !== undefined));
    } catch (error) {
      return { settled, refused, failure: toFailure(error as Error) };
    }
  }
  return { settled: turns.length, refused, failure: undefined };
}

export type Score = ReturnType<typeof buildScores>[number];

/** Builds the scores as Langfuse accepts them. Sent again, a score has the same id and replaces itself. */
export function buildScores({ traceId, observationId, environment, figures, comment }: TurnScores) {
  // The state can have figures that are no longer sent.
  return [...SCORE_NAMES, RATING].flatMap((name) => {
    const { [name]: value } = figures;
    const id = deriveScoreId(observationId ?? traceId, name);
    // Langfuse merges ratings of a turn: only an empty comment replaces that of an earlier one.
    const about = name === RATING ? { dataType: 'BOOLEAN', comment: comment ?? '' } : { dataType: 'NUMERIC' };
    return value === undefined ? [] : [{ traceId, observationId, environment, id, name, value, ...about }];
  });
}

/** Returns the scores that were not accepted; throws if they may be sent again. */
async function sendEvents(
  scores: readonly Score[],
  time: number | undefined,
  config: LangfuseConfig,
  http: Http,
  limits: Limits,
): Promise<readonly Score[]> {
  if (time === undefined) return scores;
  const events = scores.map((score) => buildEvent(score, new Date(time).toISOString()));
  const request = await apiRequest(config, limits, 'POST', '/api/public/ingestion', { batch: events });
  const { status, isPage, body } = await http.request(request, limits);
  // A page that says 404 is also Langfuse's, of a version without this API.
  if (isPage && isSuccess(status)) throw new Error(NO_PAGE);
  if (!isSuccess(status)) {
    if (isTemporary(status)) throw new Error(describeStatus(status));
    return scores;
  }
  const answer = parseJson(body);
  if (!isRecord(answer) || !Array.isArray(answer.successes)) return scores;
  const accepted = new Set(answer.successes.filter(isRecord).map(({ id }) => id));
  return scores.filter((_, index) => !accepted.has(events[index]?.id));
}

/** The server distinguishes events by their ids: what is sent again unchanged has the same. */
function buildEvent(body: Score, timestamp: string) {
  const hash = hashText(`${timestamp} ${JSON.stringify(body)}`).slice(0, 16);
  return { id: `${body.id}-${hash}`, type: 'score-create', timestamp, body };
}

/** Returns the score's label if the server refuses it because of its content; throws if it may be sent again. */
async function sendScore(score: Score, config: LangfuseConfig, http: Http, limits: Limits) {
  const request = await apiRequest(config, limits, 'POST', '/api/public/scores', score);
  const { status, isPage } = await http.request({ ...request, isBodyOptional: true }, limits);
  if (isPage) throw new Error(NO_PAGE);
  if (isSuccess(status)) return undefined;
  if (status !== 400 && status !== 413) throw new Error(describeStatus(status));
  return `score ${score.name} of trace ${score.traceId}`;
}

const NO_PAGE = 'this is not Langfuse: it answered a score with a web page';

/** Another endpoint would say the same. */
function isTemporary(status: number): boolean {
  return status === 401 || status === 403 || status === 408 || status === 429 || status >= 500;
}

function describeStatus(status: number): string {
  return isRefusal(status)
    ? `the server refuses the keys for scores (${status}); ${adviseOnRefusal(status)}`
    : `the server answers ${status} to scores`;
}
