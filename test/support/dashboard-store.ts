import * as z from 'zod';
import type { ApiAnswer } from './langfuse-api.js';
import { findRefusal, SingleFilter, Widget } from './widget-rules.js';

type StoredWidget = Widget & { readonly id: string };

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

  #createWidget(body: unknown) {
    const { data: content } = Widget.safeParse(body);
    if (!content) return refuse(400, 'Invalid request data');
    const refusal = findRefusal(content);
    if (refusal !== undefined) return refuse(400, refusal);
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
