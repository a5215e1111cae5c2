import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LangfuseConfig } from '../config/settings.js';
import { replaceOwnFile } from '../shared/atomic-write.js';
import { attempt } from '../shared/attempt.js';
import { isRecord, parseJson } from '../shared/json.js';
import { langfuseId, langfuseUrl } from './endpoint.js';
import { checkKeys } from './server.js';

/** The file can be removed at any time: it only saves requests. */
export function projectsFile(stateFolder: string): string {
  return join(stateFolder, 'cc-langfuse_projects.json');
}

/** Returns the URL of a destination's project, if it has been asked for before. No keys are needed for that. */
export function readProjectPage(stateFolder: string, destination: string): string | undefined {
  const page = readPages(stateFolder)[destination];
  return typeof page === 'string' && /^https?:\/\//.test(page) ? page : undefined;
}

/** Returns the URL of the project that the keys belong to. It never changes, so the server is asked once. */
export async function findProjectPage(langfuse: LangfuseConfig, stateFolder: string): Promise<string> {
  const destination = langfuseId(langfuse);
  const known = readProjectPage(stateFolder, destination);
  if (known !== undefined) return known;
  const check = await checkKeys(langfuse);
  if (check.kind !== 'accepted') throw new Error(check.problem);
  return saveProject(langfuse, check.project.id, stateFolder);
}

/** Saves the project that the keys belong to, and returns its URL. If it cannot be written, the server is asked again. */
export function saveProject(langfuse: LangfuseConfig, projectId: string, stateFolder: string): string {
  const destination = langfuseId(langfuse);
  const page = projectUrl(langfuse, projectId);
  const pages = readPages(stateFolder);
  if (pages[destination] === page) return page;
  attempt(() => {
    mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
    replaceOwnFile(projectsFile(stateFolder), JSON.stringify({ ...pages, [destination]: page }));
  });
  return page;
}

export function projectUrl(langfuse: LangfuseConfig, projectId: string): string {
  return langfuseUrl(langfuse, `/project/${encodeURIComponent(projectId)}`).href;
}

/** The page that lists a project's sessions; if the project is unknown, the server's home page. */
export function sessionsPage(langfuse: LangfuseConfig, project: { readonly id: string } | undefined): string {
  return project ? `${projectUrl(langfuse, project.id)}/sessions` : langfuseUrl(langfuse, '').href;
}

export function sessionUrl(projectPage: string, sessionId: string): string {
  return `${projectPage}/sessions/${encodeURIComponent(sessionId)}`;
}

/** A turn in a caller's trace, which may hold several, is selected there. */
export function turnUrl(projectPage: string, traceId: string, observationId: string | undefined): string {
  return `${projectPage}/traces/${traceId}${observationId === undefined ? '' : `?observation=${observationId}`}`;
}

function readPages(stateFolder: string): { readonly [destination: string]: unknown } {
  const pages = parseJson(attempt(() => readFileSync(projectsFile(stateFolder), 'utf8')) ?? '');
  return isRecord(pages) ? pages : {};
}
