import type { LangfuseConfig } from '../config/settings.js';
import { isRecord, parseJson } from '../shared/json.js';
import { read } from './http/read.js';
import { langfuseUrl } from './receiver.js';

/** What a server says of itself to anyone. */
export interface HealthAnswer {
  readonly status: number;
  /** Of Langfuse; undefined where something else answers. */
  readonly version: string | undefined;
  /** Its clock, in ms since 1970, to the second. */
  readonly clock: number | undefined;
  /** Where it sends whoever asks. */
  readonly location: string | undefined;
}

/** Asks a server how it is, without keys; throws where there is no answer. */
export async function askForHealth(langfuse: LangfuseConfig, timeoutMs: number): Promise<HealthAnswer> {
  const { status, headers, body } = await read(langfuseUrl(langfuse, '/api/public/health'), {}, timeoutMs);
  const answer = parseJson(body);
  const clock = Date.parse(headers.date ?? '');
  return {
    status,
    version: isRecord(answer) && typeof answer.version === 'string' ? answer.version : undefined,
    clock: Number.isNaN(clock) ? undefined : clock,
    location: headers.location,
  };
}
