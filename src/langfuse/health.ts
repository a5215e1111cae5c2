import type { LangfuseConfig } from '../config/settings.js';
import { isRecord, parseJson } from '../shared/json.js';
import { langfuseUrl } from './endpoint.js';
import { requestOnce } from './http/client.js';

/** What a server says about itself to anyone. */
export interface HealthAnswer {
  readonly status: number;
  /** The version of Langfuse; undefined if something else answers. */
  readonly version: string | undefined;
  /** Its clock, in ms since 1970, to the second. */
  readonly clock: number | undefined;
  /** The URL to which it redirects. */
  readonly location: string | undefined;
}

/** Needs no keys; throws if there is no answer. */
export async function fetchHealth(langfuse: LangfuseConfig, timeoutMs: number): Promise<HealthAnswer> {
  const url = langfuseUrl(langfuse, '/api/public/health');
  const { status, headers, body } = await requestOnce({ method: 'GET', url }, timeoutMs);
  const answer = parseJson(body);
  const clock = Date.parse(headers.date ?? '');
  return {
    status,
    version: isRecord(answer) && typeof answer.version === 'string' ? answer.version : undefined,
    clock: Number.isNaN(clock) ? undefined : clock,
    location: headers.location,
  };
}
