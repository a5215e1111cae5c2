import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../shared/attempt.js';
import type { Entry } from './entry.js';
import { isMutedNow } from './runs.js';
import { sessionFolder } from './session-folder.js';

/**
 * Saves what the launcher prints for Claude Code's status line, if the launcher has left the mark that the user has one. It prints
 * only letters, digits, commas and spaces.
 */
export function saveStatusLine(
  stateFolder: string,
  sessionId: string,
  readEntry: () => Partial<Entry> | undefined,
): void {
  if (!existsSync(join(stateFolder, 'cc-langfuse_statusline'))) return;
  // It is only shown, so nothing else fails because of it.
  attempt(() =>
    writeFileSync(join(sessionFolder(stateFolder, sessionId), 'status'), `${describe(readEntry())}\n`, { mode: 0o600 }),
  );
}

function describe({ mutes, turnCount = 0, pending }: Partial<Entry> = {}): string {
  const state = isMutedNow(mutes) ? 'muted' : 'traced';
  return `${state}, ${turnCount} ${turnCount === 1 ? 'turn' : 'turns'} sent${pending ? ', more pending' : ''}`;
}
