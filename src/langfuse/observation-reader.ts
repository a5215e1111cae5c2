import * as z from 'zod/mini';
import type { LangfuseConfig } from '../config/settings.js';
import { parseJson } from '../shared/json.js';
import { apiRequest } from './endpoint.js';
import { isRefusal, isSuccess, NoResponseError } from './http/client.js';
import { RetryingHttpClient } from './http/retry.js';
import { quote, ReadingRefused, readWords } from './words.js';

/** An observation as Langfuse has it, without what was said. */
export interface ReadObservation {
  readonly id: string;
  readonly traceId: string;
  /** In upper case. */
  readonly type: string;
  /** In ms since 1970. */
  readonly startTime: number;
  readonly level: string | undefined;
  readonly model: string | undefined;
  /** Tokens by kind. Version 2 has only the total. */
  readonly usage: { readonly [kind: string]: number };
  /** In dollars; undefined if Langfuse knows no price. */
  readonly cost: number | undefined;
  /** The id of the response that a generation shows. */
  readonly messageId: string | undefined;
}

/** What to read of a session. Times are in ms since 1970. */
export interface WantedSession {
  readonly sessionId: string;
  /** An older server does not find observations by their session. */
  readonly traceIds: Iterable<string>;
  readonly from: number;
  readonly until: number;
}

/** How long one request may take, with all the waiting that the server asks for. */
const PATIENCE_MS = 120_000;
/** With the first 200 characters of each value of the metadata, 500 rows are less than 3 MB. */
const ROWS_ON_A_PAGE = 500;
/** Older servers return inputs and outputs, too. */
const OLDER_ROWS_ON_A_PAGE = 50;

const text = z.catch(z.nullish(z.string()), undefined);
const figures = z.catch(z.nullish(z.record(z.string(), z.number())), undefined);

const Row = z.object({
  id: z.string(),
  traceId: z.nullish(z.string()),
  type: z.string(),
  startTime: z.string(),
  level: text,
  model: text,
  usageDetails: figures,
  costDetails: figures,
  /** What version 2 has instead of details. */
  usage: z.catch(z.nullish(z.object({ total: z.number() })), undefined),
  calculatedTotalCost: z.catch(z.nullish(z.number()), undefined),
  metadata: z.catch(z.record(z.string(), z.unknown()), {}),
});

const Page = z.object({ data: z.array(Row), meta: z.object({ cursor: z.optional(z.string()) }) });
const OlderPage = z.object({ data: z.array(Row), meta: z.object({ totalPages: z.number() }) });

/** Reads from Langfuse what it has of sessions: by its newest API, or where that is missing, by the one before. */
export class ObservationReader {
  readonly #langfuse: LangfuseConfig;
  readonly #http = new RetryingHttpClient();
  #isOlder = false;
  #failure: Error | undefined;

  constructor(langfuse: LangfuseConfig) {
    this.#langfuse = langfuse;
  }

  /** Until when the server has asked to wait, in ms since 1970. */
  get pausedUntil(): number {
    return this.#http.pausedUntil;
  }

  /** Throws `ReadingRefused`, or why it cannot be read in one line. */
  async read(wanted: WantedSession): Promise<ReadObservation[]> {
    if (this.#failure) throw this.#failure;
    try {
      const rows = this.#isOlder ? undefined : await this.#readSession(wanted);
      this.#isOlder ||= rows === undefined;
      return rows ?? (await this.#readTraces(wanted.traceIds));
    } catch (error) {
      // The next session could not be read either.
      if (error instanceof ReadingRefused || error instanceof NoResponseError) this.#failure = error;
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#http.client.close();
  }

  /** Undefined if the server does not have this API. */
  async #readSession({ sessionId, from, until }: WantedSession): Promise<ReadObservation[] | undefined> {
    const query = new URLSearchParams({
      sessionId,
      fields: 'core,basic,model,usage,metadata',
      // Langfuse keeps observations by time.
      fromStartTime: new Date(from).toISOString(),
      toStartTime: new Date(until).toISOString(),
      limit: String(ROWS_ON_A_PAGE),
    });
    const rows: ReadObservation[] = [];
    for (;;) {
      const page = await this.#ask(`/api/public/v2/observations?${query}`, Page);
      if (!page) return undefined;
      rows.push(...page.data.map(toObservation));
      const { cursor } = page.meta;
      if (cursor === undefined || cursor === query.get('cursor')) return rows;
      query.set('cursor', cursor);
    }
  }

  async #readTraces(traceIds: Iterable<string>): Promise<ReadObservation[]> {
    const rows: ReadObservation[] = [];
    for (const traceId of traceIds) {
      for (let page = 1, pages = 1; page <= pages; page += 1) {
        const query = new URLSearchParams({ traceId, page: String(page), limit: String(OLDER_ROWS_ON_A_PAGE) });
        const answer = await this.#ask(`/api/public/observations?${query}`, OlderPage);
        if (!answer) throw new Error('the server has no API to read observations (404)');
        rows.push(...answer.data.map(toObservation));
        pages = answer.meta.totalPages;
      }
    }
    return rows;
  }

  /** Undefined if there is nothing at this path. */
  async #ask<T extends z.ZodMiniType>(path: string, form: T): Promise<z.infer<T> | undefined> {
    const limits = { deadline: Date.now() + PATIENCE_MS };
    const request = await apiRequest(this.#langfuse, limits, 'GET', path);
    const { status, body } = await this.#http.request(request, limits);
    const words = isSuccess(status) ? undefined : readWords(body, request.headers);
    if (isRefusal(status)) throw new ReadingRefused({ status, words });
    if (status === 404) return undefined;
    const { data: page } = form.safeParse(parseJson(body));
    if (isSuccess(status) && page !== undefined) return page;
    const problem = isSuccess(status) ? 'answers in a form that is not known' : `answers ${status}`;
    throw new Error(`${this.#langfuse.baseUrl.host} ${problem}${quote(words)}`);
  }
}

function toObservation(row: z.infer<typeof Row>): ReadObservation {
  const { usageDetails, usage, costDetails, calculatedTotalCost } = row;
  const { message_id: messageId } = row.metadata;
  return {
    id: row.id,
    traceId: row.traceId ?? '',
    type: row.type,
    startTime: Date.parse(row.startTime),
    level: row.level ?? undefined,
    model: row.model || undefined,
    usage: usageDetails ?? (usage ? { total: usage.total } : {}),
    // Older servers say 0 if they know no price.
    cost: costDetails?.total ?? (calculatedTotalCost || undefined),
    messageId: typeof messageId === 'string' ? messageId : undefined,
  };
}
