import { join } from 'node:path';
import { saveOwnFile } from '../shared/atomic-write.js';
import { hashText } from '../shared/hash.js';
import { isRecord } from '../shared/json.js';
import { readJsonFile } from '../shared/read-file.js';
import { givenSettings } from './settings.js';
import { SETTINGS } from './settings-table.js';

const FILE_NAME = 'cc-langfuse_installed.json';

/**
 * Whether the user has installed exactly this destination into a settings file. Commands then take it from the file, although it
 * is a project's. If anyone else changes it there, it no longer counts.
 */
export function isInstalledDestination(stateFolder: string, path: string, env: NodeJS.ProcessEnv): boolean {
  return readInstalled(stateFolder)[path] === hashDestination(env);
}

export function saveInstalledDestination(stateFolder: string, path: string, env: NodeJS.ProcessEnv): void {
  const file = join(stateFolder, FILE_NAME);
  saveOwnFile(file, JSON.stringify({ ...readInstalled(stateFolder), [path]: hashDestination(env) }));
}

/** The project settings that the user has installed a destination into. */
export function listInstalledPaths(stateFolder: string): string[] {
  return Object.keys(readInstalled(stateFolder));
}

function readInstalled(stateFolder: string): Record<string, unknown> {
  const installed = readJsonFile(join(stateFolder, FILE_NAME));
  return isRecord(installed) ? installed : {};
}

function hashDestination(env: NodeJS.ProcessEnv): string {
  const values = givenSettings(env)
    .filter(({ name }) => ['destination', 'secret'].includes(SETTINGS[name].kind))
    .map(({ name, value }) => [name, value]);
  return hashText(JSON.stringify(values));
}
