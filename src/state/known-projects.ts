import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '../shared/atomic-write.js';
import { attempt } from '../shared/attempt.js';
import { isRecord, parseJson } from '../shared/json.js';

/** The file can be removed at any time: it only saves requests. */
export function projectsFile(folder: string): string {
  return join(folder, 'cc-langfuse_projects.json');
}

/** The id of the Langfuse project that a destination's keys belong to, which links need. Undefined if no command has asked for it yet. */
export function readProjectId(folder: string, destination: string): string | undefined {
  const id = readProjects(folder)[destination];
  return typeof id === 'string' ? id : undefined;
}

/** Without it only links are missing, so a failure changes nothing. */
export function saveProjectId(folder: string, destination: string, id: string): void {
  const projects = readProjects(folder);
  if (projects[destination] === id) return;
  attempt(() => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileAtomically(projectsFile(folder), JSON.stringify({ ...projects, [destination]: id }), 0o600);
  });
}

function readProjects(folder: string): Record<string, unknown> {
  const projects = parseJson(attempt(() => readFileSync(projectsFile(folder), 'utf8')) ?? '');
  return isRecord(projects) ? projects : {};
}
