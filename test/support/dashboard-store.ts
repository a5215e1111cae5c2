import * as z from 'zod';
import type { ApiAnswer } from './langfuse-api.js';

// Langfuse 4.16.0: packages/shared/src/interfaces/filters.ts, the filters that are of use here.
const column = z.string();
const SingleFilter = z.discriminatedUnion('type', [
  z.object({
    column,
    type: z.literal('stringOptions'),
    operator: z.enum(['any of', 'none of']),
    value: z.array(z.string()).nonempty(),
  }),
  z.object({
    column,
    type: z.literal('arrayOptions'),
    operator: z.enum(['any of', 'none of', 'all of']),
    value: z.array(z.string()),
  }),
  z.object({ column, type: z.literal('boolean'), operator: z.enum(['=', '<>']), value: z.boolean() }),
]);

// packages/shared/src/features/query/dataModel.ts: eventsObservationsView, without what the widgets may not use.
const DIMENSIONS = [
  'environment type name level version userId sessionId tags release traceName traceRelease traceVersion',
  'isRootObservation providedModelName promptName promptVersion startTimeMonth toolNames calledToolNames',
  'costType usageType experimentName experimentDatasetId experimentId',
].flatMap((names) => names.split(' '));
const NUMERIC_MEASURES = [
  'latency streamingLatency inputTokens outputTokens totalTokens outputTokensPerSecond tokensPerSecond inputCost',
  'outputCost totalCost timeToFirstToken countScores toolDefinitions toolCalls costByType usageByType',
].flatMap((names) => names.split(' '));
const STRING_MEASURES = ['traceId', 'uniqueUserIds', 'uniqueSessionIds'];
const NUMERIC_AGGREGATIONS = ['sum', 'avg', 'count', 'max', 'min', 'p50', 'p75', 'p90', 'p95', 'p99', 'histogram'];

// web/src/features/dashboard/lib/dashboardUiTableToViewMapping.ts: `usageType` groups, but does not filter.
const FILTER_COLUMNS = [
  'traceName name userId sessionId metadata type tags providedModelName level toolNames calledToolNames traceRelease',
  'traceVersion environment release version experimentName experimentDatasetId experimentId isRootObservation',
].flatMap((names) => names.split(' '));

// web/src/features/public-api/types/unstable-dashboard-widgets.ts and schema.prisma.
const Widget = z.object({
  name: z.string().min(1),
  description: z.string().default(''),
  view: z.enum(['observations', 'scores-numeric', 'scores-boolean', 'scores-categorical']),
  dimensions: z.array(z.object({ field: z.enum(DIMENSIONS) })),
  metrics: z.array(z.object({ measure: z.string(), agg: z.string() }).refine(isValidMetric)).min(1),
  filters: z.array(SingleFilter),
  chartType: z.enum([
    'LINE_TIME_SERIES',
    'AREA_TIME_SERIES',
    'BAR_TIME_SERIES',
    'HORIZONTAL_BAR',
    'VERTICAL_BAR',
    'PIE',
    'NUMBER',
    'HISTOGRAM',
    'PIVOT_TABLE',
  ]),
});
type StoredWidget = z.infer<typeof Widget> & { readonly id: string };

/** getValidAggregationsForMeasureType, and the count that every view has. */
function isValidMetric({ measure, agg }: { measure: string; agg: string }): boolean {
  if (measure === 'count') return ['count', 'sum'].includes(agg);
  if (STRING_MEASURES.includes(measure)) return ['count', 'uniq'].includes(agg);
  return NUMERIC_MEASURES.includes(measure) && NUMERIC_AGGREGATIONS.includes(agg);
}

// web/src/features/public-api/types/unstable-dashboards.ts
const Placement = z.strictObject({
  type: z.literal('widget'),
  id: z.string(),
  widgetId: z.string(),
  x: z.int().gte(0),
  y: z.int().gte(0),
  width: z.int().positive(),
  height: z.int().positive(),
});
const Definition = z
  .object({ widgets: z.array(Placement) })
  .refine(({ widgets }) => new Set(widgets.map(({ id }) => id)).size === widgets.length);
const Dashboard = z.object({
  name: z.string().min(1),
  description: z.string().default(''),
  definition: Definition.default({ widgets: [] }),
  filters: z.array(SingleFilter).default([]),
});
type StoredDashboard = z.infer<typeof Dashboard> & { readonly id: string };

const FOLDER = '/api/public/unstable/';

/** Langfuse's unstable API for dashboards: web/src/features/dashboard/server/public-dashboard-service.ts and …/widgets/server. */
export class DashboardStore {
  /** Servers before July 2026 answer 404. */
  exists = true;
  readonly dashboards = new Map<string, StoredDashboard>();
  readonly widgets = new Map<string, StoredWidget>();
  #count = 0;

  answer(request: string, body: unknown): ApiAnswer | undefined {
    const [method = '', url = ''] = request.split(' ');
    const [path = '', query] = url.split('?');
    if (!path.startsWith(FOLDER)) return undefined;
    if (!this.exists) return { status: 404 };
    const [kind, id] = path.slice(FOLDER.length).split('/');
    if (kind === 'dashboards') return this.#answerDashboards(method, id, body, new URLSearchParams(query));
    return kind === 'dashboard-widgets' ? this.#answerWidgets(method, id, body) : undefined;
  }

  #answerDashboards(method: string, id: string | undefined, body: unknown, query: URLSearchParams) {
    if (method === 'GET' && id === undefined) return this.#list(query);
    const current = id === undefined ? undefined : this.dashboards.get(id);
    if (id !== undefined && !current) return refuse(404, `Dashboard ${id} not found`);
    if (method !== 'POST' && method !== 'PATCH') return refuse(405, 'Method not allowed');
    const { data: content } = Dashboard.safeParse({ ...current, ...(body as object) });
    if (!content) return refuse(400, 'Invalid request data');
    // assertPlacementReferences
    const missing = content.definition.widgets.find(({ widgetId }) => !this.widgets.has(widgetId));
    if (missing) return refuse(404, `Dashboard widget ${missing.widgetId} not found`);
    const dashboard = { ...content, id: id ?? this.#createId('d') };
    return accept(dashboard, () => this.dashboards.set(dashboard.id, dashboard));
  }

  #answerWidgets(method: string, id: string | undefined, body: unknown) {
    if (method === 'POST' && id === undefined) return this.#createWidget(body);
    const widget = this.widgets.get(id ?? '');
    if (!widget) return refuse(404, `Dashboard widget ${id} not found`);
    if (method === 'GET') return accept(widget);
    if (method !== 'DELETE') return refuse(405, 'Method not allowed');
    // fern/apis/server/definition/unstable/dashboard-widgets.yml: 409 while it is placed on a dashboard.
    const isPlaced = [...this.dashboards.values()].some(({ definition }) =>
      definition.widgets.some(({ widgetId }) => widgetId === widget.id),
    );
    if (isPlaced) return refuse(409, 'Widget is still placed');
    return accept({ message: 'Dashboard widget successfully deleted' }, () => this.widgets.delete(widget.id));
  }

  /** normalizePublicDashboardWidgetInput and validatePublicDashboardWidgetInput. */
  #createWidget(body: unknown) {
    const { data: content } = Widget.safeParse(body);
    if (!content) return refuse(400, 'Invalid request data');
    const unsupported = content.filters.find((filter) => !FILTER_COLUMNS.includes(filter.column));
    if (unsupported) return refuse(400, `Unsupported filter column for view "${content.view}": ${unsupported.column}`);
    if (content.chartType !== 'PIVOT_TABLE' && content.dimensions.length > 1)
      return refuse(400, 'Only pivot table widgets can have multiple dimensions');
    const widget = { ...content, id: this.#createId('w') };
    return accept(widget, () => this.widgets.set(widget.id, widget));
  }

  #list(query: URLSearchParams) {
    const [page, limit] = [Number(query.get('page') ?? 1), Number(query.get('limit') ?? 50)];
    if (!(page > 0) || !(limit > 0 && limit <= 100)) return refuse(400, 'Invalid request data');
    const all = [...this.dashboards.values()];
    const meta = { page, limit, totalItems: all.length, totalPages: Math.ceil(all.length / limit) };
    return accept({ data: all.slice((page - 1) * limit, page * limit), meta });
  }

  #createId(kind: string): string {
    this.#count += 1;
    return `${kind}${this.#count}`;
  }
}

function accept(value: object, keep?: () => void): ApiAnswer {
  return { status: 200, body: JSON.stringify(value), ...(keep && { keep }) };
}

function refuse(status: number, message: string): ApiAnswer {
  return { status, body: JSON.stringify({ message }) };
}
