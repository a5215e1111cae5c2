import { comparableName } from './node-start.js';
import { SettingsReader } from './settings-reader.js';

// Every hook loads this before anything else, so it imports next to nothing.

/**
 * Returns the names of the variables that the project settings of these folders set. In the home directory these are the user's own,
 * which folder-settings.ts distinguishes.
 */
export function readProjectNames(folders: readonly string[], reader = new SettingsReader()): ReadonlySet<string> {
  const files = folders.flatMap((folder) =>
    ['settings.json', 'settings.local.json'].map((file) => `${folder}/.claude/${file}`),
  );
  return new Set([...new Set(files)].flatMap((file) => readNames(file, reader)).map(comparableName));
}

function readNames(file: string, reader: SettingsReader): string[] {
  try {
    const text = reader.read(file);
    return text === undefined ? [] : Object.keys(JSON.parse(text).env);
  } catch {
    // Claude Code takes nothing from such a file either.
    return [];
  }
}
