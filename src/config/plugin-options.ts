// Every hook loads this before anything else, so it imports nothing.
export type PluginOptions = { readonly [option: string]: string | undefined };

const OPTION = 'CLAUDE_PLUGIN_OPTION_';

/**
 * Returns the environment with the plugin's options as settings. Claude Code passes what the user entered for a plugin to
 * its hooks as `CLAUDE_PLUGIN_OPTION_X`, and leaves out what is unset.
 */
export function withPluginOptions(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (env.CLAUDE_PLUGIN_ROOT === undefined) return env;
  const options = Object.entries(env).filter(([name]) => name.startsWith(OPTION));
  return addPluginOptions(env, Object.fromEntries(options.map(([name, value]) => [name.slice(OPTION.length), value])));
}

/**
 * Options are the weakest source: each counts only if no variable of its setting has a value. Keys and server come from one
 * source, so that a server that only a project names never gets the keys that the user entered.
 */
export function addPluginOptions(env: NodeJS.ProcessEnv, options: PluginOptions): NodeJS.ProcessEnv {
  const all = { ...env };
  const hasSecretKey = isSet(env, 'SECRET_KEY') || isSet(env, 'SECRET_KEY_COMMAND');
  const hasDestination = isSet(env, 'OTLP_URL') || (isSet(env, 'PUBLIC_KEY') && hasSecretKey);
  // The form requires both keys; `doctor` sees only the public one.
  if (options.PUBLIC_KEY && !hasDestination) {
    for (const name of ['PUBLIC_KEY', 'SECRET_KEY', 'SECRET_KEY_COMMAND', 'BASE_URL', 'BASEURL', 'HOST']) {
      delete all[`LANGFUSE_${name}`];
      all[`CC_LANGFUSE_${name}`] = options[name];
    }
  }
  for (const name of ['USER_ID', 'TAGS', 'TRACING_ENVIRONMENT', 'CAPTURE', 'LIVE'])
    if (!isSet(env, name)) all[`CC_LANGFUSE_${name}`] = options[name];
  return all;
}

/** Whether a variable has its value from what the user entered for the plugin, in one of the plugin's own commands. */
export function isPluginOption(env: NodeJS.ProcessEnv, variable: string): boolean {
  const option = env[variable.replace('CC_LANGFUSE_', OPTION)];
  return env.CLAUDE_PLUGIN_ROOT !== undefined && Boolean(option) && option === env[variable];
}

function isSet(env: NodeJS.ProcessEnv, name: string): boolean {
  // As in settings-table.ts, these have no other name: a LANGFUSE_CAPTURE of another program means nothing here.
  const hasOtherName = !['CAPTURE', 'LIVE', 'OTLP_URL', 'SECRET_KEY_COMMAND'].includes(name);
  const other = hasOtherName ? env[`LANGFUSE_${name}`] : undefined;
  return Boolean(env[`CC_LANGFUSE_${name}`]?.trim() || other?.trim());
}
