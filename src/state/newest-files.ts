import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

const KEPT = 100;

/** Removes the files of sessions that ended long ago from a folder with a file for each session. */
export function keepNewestFiles(folder: string): void {
  const files = readdirSync(folder).map((name) => ({ name, changedAt: statSync(join(folder, name)).mtimeMs }));
  const newestFirst = files.toSorted((a, b) => b.changedAt - a.changedAt);
  for (const { name } of newestFirst.slice(KEPT)) rmSync(join(folder, name), { force: true });
}
