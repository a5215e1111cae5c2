import type { LangfuseConfig } from '../config/settings.js';
import { isRecord, parseJson } from '../shared/json.js';
import type { Limits } from './destination.js';
import { apiRequest, CORRECT_URL, describeRefusal, langfuseOtlp, langfuseUrl } from './endpoint.js';
import { isRefusal, requestOnce } from './http/client.js';
import { postSpans } from './otlp/otlp-transport.js';
import { isAccepted, type Reply } from './transport.js';
import { quote, type Refusal, readWords, toLine } from './words.js';

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
  const words = isRefusal(status) ? readWords(body, request.headers) : undefined;
  return { status, words, project: parseProject(parseJson(body)) };
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
    name: typeof name === 'string' ? toLine(name) : '',
    organization:
      isRecord(organization) && typeof organization.name === 'string' ? toLine(organization.name) : undefined,
  };
}

type KnownProject = NonNullable<ProjectAnswer['project']>;

/** The result of trying the keys; `problem` is a sentence for the user, and `status` how the server has refused them. */
export type KeyCheck =
  | { readonly kind: 'accepted'; readonly project: KnownProject }
  | { readonly kind: 'only writes'; readonly problem: string }
  | { readonly kind: 'only reads'; readonly status: number; readonly project: KnownProject; readonly problem: string }
  | { readonly kind: 'refused'; readonly status: number; readonly problem: string }
  | { readonly kind: 'unreachable' | 'no Langfuse'; readonly problem: string };

const KEY_CHECK_TIMEOUT_MS = 10_000;

/** Tries the keys, by reading and by writing, without storing anything on the server. */
export async function checkKeys(langfuse: LangfuseConfig, { triesWriting = true } = {}): Promise<KeyCheck> {
  const limits = { deadline: Date.now() + KEY_CHECK_TIMEOUT_MS };
  try {
    const read = await fetchProject(langfuse, limits);
    const { status, project } = read;
    if (!isRefusal(status) && (status !== 200 || !project))
      return { kind: 'no Langfuse', problem: describeNoLangfuse(langfuse, status) };
    // Keys that are refused to read can be for ingestion only.
    const write = triesWriting || !project ? await tryWriting(langfuse, limits) : undefined;
    const refusal = write && isRefusal(write.status) ? write : undefined;
    if (project && refusal)
      return { kind: 'only reads', status: refusal.status, project, problem: describeOnlyReading(project, refusal) };
    if (project) return { kind: 'accepted', project };
    if (write && isAccepted(write)) return { kind: 'only writes', problem: describeOnlyWriting(status) };
    return { kind: 'refused', status, problem: describeRefusal(langfuse, refusal ?? read) };
  } catch (error) {
    return { kind: 'unreachable', problem: (error as Error).message };
  }
}

function describeNoLangfuse({ baseUrl }: LangfuseConfig, status: number): string {
  return `${baseUrl.host} answers (${status}), but it is not Langfuse; ${CORRECT_URL}`;
}

/** Sends a request without observations, which tells whether the keys may write. Undefined if there is no answer. */
function tryWriting(langfuse: LangfuseConfig, limits: Limits): Promise<Reply | undefined> {
  return postSpans([], langfuseOtlp(langfuse), { request: requestOnce }, limits).catch(() => undefined);
}

/** What keys are called that may write, but not read. Langfuse has such keys since October 2026. */
export const INGESTION_ONLY = 'for ingestion only: they write, and read nothing';

function describeOnlyWriting(status: number): string {
  return `these keys are ${INGESTION_ONLY} (${status})`;
}

export function describeOnlyReading({ name }: KnownProject, { status, words }: Refusal): string {
  return `these keys read project "${name}", but may not write to it (${status})${quote(words)}`;
}

/** What a command needs that reads from the server: which keys, and how it is started. */
interface Need {
  readonly keys: 'keys that may read (Viewer or full access)' | 'keys with full access';
  readonly command: string;
}

/** Says which keys a command needs, and how to give it some. */
export function describeNeed({ keys, command }: Need, problem: string): string {
  return `${problem}; give this command ${keys}: LANGFUSE_PUBLIC_KEY=… LANGFUSE_SECRET_KEY=… ${command}`;
}

/** Says why the server does not let a command read, and what the command needs. */
export async function explainRefusedReading(refusal: Refusal, langfuse: LangfuseConfig, need: Need): Promise<string> {
  const write = await tryWriting(langfuse, { deadline: Date.now() + KEY_CHECK_TIMEOUT_MS });
  return write && isAccepted(write)
    ? describeNeed(need, describeOnlyWriting(refusal.status))
    : describeRefusal(langfuse, refusal);
}
