import type { ApiAnswer } from './langfuse-api.js';
import type { OtlpSpan } from './langfuse-server.js';
import type { ModelStore, StoredModel } from './model-store.js';
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
  readonly sessionId: unknown;
  readonly model: string | undefined;
  readonly usageDetails: Figures;
  readonly costDetails: Figures;
  readonly totalCost: number | undefined;
  readonly experiment: { readonly [field: string]: string };
}

const EXPERIMENT = 'langfuse.experiment.';

/** The events of Langfuse 4, one for each span, as its v2 observations and its experiments show them. */
export class EventStore {
  readonly #models: ModelStore;
  readonly #spans = new Map<string, OtlpSpan>();

  constructor(models: ModelStore) {
    this.#models = models;
  }

  get events(): StoredEvent[] {
    return [...this.#spans.values()].map((span) => this.#read(span));
  }

  keep(span: OtlpSpan): void {
    this.#spans.set(`${span.traceId} ${span.spanId} ${span.startTimeUnixNano.slice(0, -6)}`, span);
  }

  /** web/src/pages/api/public/v2/observations/index.ts; the costs are in the field group `usage`. */
  answer(request: string): ApiAnswer | undefined {
    const [path, query] = request.split('?');
    if (path !== 'GET /api/public/v2/observations') return undefined;
    const filters = new URLSearchParams(query);
    const limit = Number(filters.get('limit') ?? 50);
    if (!(limit >= 0 && limit <= 1_000)) return { status: 400 };
    const isWanted = (event: StoredEvent) =>
      (['name', 'type', 'traceId', 'sessionId'] as const).every(
        (field) => filters.get(field) === null || filters.get(field) === event[field],
      );
    const found = this.events.filter(isWanted).slice(0, limit);
    const data = found.map(({ experiment: _, ...event }) => event);
    return { status: 200, body: JSON.stringify({ data, meta: {} }) };
  }

  /**
   * packages/shared/src/server/repositories/experiments.ts: an item is the events that name the experiment and the item themselves;
   * its cost is their sum, and what it is shown with comes from the event that is named as its root.
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
    const found = model === undefined ? undefined : this.#models.find(model);
    const costs = computeCosts(figures('langfuse.observation.cost_details'), usageDetails, found);
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
      sessionId: texts.get('session.id'),
      model,
      usageDetails,
      ...costs,
      experiment: Object.fromEntries(experiment),
    };
  }
}

/**
 * worker/src/services/IngestionService/index.ts, `calculateUsageCosts`: if any cost is given, nothing else is computed; otherwise each
 * kind of usage that has a price costs something, and kinds without a price cost nothing.
 */
function computeCosts(provided: Figures, usage: Figures, model: StoredModel | undefined) {
  const kinds = Object.keys(provided);
  if (kinds.length > 0) {
    const isInputAndOutput = kinds.every((kind) => kind === 'input' || kind === 'output');
    const total = provided.total ?? (isInputAndOutput ? (provided.input ?? 0) + (provided.output ?? 0) : undefined);
    return { costDetails: { ...provided, ...(total !== undefined && { total }) }, totalCost: total };
  }
  const computed = Object.entries(usage).flatMap(([kind, units]) => {
    const price = model?.prices[kind];
    return price === undefined ? [] : [[kind, price * units] as const];
  });
  if (computed.length === 0) return { costDetails: {}, totalCost: undefined };
  const details: Figures = Object.fromEntries(computed);
  const total = details.total ?? computed.reduce((sum, [, cost]) => sum + cost, 0);
  return { costDetails: { ...details, total }, totalCost: total };
}
