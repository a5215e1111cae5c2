import { homedir } from 'node:os';
import { join } from 'node:path';
import { type GitConfig, readGitConfig } from './config.js';

/** Where git takes a user's e-mail address from, beside the repository. */
export interface GitIdentity {
  readonly authorEmail: string | undefined;
  /** The user's own configuration files, the one that wins first. */
  readonly configs: readonly string[];
}

/** The variables that a git identity depends on. */
export const IDENTITY_VARIABLES = ['GIT_AUTHOR_EMAIL', 'GIT_CONFIG_GLOBAL', 'XDG_CONFIG_HOME'] as const;

export function readGitIdentity(env: NodeJS.ProcessEnv): GitIdentity {
  const home = env.HOME || homedir();
  const own = [join(home, '.gitconfig'), join(env.XDG_CONFIG_HOME || join(home, '.config'), 'git', 'config')];
  const configs = env.GIT_CONFIG_GLOBAL === undefined ? own : [env.GIT_CONFIG_GLOBAL];
  return { authorEmail: env.GIT_AUTHOR_EMAIL || undefined, configs };
}

/** The e-mail address that git would write into a commit; git itself is not started. */
export function findEmail(
  { authorEmail, configs }: GitIdentity,
  repository: GitConfig | undefined,
): string | undefined {
  if (authorEmail !== undefined) return authorEmail;
  const inRepository = repository?.get('user.email');
  if (inRepository) return inRepository;
  for (const path of configs) {
    const email = readGitConfig(path).get('user.email');
    if (email) return email;
  }
  return undefined;
}
