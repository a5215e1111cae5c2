import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { sessionFolder } from '../../state/session-folder.js';

// A session with an open run has an empty file in its folder. With tracing off, a hook only looks for that file.

function markPath(stateFolder: string, sessionId: string): string {
  return join(sessionFolder(stateFolder, sessionId), 'open');
}

export function hasOpenRun(stateFolder: string, sessionId: string): boolean {
  return existsSync(markPath(stateFolder, sessionId));
}

export function markRunOpen(stateFolder: string, sessionId: string): void {
  if (hasOpenRun(stateFolder, sessionId)) return;
  const path = markPath(stateFolder, sessionId);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, '', { mode: 0o600 });
}

export function markRunClosed(stateFolder: string, sessionId: string): void {
  rmSync(markPath(stateFolder, sessionId), { force: true });
}
