const OPTION = 'CLAUDE_PLUGIN_OPTION_';

/**
 * Claude Code gives a plugin's hooks what the user entered for it, under names of its own; unset ones it leaves out. They
 * count as `CC_LANGFUSE_…`: the keys that another program of the user's reads must not take these turns elsewhere.
 */
export function takePluginOptions(env: NodeJS.ProcessEnv): void {
  if (env.CLAUDE_PLUGIN_ROOT === undefined) return;
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith(OPTION)) env[pluginVariable(name.slice(OPTION.length))] ||= value;
  }
}

/** The variable that an option of the plugin counts as. */
export function pluginVariable(option: string): string {
  return `CC_LANGFUSE_${option.toUpperCase()}`;
}
