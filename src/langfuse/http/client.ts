import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { version } from '../../shared/version.js';
import type { Limits } from '../destination.js';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: URL;
  readonly headers?: { readonly [name: string]: string };
  readonly body?: string | Uint8Array | undefined;
  readonly isCompressed?: boolean;
  /** The head of the response is the acknowledgement: a body that does not arrive soon is taken as empty. */
  readonly isBodyOptional?: boolean;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** It is a web page for people, so it does not come from the API that was asked. */
  readonly isPage: boolean;
}

/** Makes HTTP requests. A redirect is a response like any other: following it would take the keys to another host. */
export interface Http {
  /** Throws if there is no response in time. */
  request(request: HttpRequest, limits: Limits): Promise<HttpResponse>;
}

const RESPONSE_TIMEOUT_MS = 30_000;
/** 50 kB a second: a large body needs time to arrive. */
const SLOWEST_BYTES_PER_MS = 50;
const OPTIONAL_BODY_TIMEOUT_MS = 1_000;
const LONGEST_BODY_CHARS = 5_000_000;
/** Whether the user has told Claude Code not to trust the authorities that come with Node. */
const TRUSTS_SYSTEM_ALONE = process.env.CLAUDE_CODE_CERT_STORE?.trim() === 'system';

/** Keeps its connections open until it is closed; goes through the proxy that the environment names. */
export class HttpClient implements Http {
  readonly #connections = new Map<string, ReturnType<typeof connect>>();

  async request(request: HttpRequest, { deadline }: Limits): Promise<HttpResponse> {
    const { url } = request;
    // Loading what the connection needs takes as long as compressing the body, which another thread does.
    const connection = this.#connect(url);
    const payload = await encodePayload(request);
    const longestMs = RESPONSE_TIMEOUT_MS + (payload?.length ?? 0) / SLOWEST_BYTES_PER_MS;
    const timeoutMs = Math.max(1, Math.ceil(Math.min(deadline - Date.now(), longestMs)));
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      return await this.#exchange(request, payload, connection, signal);
    } catch (error) {
      if (!signal.aborted) throw new NoResponseError(url, error as Error);
      const seconds = Number((timeoutMs / 1_000).toPrecision(2));
      throw new NoResponseError(url, { message: `no answer within ${seconds} s` }, timeoutMs);
    }
  }

  #connect(url: URL): ReturnType<typeof connect> {
    const connection = this.#connections.get(url.origin) ?? connect(url, TRUSTS_SYSTEM_ALONE);
    this.#connections.set(url.origin, connection);
    // The request reports what goes wrong, but it may not be waiting for it yet.
    connection.catch(() => {});
    return connection;
  }

  async #exchange(
    request: HttpRequest,
    payload: Uint8Array | undefined,
    connection: ReturnType<typeof connect>,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { origin } = request.url;
    try {
      return await exchange(request, payload, { ...(await connection), signal });
    } catch (error) {
      if (!isUntrusted(error) || (await connection).trustsSystem) throw error;
      // Nothing has been sent yet. Claude Code trusts the system's authorities, too; reading them takes time, so few runs do.
      if (this.#connections.get(origin) === connection) this.#connections.set(origin, connect(request.url, true));
      const trusting = await this.#connections.get(origin);
      if (!trusting?.trustsSystem) throw error;
      return exchange(request, payload, { ...trusting, signal });
    }
  }

  async close(): Promise<void> {
    const connections = await Promise.allSettled(this.#connections.values());
    for (const connection of connections) if (connection.status === 'fulfilled') connection.value.agent.destroy();
  }
}

export class NoResponseError extends Error {
  readonly code: string | undefined;
  readonly reason: string;
  /** How long it had time to answer, if that was not enough. */
  readonly waitedMs: number | undefined;

  constructor({ host }: URL, { code, message }: Pick<NodeJS.ErrnoException, 'code' | 'message'>, waitedMs?: number) {
    super(`${host} cannot be reached: ${code ?? message}`);
    this.waitedMs = waitedMs;
    this.code = code;
    this.reason = code ?? message;
  }
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Whether the server refuses the keys, or the headers that stand for them. */
export function isRefusal(status: number): boolean {
  return status === 401 || status === 403;
}

/** Makes a single request over a connection of its own. */
export async function requestOnce(request: HttpRequest, limits: Limits): Promise<HttpResponse> {
  const client = new HttpClient();
  try {
    return await client.request(request, limits);
  } finally {
    await client.close();
  }
}

async function connect(url: URL, trustsSystem: boolean) {
  const { request, Agent } = url.protocol === 'https:' ? await import('node:https') : await import('node:http');
  const hasProxy = Object.keys(process.env).some((name) => /^(?:https?|all)_proxy$/i.test(name));
  const { createProxyAgent } = hasProxy ? await import('./proxy.lazy.js') : { createProxyAgent: () => undefined };
  const ca = trustsSystem ? (await import('./certificates.lazy.js')).readAuthorities() : undefined;
  const options = { keepAlive: true, ...(ca && { ca }) };
  return {
    start: request,
    agent: createProxyAgent(url, options) ?? new Agent(options),
    trustsSystem: ca !== undefined,
  };
}

/** How OpenSSL says that it does not know who signed a certificate. */
function isUntrusted(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return /SELF_SIGNED_CERT|^UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)/.test(code);
}

interface Connection extends Pick<Awaited<ReturnType<typeof connect>>, 'start' | 'agent'> {
  readonly signal: AbortSignal;
}

async function exchange(
  request: HttpRequest,
  payload: Uint8Array | undefined,
  { start, agent, signal }: Connection,
): Promise<HttpResponse> {
  const { url, method, isBodyOptional } = request;
  const outgoing = start(url, { agent, method, headers: buildHeaders(request, payload), signal });
  // `once` reports what goes wrong before the response, reading the body what goes wrong after it.
  outgoing.on('error', () => {});
  const response = once(outgoing, 'response', { signal });
  outgoing.end(payload);
  const [incoming] = (await response) as [IncomingMessage];
  const { statusCode: status = 0, headers } = incoming;
  const isPage = /\bhtml\b/i.test(headers['content-type'] ?? '');
  const body = await (isBodyOptional ? readEarlyBody(incoming) : readBody(incoming));
  return { status, headers, isPage, body };
}

async function encodePayload({ body, isCompressed }: HttpRequest): Promise<Uint8Array | undefined> {
  if (body === undefined) return undefined;
  if (isCompressed) return promisify(gzip)(body);
  return typeof body === 'string' ? Buffer.from(body) : body;
}

function buildHeaders({ headers, isCompressed }: HttpRequest, payload: Uint8Array | undefined): OutgoingHttpHeaders {
  return {
    ...headers,
    ...(isCompressed && { 'content-encoding': 'gzip' }),
    ...(payload && { 'content-length': payload.length }),
    'user-agent': `cc-langfuse/${version}`,
  };
}

async function readEarlyBody(incoming: IncomingMessage): Promise<string> {
  const timer = setTimeout(() => incoming.destroy(), OPTIONAL_BODY_TIMEOUT_MS);
  const body = await readBody(incoming).catch(() => '');
  clearTimeout(timer);
  return body;
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of incoming.setEncoding('utf8')) {
    body += chunk;
    if (body.length > LONGEST_BODY_CHARS) throw new Error('its answer does not end');
  }
  return body;
}
