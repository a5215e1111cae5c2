import { statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { type GitConfig, readGitConfig, readSmallFile } from './config.js';

/** Returns the configuration of the repository that a folder belongs to; undefined if it is in none, or no longer exists. */
export function readRepositoryConfig(folder: string): GitConfig | undefined {
  const gitFolder = statIfExists(folder)?.isDirectory() ? findRepositoryFolder(folder) : undefined;
  return gitFolder === undefined ? undefined : readGitConfig(join(gitFolder, 'config'));
}

/** Returns git's own folder of the repository that a folder belongs to, or belonged to: the same for all its worktrees. */
export function findRepositoryFolder(folder: string): string | undefined {
  if (!isAbsolute(folder)) return undefined;
  for (let place = folder; ; place = dirname(place)) {
    const path = join(place, '.git');
    const status = statIfExists(path);
    const gitFolder = status?.isFile() ? readGitFolderPath(path) : path;
    if (status && gitFolder !== undefined) return findCommonFolder(gitFolder);
    if (dirname(place) === place) return undefined;
  }
}

/** In a worktree or a submodule, `.git` is a file that contains the path of the folder. */
function readGitFolderPath(path: string): string | undefined {
  const [, folder] = /^gitdir: (.+?)\s*$/m.exec(readSmallFile(path) ?? '') ?? [];
  return folder === undefined ? undefined : resolve(dirname(path), folder);
}

/** A worktree's folder refers to the one that it shares with the other worktrees, which has the configuration. */
function findCommonFolder(gitFolder: string): string {
  const shared = readSmallFile(join(gitFolder, 'commondir'))?.trim();
  return shared ? resolve(gitFolder, shared) : gitFolder;
}

function statIfExists(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** The name of the repository that the remote `origin` is. */
export function originName(config: GitConfig | undefined): string | undefined {
  const origin = config?.get('remote.origin.url');
  return origin === undefined ? undefined : repositoryName(origin);
}

/**
 * Returns a remote's URL as `host/owner/name`: the same for every protocol, and without the credentials that some URLs
 * contain. Undefined if it names no host: a local path means nothing to others.
 */
function repositoryName(url: string): string | undefined {
  const [host, path = ''] = url.includes('://') ? splitUrl(url) : splitScpAddress(url);
  const name = path.replace(/^\/+|\/+$/g, '').replace(/\.git$/, '');
  return host && name ? `${host.toLowerCase()}/${name}` : undefined;
}

function splitUrl(url: string): string[] {
  if (!URL.canParse(url)) return [];
  const { hostname, pathname } = new URL(url);
  return [hostname, pathname];
}

/** Splits `git@host:owner/name`. A single letter before the colon is a Windows drive. */
function splitScpAddress(url: string): string[] {
  return /^(?:[^/@]*@)?([\w.-]{2,}):(.+)$/.exec(url)?.slice(1) ?? [];
}
