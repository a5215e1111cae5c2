import * as z from 'zod/mini';
import { parseJson } from '../../src/shared/json.js';
import { DashboardStore } from './dashboard-store.js';
import { ModelStore } from './model-store.js';

export interface ApiAnswer {
  readonly status: number;
  readonly body?: string;
  /** Stores what the request contains. Called if this answer is really sent. */
  readonly keep?: () => void;
}

const Score = z.object({
  id: z.string(),
  traceId: z.string(),
  observationId: z.optional(z.string()),
  environment: z.optional(z.string()),
  name: z.string(),
  value: z.number(),
  dataType: z.enum(['NUMERIC', 'BOOLEAN']),
  comment: z.optional(z.string()),
});
interface StoredScore extends z.infer<typeof Score> {
  readonly timestamp: string;
}

const ScoreEvent = z.object({
  id: z.string(),
  type: z.literal('score-create'),
  timestamp: z.iso.datetime(),
  body: Score,
});

// Langfuse 4.16.0: web/src/features/public-api/types/datasets.ts, PostDatasetRunItemsV1Body.
const RunItem = z.strictObject({ runName: z.string(), datasetItemId: z.string(), traceId: z.string() });
type StoredRunItem = z.infer<typeof RunItem>;

/** packages/shared/clickhouse/migrations/unclustered/0003_scores.up.sql: of the same day, the later one by time, or either. */
function mayReplace(there: StoredScore, score: StoredScore): boolean {
  const isSameDay = there.timestamp.slice(0, 10) === score.timestamp.slice(0, 10);
  const isSame = Object.entries(score).every(([name, value]) => there[name as keyof StoredScore] === value);
  return !isSameDay || isSame || score.timestamp > there.timestamp;
}

/** Langfuse's API for what is not a span: scores and datasets, as uncompressed JSON. */
export class LangfuseApi {
  /** By id: a score that is sent again replaces itself. */
  readonly scores = new Map<string, StoredScore>();
  /** How many scores have arrived, repetitions included. */
  scoresTaken = 0;
  /** Those that an older server has stored. */
  readonly runItems: StoredRunItem[] = [];
  readonly models = new ModelStore();
  readonly dashboards = new DashboardStore();
  /** The items of the one dataset. */
  datasetItems: readonly { readonly id: string; readonly [field: string]: unknown }[] = [];

  readonly #isOlder: () => boolean;

  constructor(isOlder: () => boolean) {
    this.#isOlder = isOlder;
  }

  /** Returns undefined for requests that are not part of this API. */
  answer(request: string, body: Buffer): ApiAnswer | undefined {
    const [path] = request.split('?');
    const value = parseJson(body.toString('utf8'));
    switch (path) {
      case 'POST /api/public/scores': {
        const { data: score } = Score.safeParse(value);
        // Its own time, whatever the body says: createScore in web/src/features/public-api/server/scores-api-service.ts.
        const timestamp = new Date().toISOString();
        return score ? this.#taking({ id: score.id }, () => this.#keep({ ...score, timestamp })) : { status: 400 };
      }
      case 'POST /api/public/dataset-run-items': {
        const { data: item } = RunItem.safeParse(value);
        const isKnown = this.datasetItems.some(({ id }) => id === item?.datasetItemId);
        if (!item) return { status: 400 };
        // web/src/pages/api/public/dataset-run-items.ts: with `events_only`, the default of version 4, nothing is stored.
        return isKnown ? this.#taking(item, () => this.#isOlder() && this.runItems.push(item)) : { status: 404 };
      }
      case 'GET /api/public/dataset-items':
        return { status: 200, body: JSON.stringify({ data: this.datasetItems, meta: { totalPages: 1 } }) };
      default:
        return this.models.answer(request, value) ?? this.dashboards.answer(request, value);
    }
  }

  /** Keeps the scores among the events of the ingestion API; returns their ids. */
  takeScoreEvents(events: readonly unknown[]): string[] {
    return events.flatMap((event) => {
      const { data } = ScoreEvent.safeParse(event);
      if (!data) return [];
      const score = { ...data.body, timestamp: data.timestamp };
      const there = this.scores.get(score.id);
      if (!there || mayReplace(there, score)) this.#keep(score);
      return [data.id];
    });
  }

  #keep(score: StoredScore): void {
    this.scores.set(score.id, score);
    this.scoresTaken += 1;
  }

  #taking(answer: object, keep: () => void): ApiAnswer {
    return { status: 200, body: JSON.stringify(answer), keep };
  }
}
