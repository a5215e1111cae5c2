import { spawnSync } from 'node:child_process';
import { realpathSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { quoteForShell } from '../../cli/terminal.js';

/** That others get to see a file that holds keys, and what to do. */
export interface Exposure {
  readonly what: string;
  readonly remedy: string;
}

export function exposure(path: string): Exposure[] {
  const isReadByOthers = process.platform !== 'win32' && (statSync(path).mode & 0o077) !== 0;
  // Whoever keeps settings in a repository has a link to them.
  const file = realpathSync(path);
  const holder = `${path} holds the secret key`;
  return [
    ...(isReadByOthers
      ? [{ what: `${holder}, and others on this machine can read it`, remedy: `chmod 600 ${quoteForShell(path)}` }]
      : []),
    ...(isCommittable(file)
      ? [
          {
            what: `${holder}, and git does not ignore it`,
            remedy: `add ${basename(file)}* to ${dirname(file)}/.gitignore`,
          },
        ]
      : []),
  ];
}

/** Claude Code has git ignore the local settings that it makes itself, not those that another program makes. */
function isCommittable(path: string): boolean {
  const { status } = spawnSync('git', ['-C', dirname(path), 'check-ignore', '-q', path], { stdio: 'ignore' });
  // 1: it is in a working tree, and not ignored.
  return status === 1;
}
