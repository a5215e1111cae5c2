import type { DestinationConfig } from '../config/settings.js';
import { deriveScoreId } from '../observations/build/ids.js';
import type { TurnScores } from '../observations/build/scores.js';
import type { ScoreReport } from './destination.js';
import { ask, type Connection, connect, isPage } from './http/connection.js';
import { isSuccess } from './http/status.js';
import { authorization, langfuseUrl } from './receiver.js';

/** A score as Langfuse takes it. Sent again it has the same id, and replaces itself. */
export interface Score extends Pick<TurnScores, 'traceId' | 'observationId' | 'environment'> {
  readonly id: string;
  readonly name: string;
  readonly value: number;
  readonly dataType: 'NUMERIC' | 'BOOLEAN';
}

const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Sends the scores of turns. POST /api/public/scores is the one endpoint that takes them on every server: v2, v3, v4 and
 * Langfuse Cloud, where the ingestion API, which takes several at a time, ended on 2026-11-16. v2/scores and v3/scores
 * only read. Next.js, which answers there, does not unpack what is compressed. A Collector takes none: those that are due
 * from before stay so.
 */
export async function sendScores(
  receiver: DestinationConfig,
  turns: readonly TurnScores[],
  { deadline, stop }: { readonly deadline: number; readonly stop?: AbortSignal | undefined },
): Promise<ScoreReport> {
  if (receiver.kind === 'collector') return { settled: 0, refused: [], failure: undefined };
  const url = langfuseUrl(receiver, '/api/public/scores');
  const headers = { authorization: authorization(receiver), 'content-type': 'application/json' };
  const connection = await connect(url);
  const refused: string[] = [];
  try {
    for (const [settled, turn] of turns.entries()) {
      const left = Math.min(deadline - Date.now(), REQUEST_TIMEOUT_MS);
      if (left <= 0 || stop?.aborted) return { settled, refused, failure: left <= 0 ? 'out of time' : 'stopped' };
      const answers = await Promise.all(
        buildScores(turn).map((score) => statusOf(connection, url, { score, headers }, left)),
      );
      const failure = answers.map(({ status }) => failureOf(status)).find((reason) => reason !== undefined);
      if (failure !== undefined) return { settled, refused, failure };
      refused.push(...answers.filter(({ status }) => !isTaken(status)).map(({ label }) => label));
    }
    return { settled: turns.length, refused, failure: undefined };
  } finally {
    connection.agent.destroy();
  }
}

export function buildScores({ figures, ...place }: TurnScores): Score[] {
  return Object.entries(figures).map(([name, value]) => ({
    ...place,
    id: deriveScoreId(place.observationId ?? place.traceId, name),
    name,
    value,
    dataType: name === 'interrupted' ? 'BOOLEAN' : 'NUMERIC',
  }));
}

interface Question {
  readonly score: Score;
  readonly headers: { readonly [name: string]: string };
}

async function statusOf(connection: Connection, url: URL, { score, headers }: Question, timeoutMs: number) {
  const body = Buffer.from(JSON.stringify(score));
  const question = { method: 'POST', headers: { ...headers, 'content-length': body.length }, body } as const;
  const label = `score ${score.name} of trace ${score.traceId}`;
  try {
    const incoming = await ask(connection, url, question, timeoutMs);
    incoming.resume();
    return {
      label,
      status: isPage(incoming) ? 'what answers is no Langfuse: it sent a page' : (incoming.statusCode ?? 0),
    };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { label, status: `cannot reach the server: ${code ?? message}` };
  }
}

/** Why a score may be sent again; none where it was taken, or is refused for what it is. */
function failureOf(status: number | string): string | undefined {
  if (typeof status === 'string') return status;
  return isSuccess(status) || status === 400 || status === 413 ? undefined : `the server answers ${status} to scores`;
}

function isTaken(status: number | string): boolean {
  return typeof status === 'number' && isSuccess(status);
}
