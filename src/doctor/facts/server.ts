import { accessSync, constants } from 'node:fs';
import type { Langfuse } from '../../config.js';
import { otlpEndpoint } from '../../langfuse/endpoint.js';
import { askForHealth, type HealthAnswer } from '../../langfuse/health.js';
import { encodeRequest } from '../../langfuse/otlp.js';
import { Post, type Reply } from '../../langfuse/post.js';
import { askForProject, type ProjectAnswer } from '../../langfuse/project.js';
import { proxyFor } from '../../langfuse/proxy.js';

/** What a server says to three questions, asked at once. None of them brings it anything to keep. */
export interface ServerFacts {
  readonly langfuse: Langfuse;
  readonly health: Answer<HealthAnswer>;
  readonly project: Answer<ProjectAnswer>;
  /** To an export request without spans. */
  readonly export: Answer<Reply>;
  /** How far its clock is ahead of ours. */
  readonly clockAheadMs: number | undefined;
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

export async function serverFacts(langfuse: Langfuse): Promise<ServerFacts> {
  const [health, project, exported] = await Promise.all([
    answerOf(askForHealth(langfuse, DEADLINE_MS).then((answer) => ({ ...answer, at: Date.now() }))),
    answerOf(askForProject(langfuse, DEADLINE_MS)),
    answerOf(askToExportNothing(langfuse)),
  ]);
  const { clock, at = 0 } = health.kind === 'answer' ? health.answer : {};
  return { langfuse, health, project, export: exported, clockAheadMs: clock === undefined ? undefined : clock - at };
}

async function askToExportNothing(langfuse: Langfuse): Promise<Reply> {
  const post = new Post(otlpEndpoint(langfuse));
  try {
    return await post.send(encodeRequest([]), DEADLINE_MS);
  } finally {
    await post.close();
  }
}

async function answerOf<T>(asked: Promise<T>): Promise<Answer<T>> {
  try {
    return { kind: 'answer', answer: await asked };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { kind: 'none', code, message };
  }
}

const NETWORK_VARIABLES = /^(?:(?:https?|all|no)_proxy|NODE_EXTRA_CA_CERTS|NODE_TLS_REJECT_UNAUTHORIZED)$/i;

export function networkFacts(
  langfuse: Langfuse | undefined,
  shell: NodeJS.ProcessEnv,
  hookEnv: NodeJS.ProcessEnv,
): NetworkFacts {
  const path = hookEnv.NODE_EXTRA_CA_CERTS || undefined;
  return {
    proxy: langfuse ? proxyFor(langfuse.baseUrl) : '',
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
