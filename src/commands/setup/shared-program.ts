import { realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { attempt } from '../../shared/attempt.js';

/** Whose folders these are, only they and root can rely on. */
const HOMES = /^(?:\/root|\/home\/[^/]+|\/Users\/(?!Shared\/)[^/]+|[A-Za-z]:\\Users\\(?!Public\\)[^\\]+)[/\\]/;
const READABLE = 0o004;
const EXECUTABLE = 0o001;
const WRITABLE = 0o002;
const STICKY = 0o1000;

/**
 * Says why a program is not one that every user of this machine can run, and nobody but an administrator can replace; undefined if
 * it is. Links are followed, and they count, too.
 */
export function findSharingProblem(path: string): string | undefined {
  if (HOMES.test(path)) return `${path} is in a home directory`;
  const real = attempt(() => realpathSync(path));
  if (real === undefined) return `${path} does not exist`;
  if (HOMES.test(real)) return `${real} is in a home directory`;
  for (const each of new Set([path, real])) {
    const problem = process.platform === 'win32' ? undefined : findModeProblem(each);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function findModeProblem(path: string): string | undefined {
  for (let part = path; ; part = dirname(part)) {
    const status = statSync(part);
    const { mode } = status;
    const needed = status.isDirectory() ? EXECUTABLE : READABLE;
    if ((mode & needed) === 0) return `not every user can read ${part}`;
    if ((mode & WRITABLE) !== 0 && (mode & STICKY) === 0) return `every user can change ${part}`;
    if (dirname(part) === part) return undefined;
  }
}
