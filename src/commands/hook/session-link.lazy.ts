import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DestinationConfig } from '../../config/settings.js';
import { findProjectPage, sessionUrl } from '../../langfuse/project-page.js';
import { sessionFileName } from '../../state/lock.js';
import { keepNewestFiles } from '../../state/newest-files.js';

/**
 * Leaves the address of the session's page for the launcher, which prints it at the next event without waiting for anything. Then
 * it empties the file, so that each session has it once.
 */
export async function saveLink(stateFolder: string, sessionId: string, config: DestinationConfig): Promise<void> {
  const folder = join(stateFolder, 'cc-langfuse_links');
  const path = join(folder, sessionFileName(sessionId));
  if (config.kind !== 'langfuse' || existsSync(path)) return;
  const page = await findProjectPage(config, stateFolder).catch(() => undefined);
  // A later worker tries again.
  if (page === undefined) return;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(path, `${sessionUrl(page, sessionId)}\n`, { mode: 0o600 });
  keepNewestFiles(folder);
}
