import { accessSync, constants } from 'node:fs';
import type { CollectorConfig, DestinationConfig, LangfuseConfig } from '../../../config/settings.js';
import { otlpEndpoint } from '../../../langfuse/endpoint.js';
import { fetchHealth, type HealthAnswer } from '../../../langfuse/health.js';
import { type Http, HttpClient, NoResponseError } from '../../../langfuse/http/client.js';
import { findProxy } from '../../../langfuse/http/proxy.lazy.js';
import { OtlpTransport } from '../../../langfuse/otlp/otlp-transport.js';
import { fetchProject, type ProjectAnswer } from '../../../langfuse/project.js';
import type { Reply, Transport } from '../../../langfuse/transport.js';

/** What a server says to four questions, asked at once. None of them brings it anything to keep. */
export interface ServerFacts {
  readonly langfuse: LangfuseConfig;
  readonly health: Answer<HealthAnswer>;
  readonly project: Answer<ProjectAnswer>;
  /** To a request without observations, at either door. */
  readonly otlp: Answer<Reply>;
  readonly ingestion: Answer<Reply>;
  /** How far its clock is ahead of ours. */
  readonly clockAheadMs: number | undefined;
}

export interface CollectorFacts {
  readonly collector: CollectorConfig;
  /** To a request without observations. */
  readonly otlp: Answer<Reply>;
}

export type Answer<T> = { readonly kind: 'answer'; readonly answer: T } | Silence;

/** Why there was no answer: by the system's, or TLS's, own word, where it has one. */
export interface Silence {
  readonly kind: 'none';
  readonly code: string | undefined;
  readonly message: string;
}

/** How this process reaches servers, which hooks may do otherwise. */
export interface NetworkFacts {
  /** The proxy for the server; empty where none is. */
  readonly proxy: string;
  /** The variables that hooks have from the settings of Claude Code, and this process has not, or otherwise. */
  readonly onlyForHooks: readonly string[];
  readonly certificates: { readonly path: string; readonly isReadable: boolean } | undefined;
}

const DEADLINE_MS = 5_000;

export async function serverFacts(langfuse: LangfuseConfig): Promise<ServerFacts> {
  const [health, project, otlp, ingestion] = await Promise.all([
    answerOf(fetchHealth(langfuse, DEADLINE_MS).then((answer) => ({ ...answer, at: Date.now() }))),
    answerOf(fetchProject(langfuse, DEADLINE_MS)),
    answerOf(takeNothing((http) => new OtlpTransport(langfuse, http))),
    answerOf(
      import('../../../langfuse/ingestion/ingestion-transport.lazy.js').then(({ IngestionTransport }) =>
        takeNothing((http) => new IngestionTransport(langfuse, http)),
      ),
    ),
  ]);
  const { clock, at = 0 } = health.kind === 'answer' ? health.answer : {};
  return { langfuse, health, project, otlp, ingestion, clockAheadMs: clock === undefined ? undefined : clock - at };
}

export async function collectorFacts(collector: CollectorConfig): Promise<CollectorFacts> {
  return { collector, otlp: await answerOf(takeNothing((http) => new OtlpTransport(collector, http))) };
}

async function takeNothing(createTransport: (http: Http) => Transport): Promise<Reply> {
  const client = new HttpClient();
  try {
    return await createTransport(client).post([], { deadline: Date.now() + DEADLINE_MS });
  } finally {
    await client.close();
  }
}

async function answerOf<T>(asked: Promise<T>): Promise<Answer<T>> {
  try {
    return { kind: 'answer', answer: await asked };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { kind: 'none', code, message: error instanceof NoResponseError ? error.reason : message };
  }
}

const NETWORK_VARIABLES = /^(?:(?:https?|all|no)_proxy|NODE_EXTRA_CA_CERTS|NODE_TLS_REJECT_UNAUTHORIZED)$/i;

export function networkFacts(
  receiver: DestinationConfig | undefined,
  shell: NodeJS.ProcessEnv,
  hookEnv: NodeJS.ProcessEnv,
): NetworkFacts {
  const path = hookEnv.NODE_EXTRA_CA_CERTS || undefined;
  return {
    proxy: receiver ? findProxy(otlpEndpoint(receiver).url) : '',
    onlyForHooks: Object.keys(hookEnv).filter(
      (variable) => NETWORK_VARIABLES.test(variable) && hookEnv[variable] !== (shell[variable] ?? ''),
    ),
    certificates: path === undefined ? undefined : { path, isReadable: isReadable(path) },
  };
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
