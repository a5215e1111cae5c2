import { homedir } from 'node:os';
import { join } from 'node:path';
import { type GitConfig, readGitConfig } from './config.js';

/** The environment variables that a git identity depends on. */
export const IDENTITY_VARIABLES = ['GIT_AUTHOR_EMAIL', 'GIT_CONFIG_GLOBAL', 'XDG_CONFIG_HOME'] as const;

export type GitIdentity = ReturnType<typeof readGitIdentity>;

/** Reads where git finds a user's e-mail address, apart from the repository's own configuration. */
export function readGitIdentity(env: NodeJS.ProcessEnv) {
  const home = env.HOME || homedir();
  const own = [join(home, '.gitconfig'), join(env.XDG_CONFIG_HOME || join(home, '.config'), 'git', 'config')];
  // The strongest first.
  const configs = env.GIT_CONFIG_GLOBAL === undefined ? own : [env.GIT_CONFIG_GLOBAL];
  return { authorEmail: env.GIT_AUTHOR_EMAIL || undefined, configs };
}

/** Returns the e-mail address that git would write into a commit, without starting git. */
export function findEmail({ authorEmail, configs }: GitIdentity, repository?: GitConfig): string | undefined {
  const email = authorEmail || repository?.get('user.email');
  return email || configs.map((path) => readGitConfig(path).get('user.email')).find(Boolean);
}
