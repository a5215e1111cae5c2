import { existsSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const TRIES = 100;

/** Removes a folder in which processes may still be writing. The retries of rmSync itself miss files that are new. */
export async function removeFolder(folder: string): Promise<void> {
  for (let tries = 0; existsSync(folder); tries += 1) {
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch (error) {
      if (tries === TRIES) throw error;
      await sleep(50);
    }
  }
}
