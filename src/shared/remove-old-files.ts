import { lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from './attempt.js';

/** Removes what begins with this name in a folder and has not changed for so long. Another process may do so at the same time. */
export function removeOldFiles(folder: string, start: string, ageMs: number): void {
  const names = readdirSync(folder).filter((name) => name.startsWith(start));
  for (const path of names.map((name) => join(folder, name))) {
    const changedAt = attempt(() => lstatSync(path).mtimeMs) ?? Date.now();
    if (Date.now() - changedAt > ageMs) rmSync(path, { force: true });
  }
}
