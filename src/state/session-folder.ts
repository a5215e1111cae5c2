import { join } from 'node:path';

// Apart from the store, so that a process that needs only a path does not load it.

export function sessionsFolder(stateFolder: string): string {
  return join(stateFolder, 'cc-langfuse_sessions');
}

export function sessionFolder(stateFolder: string, sessionId: string): string {
  return join(sessionsFolder(stateFolder), sessionFileName(sessionId));
}

/** Returns a file name for a session, whatever characters its id contains. */
export function sessionFileName(sessionId: string): string {
  return sessionId.replace(/[^\w-]/g, '_');
}
