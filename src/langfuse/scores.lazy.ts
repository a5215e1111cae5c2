import type { LangfuseConfig } from '../config/settings.js';
import { deriveScoreId } from '../observations/build/ids.js';
import type { TurnScores } from '../observations/build/scores.js';
import type { Limits, ScoreReport } from './destination.js';
import { apiRequest } from './endpoint.js';
import { type Http, isSuccess } from './http/client.js';

const TIMEOUT_MS = 10_000;

/**
 * Sends the scores of turns. POST /api/public/scores is the one endpoint that accepts them on every server: v2, v3, v4 and
 * Langfuse Cloud, where the ingestion API, which accepts several at a time, ended on 2026-11-16. v2/scores and v3/scores
 * only read. They are not compressed: Next.js, which answers there, does not unpack them.
 */
export async function sendScores(
  turns: readonly TurnScores[],
  config: LangfuseConfig,
  http: Http,
  { deadline, stop }: Limits,
): Promise<ScoreReport> {
  const refused: string[] = [];
  for (const [settled, turn] of turns.entries()) {
    if (Date.now() >= deadline) return { settled, refused, failure: 'out of time' };
    if (stop?.aborted) return { settled, refused, failure: 'stopped' };
    const limits = { deadline: Math.min(deadline, Date.now() + TIMEOUT_MS) };
    try {
      const labels = await Promise.all(buildScores(turn).map((score) => sendScore(score, config, http, limits)));
      refused.push(...labels.filter((label) => label !== undefined));
    } catch (error) {
      return { settled, refused, failure: (error as Error).message };
    }
  }
  return { settled: turns.length, refused, failure: undefined };
}

export type Score = ReturnType<typeof buildScores>[number];

/** Builds the scores as Langfuse accepts them. Sent again, a score has the same id and replaces itself. */
export function buildScores({ figures, ...place }: TurnScores) {
  return Object.entries(figures).map(([name, value]) => ({
    ...place,
    id: deriveScoreId(place.observationId ?? place.traceId, name),
    name,
    value,
    dataType: name === 'interrupted' ? 'BOOLEAN' : 'NUMERIC',
  }));
}

/** Returns the score's label if the server refuses it because of its content; throws if it may be sent again. */
async function sendScore(score: Score, config: LangfuseConfig, http: Http, limits: Limits) {
  const request = await apiRequest(config, limits, 'POST', '/api/public/scores', score);
  const { status, isPage } = await http.request({ ...request, isBodyOptional: true }, limits);
  if (isPage) throw new Error('this is not Langfuse: it answered a score with a web page');
  if (isSuccess(status)) return undefined;
  if (status !== 400 && status !== 413) throw new Error(`the server answers ${status} to scores`);
  return `score ${score.name} of trace ${score.traceId}`;
}
