const OPTION = 'CLAUDE_PLUGIN_OPTION_';

/**
 * Returns the environment with the plugin's options as settings. Claude Code passes what the user entered for a plugin to
 * its hooks as `CLAUDE_PLUGIN_OPTION_X`, and leaves out what is unset. Each counts as `CC_LANGFUSE_X`, so that the
 * `LANGFUSE_X` of another program cannot redirect the turns.
 */
export function withPluginOptions(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (env.CLAUDE_PLUGIN_ROOT === undefined) return env;
  const all = { ...env };
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith(OPTION)) all[pluginVariable(name.slice(OPTION.length))] ||= value;
  }
  return all;
}

export function pluginVariable(option: string): string {
  return `CC_LANGFUSE_${option.toUpperCase()}`;
}
