import type { LangfuseConfig } from '../config/settings.js';
import { isRecord, parseJson } from '../shared/json.js';
import type { Limits } from './destination.js';
import { apiRequest, describeRefusal, langfuseOtlp, langfuseUrl } from './endpoint.js';
import { isRefusal, requestOnce } from './http/client.js';
import { postSpans } from './otlp/otlp-transport.js';
import { isAccepted } from './transport.js';

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

interface Project {
  readonly id: string;
  readonly name: string;
  /** The name of the organization that it belongs to. */
  readonly organization: string | undefined;
}

function parseProject(answer: unknown): Project | undefined {
  const [first] = isRecord(answer) && Array.isArray(answer.data) ? answer.data : [];
  if (!isRecord(first) || typeof first.id !== 'string') return undefined;
  const { name, organization } = first;
  return {
    id: first.id,
    name: typeof name === 'string' ? name : '',
    organization: isRecord(organization) && typeof organization.name === 'string' ? organization.name : undefined,
  };
}

/** The result of trying the keys; `problem` is a sentence for the user. */
export type KeyCheck =
  | { readonly kind: 'accepted'; readonly project: NonNullable<ProjectAnswer['project']> }
  | { readonly kind: 'only writes'; readonly problem: string }
  | { readonly kind: 'refused' | 'unreachable' | 'no Langfuse'; readonly problem: string };

const KEY_CHECK_TIMEOUT_MS = 10_000;

/** Tries the keys without storing anything on the server. */
export async function checkKeys(langfuse: LangfuseConfig): Promise<KeyCheck> {
  const limits = { deadline: Date.now() + KEY_CHECK_TIMEOUT_MS };
  try {
    const { status, project } = await fetchProject(langfuse, limits);
    if (isRefusal(status) && (await mayWrite(langfuse, limits)))
      return { kind: 'only writes', problem: describeOnlyWriting(langfuse, status) };
    if (isRefusal(status)) return { kind: 'refused', problem: describeRefusal(langfuse, status) };
    if (status === 200 && project) return { kind: 'accepted', project };
    return { kind: 'no Langfuse', problem: `${langfuse.baseUrl.host} answers (${status}), but it is not Langfuse` };
  } catch (error) {
    return { kind: 'unreachable', problem: (error as Error).message };
  }
}

/** Whether keys that may not read may write. Langfuse has such keys; an empty request tells. */
export async function mayWrite(langfuse: LangfuseConfig, limits: Limits): Promise<boolean> {
  const reply = await postSpans([], langfuseOtlp(langfuse), { request: requestOnce }, limits).catch(() => undefined);
  return reply !== undefined && isAccepted(reply);
}

export function describeOnlyWriting({ baseUrl }: LangfuseConfig, status: number): string {
  return `these keys may write to the project at ${baseUrl.host}, but not read from it (${status}): they are for ingestion only`;
}
