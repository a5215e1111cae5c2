import { join } from 'node:path';
import { claudeFolder } from './claude-folder.js';

/** Where the state and the log lie: beside Claude Code's own files. */
export function stateFolder(env: NodeJS.ProcessEnv): string {
  return join(claudeFolder(env), 'state');
}

/** What a session's own file in it is called, whatever its id holds. */
export function sessionFileName(sessionId: string): string {
  return sessionId.replace(/[^\w-]/g, '_');
}
