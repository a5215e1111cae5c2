import { homedir } from 'node:os';
import { join } from 'node:path';

export function claudeFolder(env: NodeJS.ProcessEnv): string {
  return env.CLAUDE_CONFIG_DIR || join(homedir(), '.claude');
}

/** Where the state and the log are, next to Claude Code's own files. */
export function stateFolder(env: NodeJS.ProcessEnv): string {
  return join(claudeFolder(env), 'state');
}
