import { join } from 'node:path';
import { claudeFolder } from './claude-folder.js';
import { SettingsReader } from './settings-reader.js';

/** Whom a settings file applies to: the user, all who work in a project, the user in a project, everyone on the machine. */
export type Scope = 'user' | 'project' | 'local' | 'managed';

/** Returns every settings file that Claude Code looks for when it is started in a folder, the weakest first. */
export function listSettingsPaths(
  env: NodeJS.ProcessEnv,
  cwd: string,
  reader = new SettingsReader(),
): { scope: Scope; path: string }[] {
  const own = (['user', 'project', 'local'] as const).map((scope) => ({ scope, path: settingsPath(scope, env, cwd) }));
  // In the home directory the user's file is the project's, too.
  const files = own.filter(({ path }, place) => own.findIndex((file) => file.path === path) === place);
  return [...files, ...findManagedPaths(reader).map((path) => ({ scope: 'managed' as const, path }))];
}

export function settingsPath(scope: Scope, env: NodeJS.ProcessEnv, cwd: string): string {
  if (scope === 'managed') return join(managedFolder(), 'managed-settings.d', MANAGED_FILE);
  if (scope === 'user') return join(claudeFolder(env), 'settings.json');
  return join(cwd, '.claude', scope === 'project' ? 'settings.json' : 'settings.local.json');
}

const MANAGED_FOLDERS: { readonly [platform: string]: string } = {
  darwin: '/Library/Application Support/ClaudeCode',
  win32: 'C:\\Program Files\\ClaudeCode',
};

/** A file of its own: Claude Code merges those of the folder since 2.1.83, in the order of their names. */
const MANAGED_FILE = '50-cc-langfuse.json';

function managedFolder(): string {
  return MANAGED_FOLDERS[process.platform] ?? '/etc/claude-code';
}

/** Returns the path of the managed settings, and of those that Claude Code merges over them, in the order of their names. */
function findManagedPaths(reader: SettingsReader): string[] {
  const folder = managedFolder();
  const overlays = join(folder, 'managed-settings.d');
  const shown = reader
    .list(overlays)
    .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
    .toSorted();
  return [join(folder, 'managed-settings.json'), ...shown.map((name) => join(overlays, name))];
}
