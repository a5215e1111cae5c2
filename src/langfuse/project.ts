import type { LangfuseConfig } from '../config/settings.js';
import { isRecord, parseJson } from '../shared/json.js';
import { read } from './http/read.js';
import { authorization, langfuseUrl } from './receiver.js';

/** What a server says to the keys. */
export interface ProjectAnswer {
  readonly status: number;
  /** The project that they open. */
  readonly project: { readonly id: string; readonly name: string } | undefined;
}

/** Asks a server which project the keys open; throws where there is no answer. */
export async function askForProject(langfuse: LangfuseConfig, timeoutMs: number): Promise<ProjectAnswer> {
  const headers = { authorization: authorization(langfuse) };
  const { status, body } = await read(langfuseUrl(langfuse, '/api/public/projects'), headers, timeoutMs);
  return { status, project: projectIn(parseJson(body)) };
}

/** Where the sessions of a project are shown; without the project, where the server is. */
export function sessionsPage(langfuse: LangfuseConfig, project: ProjectAnswer['project']): string {
  return langfuseUrl(langfuse, project ? `/project/${encodeURIComponent(project.id)}/sessions` : '').href;
}

function projectIn(answer: unknown): ProjectAnswer['project'] {
  const [first] = isRecord(answer) && Array.isArray(answer.data) ? answer.data : [];
  if (!isRecord(first) || typeof first.id !== 'string') return undefined;
  return { id: first.id, name: typeof first.name === 'string' ? first.name : '' };
}
