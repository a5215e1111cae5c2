import { mapValues } from '../../src/shared/json.js';
import type { ApiAnswer } from './langfuse-api.js';
import type { OtlpSpan } from './langfuse-server.js';
import type { ModelStore } from './model-store.js';
import { parseIfJson } from './parse-if-json.js';

type Figures = { readonly [kind: string]: number };

/** What the events table of Langfuse 4 has of a span in addition to `StoredObservation`. */
interface StoredEvent {
  readonly id: string;
  readonly traceId: string;
  readonly parentObservationId: string | null;
  readonly startTime: string;
  readonly type: string;
  readonly name: string;
  readonly level: string | undefined;
  readonly metadata: { readonly [key: string]: unknown };
  readonly sessionId: unknown;
  readonly model: string | undefined;
  readonly usageDetails: Figures;
  readonly costDetails: Figures;
  readonly totalCost: number | undefined;
  readonly experiment: { readonly [field: string]: string };
}

const EXPERIMENT = 'langfuse.experiment.';
const METADATA = 'langfuse.observation.metadata.';
/** packages/shared/clickhouse/migrations/unclustered/0041_create_events_core_mv.up.sql cuts them. */
const METADATA_CHARS = 200;

/** packages/shared/src/domain/observation-field-groups.ts; the fields of `core` are always there. */
const FIELD_GROUPS: { readonly [group: string]: readonly (keyof StoredEvent)[] } = {
  core: ['id', 'traceId', 'startTime', 'parentObservationId', 'type'],
  basic: ['name', 'level', 'sessionId'],
  metadata: ['metadata'],
  model: ['model'],
  usage: ['usageDetails', 'costDetails', 'totalCost'],
};

/** The events of Langfuse 4, one for each span, as its v2 observations and its experiments show them. */
export class EventStore {
  /** Until Langfuse has merged its rows, each arrival is one. */
  isMerged = true;
  readonly #models: ModelStore;
  /** By trace, span and start, in the order of arrival. */
  readonly #spans = new Map<string, readonly OtlpSpan[]>();

  constructor(models: ModelStore) {
    this.#models = models;
  }

  get events(): StoredEvent[] {
    return this.spans.map((span) => this.#read(span));
  }

  /** What arrived last of each. */
  get spans(): OtlpSpan[] {
    return [...this.#spans.values()].flatMap((arrivals) => arrivals.slice(-1));
  }

  keep(span: OtlpSpan): void {
    const key = `${span.traceId} ${span.spanId} ${span.startTimeUnixNano.slice(0, -6)}`;
    this.#spans.set(key, [...(this.#spans.get(key) ?? []), span]);
  }

  remove(isGone: (span: { readonly traceId: string; readonly id: string }) => boolean): void {
    for (const [key, [span]] of this.#spans)
      if (span && isGone({ traceId: span.traceId, id: span.spanId })) this.#spans.delete(key);
  }

  /**
   * web/src/pages/api/public/v2/observations/index.ts, with the order and the cursor of applyObservationsCursorFilter in
   * packages/shared/src/server/repositories/events.ts. Rows are not deduplicated.
   */
  answer(request: string): ApiAnswer | undefined {
    const [path, query] = request.split('?');
    if (path !== 'GET /api/public/v2/observations') return undefined;
    const filters = new URLSearchParams(query);
    const limit = Number(filters.get('limit') ?? 50);
    if (!(limit >= 0 && limit <= 1_000)) return { status: 400 };
    const time = (name: string, otherwise: number) => Date.parse(filters.get(name) ?? '') || otherwise;
    const [from, until] = [
      time('fromStartTime', Number.NEGATIVE_INFINITY),
      time('toStartTime', Number.POSITIVE_INFINITY),
    ];
    const cursor = filters.get('cursor');
    const after = cursor === null ? undefined : Buffer.from(cursor, 'base64').toString();
    const all = [...this.#spans.values()].flatMap((arrivals) => (this.isMerged ? arrivals.slice(-1) : arrivals));
    const found = all
      .map((span) => this.#read(span))
      .filter((event) => {
        const at = Date.parse(event.startTime);
        const isWanted = (['name', 'type', 'traceId', 'sessionId'] as const).every(
          (field) => filters.get(field) === null || filters.get(field) === event[field],
        );
        return isWanted && at >= from && at < until && (after === undefined || placeOf(event) < after);
      })
      .toSorted((a, b) => (placeOf(a) < placeOf(b) ? 1 : -1));
    const groups = ['core', ...(filters.get('fields') ?? 'basic').split(',')];
    const fields = groups.flatMap((group) => FIELD_GROUPS[group] ?? []);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    const data = page.map((event) => Object.fromEntries(fields.map((field) => [field, event[field]])));
    const hasMore = found.length > limit && last !== undefined;
    const meta = hasMore ? { cursor: Buffer.from(placeOf(last)).toString('base64') } : {};
    return { status: 200, body: JSON.stringify({ data, meta }) };
  }

  /**
   * packages/shared/src/server/repositories/experiments.ts: an item is the events that name the experiment and the item themselves;
   * its cost is their sum, each that has failed is an error, and what it is shown with comes from the event that is named as its root.
   */
  get experimentItems() {
    const inExperiments = this.events.filter(({ experiment }) => experiment.id && experiment['item.id']);
    const key = ({ experiment, traceId }: StoredEvent) => `${experiment.id} ${experiment['item.id']} ${traceId}`;
    return [...new Set(inExperiments.map(key))].map((item) => {
      const events = inExperiments.filter((event) => key(event) === item);
      const root = events.find(({ id, experiment }) => id === experiment['item.root_observation_id']);
      return {
        experiment: root?.experiment,
        traceId: events[0]?.traceId,
        root: root?.name,
        observations: events.length,
        errors: events.filter(({ level }) => level === 'ERROR').length,
        totalCost: events.reduce((sum, { totalCost = 0 }) => sum + totalCost, 0),
      };
    });
  }

  /** packages/shared/src/server/otel/attributes.ts names the attributes. */
  #read(span: OtlpSpan): StoredEvent {
    const texts = new Map(span.attributes.map(({ key, value }) => [key, value?.stringValue]));
    const figures = (key: string) => (parseIfJson(texts.get(key)) ?? {}) as Figures;
    const model = texts.get('langfuse.observation.model.name');
    const usageDetails = figures('langfuse.observation.usage_details');
    const metadata = Object.fromEntries(
      [...texts].flatMap(([key, text = '']) => (key.startsWith(METADATA) ? [[key.slice(METADATA.length), text]] : [])),
    );
    const prices = this.#models.findPrices(model, {
      usage: usageDetails,
      model_parameters: parseIfJson(texts.get('langfuse.observation.model.parameters')),
      metadata,
    });
    const costs = computeCosts(figures('langfuse.observation.cost_details'), usageDetails, prices);
    const experiment = [...texts].flatMap(([key, text = '']) =>
      key.startsWith(EXPERIMENT) ? [[key.slice(EXPERIMENT.length), text]] : [],
    );
    return {
      id: span.spanId,
      traceId: span.traceId,
      parentObservationId: span.parentSpanId ?? null,
      startTime: new Date(Number(BigInt(span.startTimeUnixNano) / 1_000_000n)).toISOString(),
      type: (texts.get('langfuse.observation.type') ?? 'span').toUpperCase(),
      name: span.name,
      level: texts.get('langfuse.observation.level'),
      metadata: {
        ...mapValues(metadata, (text) => text.slice(0, METADATA_CHARS)),
        // packages/shared/src/server/otel/OtelIngestionProcessor.ts, `isLangfuseSDKSpans`.
        ...(!span.scope?.startsWith('langfuse-sdk') && { attributes: JSON.stringify(Object.fromEntries(texts)) }),
      },
      sessionId: texts.get('session.id'),
      model,
      usageDetails,
      ...costs,
      experiment: Object.fromEntries(experiment),
    };
  }
}

/** Compares as the order of the rows does. Langfuse compares the hashes of trace ids. */
function placeOf({ startTime, traceId, id }: StoredEvent): string {
  return `${startTime} ${traceId} ${id}`;
}

/**
 * worker/src/services/IngestionService/index.ts, `calculateUsageCosts`: if any cost is given, nothing else is computed; otherwise each
 * kind of usage that has a price costs something, and kinds without a price cost nothing.
 */
export function computeCosts(provided: Figures, usage: Figures, prices: Figures | undefined) {
  const kinds = Object.keys(provided);
  if (kinds.length > 0) {
    const isInputAndOutput = kinds.every((kind) => kind === 'input' || kind === 'output');
    const total = provided.total ?? (isInputAndOutput ? (provided.input ?? 0) + (provided.output ?? 0) : undefined);
    return { costDetails: { ...provided, ...(total !== undefined && { total }) }, totalCost: total };
  }
  const computed = Object.entries(usage).flatMap(([kind, units]) => {
    const price = prices?.[kind];
    return price === undefined ? [] : [[kind, price * units] as const];
  });
  if (computed.length === 0) return { costDetails: {}, totalCost: undefined };
  const details: Figures = Object.fromEntries(computed);
  const total = details.total ?? computed.reduce((sum, [, cost]) => sum + cost, 0);
  return { costDetails: { ...details, total }, totalCost: total };
}
