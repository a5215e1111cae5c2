import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Who else gets to see a file that holds keys: a line each, with what to do. */
export function exposure(path: string): string[] {
  const isReadByOthers = process.platform !== 'win32' && (statSync(path).mode & 0o077) !== 0;
  return [
    ...(isReadByOthers ? [`${path} holds the secret key, and others on this machine can read it: chmod 600 it`] : []),
    ...(isCommittable(path)
      ? [`${path} holds the secret key, and git does not ignore it: add .claude/${basename(path)}* to .gitignore`]
      : []),
  ];
}

/** Claude Code has git ignore the local settings that it makes itself, not those that another program makes. */
function isCommittable(path: string): boolean {
  const { status } = spawnSync('git', ['-C', dirname(path), 'check-ignore', '-q', path], { stdio: 'ignore' });
  // 1: it is in a working tree, and not ignored.
  return status === 1;
}
