import type { ClaudeSettings } from '../../config/claude-settings.js';
import { pluginVariable } from '../../config/plugin-options.js';
import { isRecord } from '../../shared/json.js';
import { type CommandHook, commandHooks } from './command-hooks.js';

/**
 * The events that we are called at, and the seconds that each may take: SessionEnd hooks have 1.5 s in all unless one asks for
 * more, and SessionStart is not to hold anyone up.
 */
export const TIMEOUTS: { readonly [event: string]: number } = {
  SessionStart: 5,
  Stop: 15,
  StopFailure: 15,
  SessionEnd: 15,
};

/** For a machine where the program is on the path; with a shell between, Claude Code takes longer to end what it gives up. */
export const PORTABLE_COMMAND = 'exec cc-langfuse hook';

const PROGRAM_NAME = /^cc-langfuse(?:@[^/\\]*)?(?:\.cmd|\.ps1|\.exe)?$/;

/** The hooks of settings that start this program, however they were written. */
export function ourHooks(settings: ClaudeSettings): CommandHook[] {
  return commandHooks(settings).filter(isOurs);
}

/** Whether a hook starts this program: by its name, by npx, or by the path of its file with a mark that says whose it is. */
export function isOurs({ command, words }: CommandHook): boolean {
  return words.some((word, place) => {
    // The first cc-langfuse was started out of its repository.
    if (words[place + 1] !== 'hook' || /^[a-z+]{2,}:/.test(word)) return false;
    const file = word.split(/[/\\]/).at(-1) ?? '';
    return PROGRAM_NAME.test(file) || (file === 'cli.cjs' && /\bcc-langfuse\b/.test(command + word));
  });
}

/** Our own plugins that settings turn on: each starts the program, too. */
export function ourPlugins({ enabledPlugins }: ClaudeSettings): string[] {
  if (!isRecord(enabledPlugins)) return [];
  return Object.keys(enabledPlugins).filter((name) => name.startsWith('cc-langfuse@') && enabledPlugins[name] === true);
}

/** What the user entered for a plugin, as far as it stands in settings: what is secret Claude Code keeps elsewhere. */
export function pluginVariables({ pluginConfigs }: ClaudeSettings, plugin: string): NodeJS.ProcessEnv {
  const config = isRecord(pluginConfigs) ? pluginConfigs[plugin] : undefined;
  const options = isRecord(config) && isRecord(config.options) ? config.options : {};
  return Object.fromEntries(Object.entries(options).map(([option, value]) => [pluginVariable(option), String(value)]));
}
