import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../shared/attempt.js';
import type { Entry } from './entry.js';
import { sessionFileName } from './lock.js';
import { keepNewestFiles } from './newest-files.js';
import { isMutedNow } from './runs.js';

/**
 * Saves what the launcher prints for Claude Code's status line, if the user has it there: then the launcher has made the folder.
 * It prints a text of other characters than letters, digits, commas and spaces for nobody.
 */
export function saveStatusLine(stateFolder: string, sessionId: string, readEntry: () => Entry | undefined): void {
  const folder = join(stateFolder, 'cc-langfuse_status');
  if (!existsSync(folder)) return;
  // It is only shown, so nothing else fails because of it.
  attempt(() => {
    const path = join(folder, sessionFileName(sessionId));
    const isNew = !existsSync(path);
    writeFileSync(path, `${describe(readEntry())}\n`, { mode: 0o600 });
    if (isNew) keepNewestFiles(folder);
  });
}

function describe({ mutes, turnCount = 0, pending }: Partial<Entry> = {}): string {
  const state = isMutedNow(mutes) ? 'muted' : 'traced';
  return `${state}, ${turnCount} ${turnCount === 1 ? 'turn' : 'turns'} sent${pending ? ', more pending' : ''}`;
}
