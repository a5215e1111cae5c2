import { statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { type GitConfig, readGitConfig, readSmallFile } from './config.js';

/** The configuration of the repository that a folder lies in; none where it lies in none, or is gone. */
export function readRepositoryConfig(folder: string): GitConfig | undefined {
  if (!isAbsolute(folder) || !statusOf(folder)?.isDirectory()) return undefined;
  for (let place = folder; ; place = dirname(place)) {
    const path = join(place, '.git');
    const status = statusOf(path);
    const gitFolder = status?.isFile() ? folderNamedIn(path) : path;
    if (status && gitFolder !== undefined) return readGitConfig(join(commonFolder(gitFolder), 'config'));
    if (dirname(place) === place) return undefined;
  }
}

/** In a worktree, and in a submodule, `.git` is a file that says where the folder lies. */
function folderNamedIn(path: string): string | undefined {
  const [, folder] = /^gitdir: (.+?)\s*$/m.exec(readSmallFile(path) ?? '') ?? [];
  return folder === undefined ? undefined : resolve(dirname(path), folder);
}

/** A worktree's folder names the one that it shares with the others. */
function commonFolder(gitFolder: string): string {
  const shared = readSmallFile(join(gitFolder, 'commondir'))?.trim();
  return shared ? resolve(gitFolder, shared) : gitFolder;
}

function statusOf(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
