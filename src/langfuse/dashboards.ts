import * as z from 'zod/mini';
import type { LangfuseConfig } from '../config/settings.js';
import { parseJson } from '../shared/json.js';
import type { Limits } from './destination.js';
import { apiRequest, describeRefusal } from './endpoint.js';
import { type HttpRequest, isRefusal, isSuccess, requestOnce } from './http/client.js';
import { quote, readWords } from './words.js';

/** A chart, as Langfuse's unstable API takes it. */
export interface Widget {
  readonly name: string;
  readonly description: string;
  readonly view: 'observations' | 'scores-numeric';
  readonly dimensions: readonly { readonly field: string }[];
  readonly metrics: readonly { readonly measure: string; readonly agg: string }[];
  readonly filters: readonly object[];
  readonly chartType: string;
}

const Placement = z.looseObject({ id: z.string(), type: z.string(), widgetId: z.optional(z.string()) });
export type Placement = z.infer<typeof Placement>;

const Dashboard = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  definition: z.object({ widgets: z.array(Placement) }),
});
export type Dashboard = z.infer<typeof Dashboard>;

interface DashboardContent {
  readonly name: string;
  readonly description: string;
  readonly filters: readonly object[];
  readonly definition: { readonly widgets: readonly Placement[] };
}

const Page = z.object({ data: z.array(Dashboard), meta: z.object({ totalPages: z.number() }) });
const Created = z.object({ id: z.string(), description: z.string() });

const FOLDER = '/api/public/unstable';
const MOST_ON_A_PAGE = 100;

/** Langfuse's API for dashboards, which is unstable: every answer is checked, and what it refuses is thrown in one line. */
export class DashboardApi {
  readonly #langfuse: LangfuseConfig;
  readonly #limits: Limits;

  constructor(langfuse: LangfuseConfig, limits: Limits) {
    this.#langfuse = langfuse;
    this.#limits = limits;
  }

  async listDashboards(): Promise<Dashboard[]> {
    const dashboards: Dashboard[] = [];
    for (let page = 1, pages = 1; page <= pages; page += 1) {
      const path = `/dashboards?page=${page}&limit=${MOST_ON_A_PAGE}`;
      const { data, meta } = await this.#ask('the dashboards', 'GET', path, Page);
      dashboards.push(...data);
      pages = meta.totalPages;
    }
    return dashboards;
  }

  createDashboard(content: DashboardContent): Promise<Dashboard> {
    return this.#ask('the dashboard', 'POST', '/dashboards', Dashboard, content);
  }

  changeDashboard(id: string, content: DashboardContent): Promise<Dashboard> {
    return this.#ask('the dashboard', 'PATCH', `/dashboards/${encodeURIComponent(id)}`, Dashboard, content);
  }

  async createWidget(widget: Widget): Promise<string> {
    return (await this.#ask(`the chart "${widget.name}"`, 'POST', '/dashboard-widgets', Created, widget)).id;
  }

  /** Undefined if there is no such widget any more. */
  async readDescription(widgetId: string): Promise<string | undefined> {
    const { status, body } = await this.#send('GET', `/dashboard-widgets/${encodeURIComponent(widgetId)}`);
    return isSuccess(status) ? Created.safeParse(parseJson(body)).data?.description : undefined;
  }

  /** Returns whether it was deleted: one that is on a dashboard is not. */
  async deleteWidget(id: string): Promise<boolean> {
    const { status } = await this.#send('DELETE', `/dashboard-widgets/${encodeURIComponent(id)}`);
    return isSuccess(status);
  }

  async #ask<T extends z.core.$ZodType>(
    what: string,
    method: HttpRequest['method'],
    path: string,
    schema: T,
    content?: object,
  ): Promise<z.output<T>> {
    const { status, body, words } = await this.#send(method, path, content);
    if (isRefusal(status)) throw new Error(`${describeRefusal(this.#langfuse, { status, words })}; ${NEEDED_KEYS}`);
    if (status === 404 && method === 'GET') throw new Error(`this Langfuse has no API for dashboards (404): ${SINCE}`);
    if (!isSuccess(status)) throw new Error(`the server refuses ${what} (${status})${quote(words)}`);
    const answer = z.safeParse(schema, parseJson(body));
    if (!answer.success) throw new Error(`the server's answer about ${what} is not as expected: its API has changed`);
    return answer.data;
  }

  async #send(method: HttpRequest['method'], path: string, content?: object) {
    const request = await apiRequest(this.#langfuse, this.#limits, method, `${FOLDER}${path}`, content);
    const { status, body } = await requestOnce(request, this.#limits);
    return { status, body, words: isSuccess(status) ? undefined : readWords(body, request.headers) };
  }
}

const NEEDED_KEYS = 'a dashboard needs keys with full access';

const SINCE = 'there is one since July 2026';
