import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import type { LangfuseConfig } from '../../src/config/settings.js';
import { computeCosts, EventStore } from './event-store.js';
import { IngestionStore } from './ingestion-store.js';
import { type ApiAnswer, LangfuseApi } from './langfuse-api.js';
import { MediaStore } from './media-store.js';
import type { ModelStore } from './model-store.js';
import { parseIfJson } from './parse-if-json.js';

/** An observation as the server stores it, from the attributes of its span. */
export interface StoredObservation {
  readonly traceId: string;
  readonly id: string;
  readonly parentId: string | undefined;
  readonly name: string;
  readonly startTime: number;
  readonly endTime: number;
  readonly type: string | undefined;
  readonly level: string | undefined;
  readonly statusMessage: string | undefined;
  readonly completionStartTime: string | undefined;
  readonly model: string | undefined;
  readonly modelParameters: unknown;
  readonly usage: { readonly [kind: string]: number } | undefined;
  readonly input: unknown;
  readonly output: unknown;
  readonly metadata: { readonly [key: string]: unknown };
  /** Whether it counts as a root although it has a parent. */
  readonly isAppRoot: true | undefined;
  readonly trace: {
    readonly name: unknown;
    readonly sessionId: unknown;
    readonly userId: unknown;
    readonly tags: unknown;
    readonly environment: unknown;
    readonly release: unknown;
    /** Each observation has its own, which is that of the trace. */
    readonly version: unknown;
    readonly metadata: { readonly [key: string]: unknown };
  };
}

interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly bytes: number;
  readonly status: number;
  readonly spans: number;
  /** How many events of the ingestion API. */
  readonly events: number;
}

/** What the server does with a request instead of accepting it. */
export interface Misbehaviour {
  readonly status?: number;
  readonly headers?: { readonly [name: string]: string };
  readonly body?: string;
  /** Stores and answers the request later. */
  readonly delayMs?: number;
  /** Stores the request at once, and answers later. */
  readonly answerDelayMs?: number;
  /** Answers only after this has resolved. */
  readonly after?: Promise<unknown>;
  /** Ends the connection without an answer, before or after the server has stored the request. */
  readonly disconnect?: 'before taking' | 'after taking';
}

/** What a pair of keys may do. */
interface Permissions {
  readonly mayRead: boolean;
  readonly mayWrite?: boolean;
  readonly isExpired?: boolean;
}

/** What happens while the server hangs. */
export interface Hanging {
  /** How many requests have come. */
  readonly count: number;
  /** Lets it take and answer them. */
  readonly release: () => void;
}

export const PUBLIC_KEY = 'pk-lf-embedded';
export const PROJECT = { id: 'embedded', name: 'Embedded', organization: { id: 'o1', name: 'Acme' } };
const VERSION = '4.16.0';
const OLDER_VERSION = '3.21.0';
export const SECRET_KEY = 'sk-lf-embedded';

/** The settings for such a server, with its keys. */
export function langfuseAt(url: string, secretKey = SECRET_KEY): LangfuseConfig {
  return { kind: 'langfuse', baseUrl: new URL(url), publicKey: PUBLIC_KEY, secretKey, headers: {}, transport: 'auto' };
}

/**
 * A stand-in for Langfuse on loopback: version 4, or one from before OpenTelemetry. It stores observations as the real
 * one does: one row for each trace, span id and start time, in which the last arrival replaces the others. It refuses
 * requests with a bad span or without the right keys.
 */
export class LangfuseServer {
  /** An older server has no OpenTelemetry endpoint. A newer one refuses traces by the ingestion API. */
  isOlder = false;
  /** What has arrived by the ingestion API. */
  readonly ingested = new IngestionStore();
  /** Called for each request with its number, from 0. */
  misbehave: (request: IncomingMessage, number: number, spans: readonly OtlpSpan[]) => Misbehaviour | undefined = () =>
    undefined;
  readonly requests: ReceivedRequest[] = [];
  /** How many spans were answered with 200 and never shown: for one malformed span the real server loses a whole flush. */
  lost = 0;
  /** How many times each row has arrived. */
  readonly arrivals = new Map<string, number>();
  /** Observations that arrived again although nothing of them had changed. */
  readonly repeated: StoredObservation[] = [];
  readonly api = new LangfuseApi(() => this.isOlder);
  readonly events = new EventStore(this.api.models);
  readonly media = new MediaStore(() => this.url);
  /** The pairs of keys, and what they may do: Langfuse has some for ingestion only, some that only read, and some that expire. */
  readonly keys = new Map<string, Permissions>([[`${PUBLIC_KEY}:${SECRET_KEY}`, { mayRead: true }]]);
  readonly #rows = new Map<string, StoredObservation>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('error', () => {});
      request.on('end', () => this.#handle(request, response, Buffer.concat(chunks)));
    });
  }

  static async start(port = 0): Promise<LangfuseServer> {
    const server = new LangfuseServer();
    await new Promise<void>((resolve) => server.#server.listen(port, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get observations(): StoredObservation[] {
    return [...this.#rows.values(), ...this.ingested.observations];
  }

  /** The observations without a parent: turns, and agents that no call started. */
  get roots(): StoredObservation[] {
    return this.observations.filter(({ parentId }) => parentId === undefined);
  }

  /** How many times an observation has arrived. */
  timesSent(observation: StoredObservation): number {
    return this.arrivals.get(rowKey(observation)) ?? 0;
  }

  /** Neither stores nor answers a request until it is released. */
  hang(): Hanging {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const hanging = { count: 0, release };
    this.misbehave = () => {
      hanging.count += 1;
      return { after: released };
    };
    return hanging;
  }

  /** Its worker is killed with SIGKILL: what was answered with 200 and not yet written is lost. */
  loseWhatIsNotWritten(): void {
    this.#rows.clear();
  }

  /** Loses observations that it had. */
  remove(isGone: (observation: { readonly traceId: string; readonly id: string }) => boolean): void {
    for (const [key, row] of this.#rows)
      if (isGone(row)) {
        this.#rows.delete(key);
        this.arrivals.delete(key);
      }
    this.events.remove(isGone);
    this.ingested.remove(isGone);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #handle(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const number = this.requests.length;
    const taken = this.#read(request, body);
    const misbehaviour = this.misbehave(request, number, taken.spans) ?? {};
    const answer = () => {
      const status = misbehaviour.status ?? taken.status;
      this.requests.push({
        path: request.url ?? '',
        headers: request.headers,
        bytes: body.length,
        status,
        spans: taken.spans.length,
        events: taken.events?.length ?? 0,
      });
      const isTaken = status < 300 && misbehaviour.disconnect !== 'before taking';
      if (isTaken) this.#keep(taken.spans);
      if (isTaken) taken.keep?.();
      const verdicts = taken.events && isTaken ? this.#takeEvents(taken.events) : undefined;
      if (misbehaviour.disconnect) {
        request.socket.destroy();
        return;
      }
      response.writeHead(status, { 'content-type': 'application/json', ...misbehaviour.headers });
      const end = () => response.end(misbehaviour.body ?? verdicts ?? taken.body ?? '{}');
      if (answerDelayMs === undefined) end();
      else setTimeout(end, answerDelayMs);
    };
    const { delayMs, answerDelayMs, after } = misbehaviour;
    if (after) after.then(answer);
    else if (delayMs !== undefined) setTimeout(answer, delayMs);
    else answer();
  }

  /** A newer server accepts scores, but no traces (EVENTS_ONLY_ALLOWED_TYPES in web/src/pages/api/public/ingestion.ts). */
  #takeEvents(events: readonly unknown[]): string {
    const isScore = (event: unknown) => (event as { type?: unknown }).type === 'score-create';
    const scores = this.api.takeScoreEvents(events.filter(isScore)).map((id) => ({ id, status: 201 }));
    const others = this.ingested.take(
      events.filter((event) => !isScore(event)),
      this.isOlder,
    );
    return JSON.stringify({ ...others, successes: [...others.successes, ...scores] });
  }

  #read(request: IncomingMessage, body: Buffer): Taken {
    if (request.url === '/api/public/health')
      return {
        status: 200,
        spans: [],
        body: JSON.stringify({ status: 'OK', version: this.isOlder ? OLDER_VERSION : VERSION }),
      };
    const name = `${request.method} ${request.url}`;
    const stored = this.media.store(name, request.headers, body);
    if (stored) return { spans: [], ...stored };
    const [, credentials = ''] = /^Basic (.*)$/.exec(request.headers.authorization ?? '') ?? [];
    const key = this.keys.get(Buffer.from(credentials, 'base64').toString());
    const refuse = (status: number, message: string) => ({ status, spans: [], body: JSON.stringify({ message }) });
    // web/src/features/public-api/server/apiAuth.ts, verifyAuthHeaderAndReturnScope
    if (!key) return refuse(401, "Invalid credentials. Confirm that you've configured the correct host.");
    if (key.isExpired) return refuse(401, 'API key has expired');
    // web/src/features/public-api/server/createAuthedProjectAPIRoute.ts, verifyApiKeyAuth
    const { mayRead, mayWrite = true } = key;
    if (request.method === 'GET' ? !mayRead : !mayWrite)
      return refuse(403, 'Access denied - insufficient permissions for this endpoint');
    if (request.method === 'GET' && request.url === '/api/public/projects')
      return { status: 200, spans: [], body: JSON.stringify({ data: [PROJECT] }) };
    const answer = this.api.answer(name, body) ?? this.#answerReader(name) ?? this.media.answer(name, body);
    if (answer) return { spans: [], ...answer };
    if (request.method === 'POST' && request.url === '/api/public/ingestion') return parseEvents(request, body);
    const isOtlp = request.method === 'POST' && request.url === '/api/public/otel/v1/traces';
    if (!isOtlp || this.isOlder) return { status: 404, spans: [] };
    try {
      const json = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
      const spans = listSpans(JSON.parse(json.toString('utf8')));
      return { status: spans.every(isAcceptable) ? 200 : 400, spans };
    } catch {
      return { status: 400, spans: [] };
    }
  }

  /** An older server has only the older one of the APIs for reading. In the mode `events_only`, a newer one has only the newer one. */
  #answerReader(name: string): ApiAnswer | undefined {
    if (!this.isOlder) return this.events.answer(name);
    return answerOlderReader(name, this.observations, this.api.models);
  }

  #keep(spans: readonly OtlpSpan[]): void {
    if (spans.some(losesItsFlush)) {
      this.lost += spans.length;
      return;
    }
    for (const span of spans) {
      this.events.keep(span);
      const row = stored(span);
      const key = rowKey(row);
      this.arrivals.set(key, (this.arrivals.get(key) ?? 0) + 1);
      if (isDeepStrictEqual(this.#rows.get(key), row)) this.repeated.push(row);
      this.#rows.set(key, row);
    }
  }
}

/** web/src/pages/api/public/observations/index.ts: a page of a trace, with everything that the observations have. */
function answerOlderReader(
  name: string,
  observations: readonly StoredObservation[],
  models: ModelStore,
): ApiAnswer | undefined {
  const [path, query] = name.split('?');
  if (path !== 'GET /api/public/observations') return undefined;
  const filters = new URLSearchParams(query);
  const [page, limit] = [Number(filters.get('page') ?? 1), Number(filters.get('limit') ?? 50)];
  if (!(page >= 1 && limit >= 1 && limit <= 100)) return { status: 400 };
  const found = observations.filter(({ traceId }) => traceId === (filters.get('traceId') ?? traceId));
  const data = found.slice((page - 1) * limit, page * limit).map(({ trace: _, parentId, type = '', ...each }) => {
    const { model, usage = {}, modelParameters, metadata } = each;
    const prices = models.findPrices(model, { usage, model_parameters: modelParameters, metadata });
    const { costDetails, totalCost = 0 } = computeCosts({}, usage, prices);
    return {
      ...each,
      parentObservationId: parentId ?? null,
      type: type.toUpperCase(),
      startTime: new Date(each.startTime),
      endTime: new Date(each.endTime),
      model: each.model ?? null,
      usageDetails: each.usage ?? {},
      usage: { unit: 'TOKENS', input: 0, output: 0, total: each.usage?.total ?? 0 },
      costDetails,
      calculatedTotalCost: totalCost,
    };
  });
  const meta = { page, limit, totalItems: found.length, totalPages: Math.ceil(found.length / limit) };
  return { status: 200, body: JSON.stringify({ data, meta }) };
}

/** Langfuse keeps an observation that arrives with another start time as another row. */
function rowKey({ traceId, id, startTime }: StoredObservation): string {
  return `${traceId} ${id} ${startTime}`;
}

interface Taken extends ApiAnswer {
  readonly spans: OtlpSpan[];
  readonly events?: readonly unknown[];
}

const LARGEST_BATCH_BYTES = 3_500_000;

/** The ingestion API answers 207 with a verdict for each event. It does not accept gzip. */
function parseEvents({ headers }: IncomingMessage, body: Buffer): Taken {
  if (body.length > LARGEST_BATCH_BYTES) return { status: 413, spans: [] };
  const request = parseIfJson(body.toString('utf8')) as { batch?: unknown };
  if (headers['content-type'] !== 'application/json' || !Array.isArray(request.batch))
    return { status: 400, spans: [] };
  return { status: 207, spans: [], events: request.batch };
}

interface AnyValue {
  readonly stringValue?: string;
  readonly intValue?: string;
  readonly arrayValue?: { readonly values: readonly AnyValue[] };
}

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code: number; readonly message?: string };
  readonly attributes: readonly { readonly key: string; readonly value?: AnyValue | null }[];
  /** The name of the scope that it came in. */
  readonly scope?: string | undefined;
}

interface OtlpRequest {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly ScopeSpans[] }[];
}

interface ScopeSpans {
  readonly scope?: { readonly name?: string };
  readonly spans: readonly OtlpSpan[];
}

export function listSpans(request: OtlpRequest): OtlpSpan[] {
  const all = request.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans);
  return all.flatMap(({ scope, spans }) => spans.map((span) => ({ ...span, scope: scope?.name })));
}

function isAcceptable({ traceId, spanId, attributes }: OtlpSpan): boolean {
  return /^[0-9a-f]{32}$/.test(traceId) && /^[0-9a-f]{16}$/.test(spanId) && Array.isArray(attributes);
}

function losesItsFlush({ attributes }: OtlpSpan): boolean {
  return attributes.some(({ value }) => !value || isIllFormed(parseDeeply(value)));
}

function isIllFormed(node: unknown): boolean {
  if (typeof node === 'string') return !node.isWellFormed();
  return typeof node === 'object' && node !== null && Object.entries(node).flat().some(isIllFormed);
}

function parseDeeply({ stringValue, arrayValue }: AnyValue): unknown {
  return arrayValue ? arrayValue.values.map(parseDeeply) : parseIfJson(stringValue);
}

/**
 * Reads a span as Langfuse does, by the names of its attributes (packages/shared/src/server/otel/OtelIngestionProcessor.ts). Where
 * its own are missing, it reads those of OpenTelemetry's conventions; a tool's name it reads there first.
 */
export function stored(span: OtlpSpan): StoredObservation {
  const plain = ({ stringValue, intValue, arrayValue }: AnyValue): unknown =>
    arrayValue?.values.map(plain) ?? stringValue ?? (intValue === undefined ? undefined : Number(intValue));
  const attributes = new Map(span.attributes.map(({ key, value }) => [key, value ? plain(value) : undefined]));
  const text = (key: string) => attributes.get(key) as string | undefined;
  const json = (key: string) => parseIfJson(attributes.get(key));
  const under = (prefix: string) =>
    Object.fromEntries(
      [...attributes].flatMap(([key, value]) =>
        key.startsWith(prefix) ? [[key.slice(prefix.length), parseIfJson(value)]] : [],
      ),
    );
  const traceMetadata = under('langfuse.trace.metadata.');
  const { model: requested, ...requestParameters } = under('gen_ai.request.');
  const orUndefined = <T extends object>(value: T) => (Object.keys(value).length > 0 ? value : undefined);
  // isAiSdkAgentOperation
  const isAgentOperation = text('gen_ai.operation.name') === 'invoke_agent';
  return {
    traceId: span.traceId,
    id: span.spanId,
    parentId: span.parentSpanId,
    name: text('gen_ai.tool.name') || span.name,
    startTime: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
    endTime: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
    type: text('langfuse.observation.type'),
    level: text('langfuse.observation.level') ?? (span.status?.code === 2 ? 'ERROR' : undefined),
    statusMessage: text('langfuse.observation.status_message') ?? span.status?.message,
    completionStartTime: json('langfuse.observation.completion_start_time') as string | undefined,
    model: isAgentOperation
      ? undefined
      : (text('langfuse.observation.model.name') ?? text('gen_ai.response.model') ?? (requested as string | undefined)),
    modelParameters: json('langfuse.observation.model.parameters') ?? orUndefined(requestParameters),
    usage: isAgentOperation
      ? undefined
      : ((json('langfuse.observation.usage_details') as StoredObservation['usage']) ??
        (orUndefined(under('gen_ai.usage.')) as StoredObservation['usage'])),
    input: json('langfuse.observation.input'),
    output: json('langfuse.observation.output'),
    // It lays the trace's metadata over the span's.
    metadata: { ...under('langfuse.observation.metadata.'), ...traceMetadata },
    // extractIsAppRoot in OtelIngestionProcessor.ts; packages/shared/src/eventsTable.ts reads it.
    isAppRoot: text('langfuse.internal.is_app_root') === 'true' || undefined,
    trace: {
      name: text('langfuse.trace.name'),
      sessionId: text('session.id') ?? text('gen_ai.conversation.id'),
      userId: text('user.id'),
      tags: attributes.get('langfuse.trace.tags'),
      environment: text('langfuse.environment'),
      release: text('langfuse.release'),
      version: text('langfuse.version'),
      metadata: traceMetadata,
    },
  };
}
