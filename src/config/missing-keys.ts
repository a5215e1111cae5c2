import { findOwnPlugins } from './claude-hooks.js';
import { readSettingsAt } from './claude-settings.js';
import { settingsPath } from './settings-paths.js';

/** Says what to do if a command that a person runs has no keys; `otherwise` is for those without the plugin. */
export function adviseOnKeys(shell: NodeJS.ProcessEnv, otherwise: string): string {
  const content = readSettingsAt(settingsPath('user', shell, ''));
  const hasPlugin = content.kind === 'settings' && findOwnPlugins(content.settings).length > 0;
  return hasPlugin
    ? 'Claude Code passes the keys that you entered for the plugin only to its hooks and commands, such as /cc-langfuse:open; set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY in the shell'
    : otherwise;
}
