import { setTimeout as sleep } from 'node:timers/promises';
import type { Limits } from '../destination.js';
import { type Http, HttpClient, type HttpRequest, type HttpResponse } from './client.js';

const MAX_ATTEMPTS = 4;
const TOO_MANY_REQUESTS = 429;
const LEAST_REQUEST_MS = 200;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;

/**
 * Repeats requests that may succeed later: a few times, but after a 429 as long as there is time, since a server that asks
 * to wait is healthy. Then all requests wait that are made through the same instance.
 */
export class RetryingHttpClient implements Http {
  /** For requests that are not to be repeated. */
  readonly client: HttpClient;
  /** A request that is cut off may have arrived, and would be sent again: none begins with less time than the longest took. */
  #longestMs = LEAST_REQUEST_MS;
  #pause: { readonly until: number; readonly response: HttpResponse } | undefined;
  #waitingSince: number | undefined;

  constructor(client = new HttpClient()) {
    this.client = client;
  }

  /** Until when the server has asked to wait, in ms since 1970. */
  get pausedUntil(): number {
    return this.#pause?.until ?? 0;
  }

  /** Since when a request has been waiting for its answer, in ms since 1970. */
  get waitingSince(): number | undefined {
    return this.#waitingSince;
  }

  async request(request: HttpRequest, limits: Limits): Promise<HttpResponse> {
    this.#waitingSince = Date.now();
    try {
      return await this.#repeat(request, limits);
    } finally {
      this.#waitingSince = undefined;
    }
  }

  async #repeat(request: HttpRequest, limits: Limits): Promise<HttpResponse> {
    const { deadline, stop } = limits;
    for (let attempt = 1; ; attempt += 1) {
      if (this.#pause && this.#pause.until >= deadline) return this.#pause.response;
      await waitUntil(this.pausedUntil, stop);
      const startedAt = Date.now();
      if (deadline - startedAt < this.#longestMs) throw new Error('out of time');
      const result = await this.client.request(request, limits).catch((error: Error) => error);
      const response = result instanceof Error ? undefined : result;
      if (response) this.#longestMs = Math.max(this.#longestMs, Date.now() - startedAt);
      if (response && !isRetryable(response.status)) return response;
      const until = nextAttemptAt(attempt, response);
      if (response?.status === TOO_MANY_REQUESTS) this.#pause = { until: Math.max(until, this.pausedUntil), response };
      if (until >= deadline) {
        if (result instanceof Error) throw result;
        return result;
      }
      await waitUntil(until, stop);
    }
  }
}

/** Whether the same request may succeed later. */
export function isRetryable(status: number): boolean {
  return status === 408 || status === TOO_MANY_REQUESTS || status >= 500;
}

/** When to try again after an attempt, in ms since 1970: infinity if it was the last one. */
export function nextAttemptAt(attempt: number, response?: HttpResponse): number {
  const isLast = attempt >= MAX_ATTEMPTS;
  if (isLast && response?.status !== TOO_MANY_REQUESTS) return Number.POSITIVE_INFINITY;
  const requestedMs = parseRetryAfter(response?.headers['retry-after']);
  const backoffMs = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS) * (0.75 + Math.random() / 2);
  // After the last attempt, a Retry-After that is shorter than our own delay is ignored.
  return Date.now() + (isLast ? Math.max(requestedMs ?? 0, backoffMs) : (requestedMs ?? backoffMs));
}

/** Throws if it is stopped. */
export async function waitUntil(until: number, stop: AbortSignal | undefined): Promise<void> {
  const left = until - Date.now();
  if (left > 0) await sleep(left, undefined, stop && { signal: stop }).catch(() => {});
  if (stop?.aborted) throw new Error('stopped');
}

/** `Retry-After` is a number of seconds or a date. */
function parseRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
