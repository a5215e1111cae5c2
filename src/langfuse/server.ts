import type { LangfuseConfig } from '../config/settings.js';
import { isRecord, parseJson } from '../shared/json.js';
import type { Limits } from './destination.js';
import { apiRequest, describeRefusal, langfuseUrl } from './endpoint.js';
import { isRefusal, requestOnce } from './http/client.js';

export type HealthAnswer = Awaited<ReturnType<typeof fetchHealth>>;

/** Asks a server what it says about itself to anyone, without keys; throws if there is no answer. */
export async function fetchHealth(langfuse: LangfuseConfig, limits: Limits) {
  const url = langfuseUrl(langfuse, '/api/public/health');
  const { status, headers, body } = await requestOnce({ method: 'GET', url, headers: langfuse.headers }, limits);
  const answer = parseJson(body);
  const clock = Date.parse(headers.date ?? '');
  return {
    status,
    /** The version of Langfuse; undefined if something else answers. */
    version: isRecord(answer) && typeof answer.version === 'string' ? answer.version : undefined,
    /** In ms since 1970, to the second. */
    clock: Number.isNaN(clock) ? undefined : clock,
    /** The URL to which it redirects. */
    location: headers.location,
  };
}

export type ProjectAnswer = Awaited<ReturnType<typeof fetchProject>>;

/** Asks the server to which project the keys belong; throws if there is no answer. */
export async function fetchProject(langfuse: LangfuseConfig, limits: Limits) {
  const request = await apiRequest(langfuse, limits, 'GET', '/api/public/projects');
  const { status, body } = await requestOnce(request, limits);
  return { status, project: parseProject(parseJson(body)) };
}

function parseProject(answer: unknown): { readonly id: string; readonly name: string } | undefined {
  const [first] = isRecord(answer) && Array.isArray(answer.data) ? answer.data : [];
  if (!isRecord(first) || typeof first.id !== 'string') return undefined;
  return { id: first.id, name: typeof first.name === 'string' ? first.name : '' };
}

/** The result of trying the keys; `problem` is a sentence for the user. */
type KeyCheck =
  | { readonly kind: 'accepted'; readonly project: NonNullable<ProjectAnswer['project']> }
  | { readonly kind: 'refused' | 'unreachable' | 'no Langfuse'; readonly problem: string };

const KEY_CHECK_TIMEOUT_MS = 10_000;

/** Tries the keys without storing anything on the server. */
export async function checkKeys(langfuse: LangfuseConfig): Promise<KeyCheck> {
  try {
    const { status, project } = await fetchProject(langfuse, { deadline: Date.now() + KEY_CHECK_TIMEOUT_MS });
    if (isRefusal(status)) return { kind: 'refused', problem: describeRefusal(langfuse, status) };
    if (status === 200 && project) return { kind: 'accepted', project };
    return { kind: 'no Langfuse', problem: `${langfuse.baseUrl.host} answers (${status}), but it is not Langfuse` };
  } catch (error) {
    return { kind: 'unreachable', problem: (error as Error).message };
  }
}
