import { readFileSync, statSync } from 'node:fs';
import { comparableName } from './node-start.js';

// Every hook loads this before anything else, so it imports next to nothing.

/**
 * Returns the names of the variables that the project settings of these folders set. In the home directory these are the user's own,
 * which folder-settings.ts distinguishes.
 */
export function readProjectNames(folders: readonly string[]): ReadonlySet<string> {
  const files = folders.flatMap((folder) =>
    ['settings.json', 'settings.local.json'].map((file) => `${folder}/.claude/${file}`),
  );
  return new Set([...new Set(files)].flatMap(readNames).map(comparableName));
}

function readNames(file: string): string[] {
  try {
    // Reading a FIFO would block.
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return [];
    const { env } = JSON.parse(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
    return Object.keys(env);
  } catch {
    // Claude Code takes nothing from such a file either.
    return [];
  }
}
