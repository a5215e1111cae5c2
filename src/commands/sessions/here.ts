import { realpathSync } from 'node:fs';
import { ranIn } from '../../cli/session-selection.js';
import { findRepositoryFolder } from '../../git/repository.js';
import { attempt } from '../../shared/attempt.js';
import { memoize } from '../../shared/memoize.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';

/** Returns a function that says whether a session ran in a folder, or anywhere else in its repository, worktrees included. */
export function ranInRepository(folder: string): (session: SessionOverview) => boolean {
  const repository = findRepositoryFolder(folder);
  const isInFolder = ranIn(folder);
  if (repository === undefined) return isInFolder;
  const isInRepository = memoize(
    (each: string) => findRepositoryFolder(attempt(() => realpathSync(each)) ?? each) === repository,
  );
  return (session) => isInFolder(session) || session.folders.some(isInRepository);
}
