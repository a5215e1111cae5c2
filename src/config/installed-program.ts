import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { attempt } from '../shared/attempt.js';
import { claudeFolder } from './claude-folder.js';

/**
 * Where `install` puts the program: `0.1.0/`, one folder for each version, and `current`, a link to the one in force. Hooks name
 * the link, so that an upgrade need not change the settings. A folder never changes once it is there: what was started from it
 * finds the modules that it loads later.
 */
export function programsFolder(env: NodeJS.ProcessEnv): string {
  return resolve(claudeFolder(env), 'cc-langfuse');
}

export function programInForce(env: NodeJS.ProcessEnv): string {
  return join(programsFolder(env), 'current');
}

/** The version of a folder, without the number that tells builds of one version apart; undefined if it is no such folder. */
export function parseVersion(folder: string): string | undefined {
  return /^(\d+\.\d+\.\d+(?:-[\w.-]+)?)(?:\+\d+)?$/.exec(basename(folder))?.[1];
}

/** The version that the hooks start; undefined if there is none, or the link points to a build elsewhere. */
export function findVersionInForce(env: NodeJS.ProcessEnv): string | undefined {
  const folder = attempt(() => realpathSync(programInForce(env)));
  return folder === undefined ? undefined : findInstalledVersion(folder, env);
}

/** The version of an installed program, from the real path of its folder; undefined if it is not an installed one. */
export function findInstalledVersion(folder: string, env: NodeJS.ProcessEnv): string | undefined {
  return dirname(folder) === attempt(() => realpathSync(programsFolder(env))) ? parseVersion(folder) : undefined;
}
