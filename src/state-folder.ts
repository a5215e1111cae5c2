import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where the state and the log lie: beside Claude Code's own files. */
export function stateFolder(env: NodeJS.ProcessEnv): string {
  return join(env.CLAUDE_CONFIG_DIR || join(homedir(), '.claude'), 'state');
}

/** What a session's own file in it is called, whatever its id holds. */
export function fileNameOf(sessionId: string): string {
  return sessionId.replace(/[^\w-]/g, '_');
}
