import { type LangfuseServer, SECRET_KEY } from '../support/langfuse-server.js';
import { KEYS } from '../support/newcomer.js';
import { run } from '../support/program.js';
import type { ClaudeHome } from './claude-home.js';

/** Registers the built hook in a home, as a user would. */
export async function register(
  { home }: ClaudeHome,
  { url }: LangfuseServer,
  options: readonly string[] = [],
): Promise<void> {
  const install = ['install', '--yes', ...KEYS, '--base-url', url, ...options];
  const { exitCode, stderr } = await run(install, { HOME: home }, `${SECRET_KEY}\n`);
  if (exitCode !== 0) throw new Error(stderr);
}
