import { join } from 'node:path';
import type { LangfuseConfig } from '../config/settings.js';
import { saveOwnFile } from '../shared/atomic-write.js';
import { attempt } from '../shared/attempt.js';
import { isRecord } from '../shared/json.js';
import { readJsonFile } from '../shared/read-file.js';
import { langfuseId, langfuseUrl } from './endpoint.js';
import { checkKeys } from './server.js';
import type { Target } from './target.js';

/** The file can be removed at any time: it only saves requests. */
export function projectsFile(stateFolder: string): string {
  return join(stateFolder, 'cc-langfuse_projects.json');
}

/** Returns the URL of a destination's project, if it has been asked for before. No keys are needed for that. */
export function readProjectPage(stateFolder: string, destination: string): string | undefined {
  const page = readPages(stateFolder)[destination];
  return typeof page === 'string' && /^https?:\/\//.test(page) ? page : undefined;
}

/** Returns the URL of a destination's project, from the settings or from an earlier answer; undefined if neither has it. */
export function findKnownPage({ id, langfuse }: Target, stateFolder: string): string | undefined {
  const { projectId } = langfuse ?? {};
  return langfuse && projectId !== undefined ? projectUrl(langfuse, projectId) : readProjectPage(stateFolder, id);
}

/** Asks for the project that the keys belong to, and returns its URL. It never changes, so it is saved. */
export async function askForProjectPage(langfuse: LangfuseConfig, stateFolder: string): Promise<string> {
  const check = await checkKeys(langfuse);
  if ('project' in check) return saveProject(langfuse, check.project.id, stateFolder);
  throw new Error(check.kind === 'only writes' ? `${check.problem}; ${NAME_PROJECT}` : check.problem);
}

const NAME_PROJECT = 'name the project once with --project-id (the id in the address of its page)';

/** Saves the project that the keys belong to, and returns its URL. If it cannot be written, the server is asked again. */
export function saveProject(langfuse: LangfuseConfig, projectId: string, stateFolder: string): string {
  const destination = langfuseId(langfuse);
  const page = projectUrl(langfuse, projectId);
  const pages = readPages(stateFolder);
  if (pages[destination] === page) return page;
  attempt(() => saveOwnFile(projectsFile(stateFolder), JSON.stringify({ ...pages, [destination]: page })));
  return page;
}

export function projectUrl(langfuse: LangfuseConfig, projectId: string): string {
  return langfuseUrl(langfuse, `/project/${encodeURIComponent(projectId)}`).href;
}

/** The page that lists a project's sessions; if the project's page is unknown, the server's home page. */
export function sessionsPage(langfuse: LangfuseConfig, projectPage: string | undefined): string {
  return projectPage === undefined ? langfuseUrl(langfuse, '').href : `${projectPage}/sessions`;
}

export function sessionUrl(projectPage: string, sessionId: string): string {
  return `${projectPage}/sessions/${encodeURIComponent(sessionId)}`;
}

/** A turn in a caller's trace, which may hold several, is selected there. */
export function turnUrl(projectPage: string, traceId: string, observationId: string | undefined): string {
  return `${projectPage}/traces/${traceId}${observationId === undefined ? '' : `?observation=${observationId}`}`;
}

function readPages(stateFolder: string): { readonly [destination: string]: unknown } {
  const pages = readJsonFile(projectsFile(stateFolder));
  return isRecord(pages) ? pages : {};
}
