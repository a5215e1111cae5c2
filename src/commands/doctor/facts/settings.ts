import { findOwnPlugins, readPluginVariables } from '../../../config/claude-hooks.js';
import { commandEnvironment, envBlock, type Scope, type SettingsFile } from '../../../config/claude-settings.js';
import { type GivenSetting, givenSettings, readSettings, type Settings } from '../../../config/settings.js';
import { type Exposure, exposure } from '../../setup/exposure.js';

export interface SettingsFacts {
  /** Where the user's own settings are, or would be. */
  readonly userFile: string;
  /** The environment that a hook has when Claude Code is started here, and what each variable comes from. */
  readonly hookEnv: NodeJS.ProcessEnv;
  readonly sourceOf: (variable: string) => Source;
  readonly given: readonly GivenSetting[];
  readonly settings: Settings;
  /** Those that the server is asked with: a project's are left out, it could name a server of its author's. */
  readonly trusted: Settings;
  /** The plugin of ours that is on: Claude Code keeps the secret key that was entered for it. */
  readonly plugin: string | undefined;
  /** Of the files that hold a secret key. */
  readonly exposures: readonly Exposure[];
}

/** What a variable is set by: the shell, what was entered for the plugin, or a file, by its path. */
export interface Source {
  readonly scope: Scope | 'shell' | 'plugin';
  readonly place: string;
}

interface Layer extends Source {
  readonly env: NodeJS.ProcessEnv;
}

const SHELL = { scope: 'shell', place: 'the shell' } as const;
/** From the weakest to the strongest. Claude Code lets the settings win over the shell, by intent. */
const SCOPES: readonly Scope[] = ['user', 'project', 'local', 'managed'];

export async function settingsFacts(shell: NodeJS.ProcessEnv, files: readonly SettingsFile[]): Promise<SettingsFacts> {
  const plugins = pluginLayers(files);
  const others: Layer[] = [{ ...SHELL, env: shell }, ...SCOPES.flatMap((scope) => layersOf(scope, files))];
  const layers = [...plugins, ...others];
  const hookEnv: NodeJS.ProcessEnv = Object.assign({}, ...others.map(({ env }) => env));
  // Elsewhere an empty variable hides one beneath it; what was entered for a plugin it lets through.
  for (const [name, value] of plugins.flatMap(({ env }) => Object.entries(env))) hookEnv[name] ||= value;
  const managed = layersOf('managed', files).map(({ env }) => env);
  const holders = files.filter(({ content }) => hasSecretKey(envBlock(content)));
  return {
    userFile: files.find(({ scope }) => scope === 'user')?.path ?? '',
    hookEnv,
    sourceOf: sourceIn(layers),
    given: givenSettings(hookEnv),
    settings: await readSettings(hookEnv),
    trusted: await readSettings(Object.assign(commandEnvironment(shell), ...managed)),
    plugin: plugins[0]?.place,
    exposures: holders.flatMap(({ scope, path }) => (scope === 'managed' ? [] : exposure(path))),
  };
}

function hasSecretKey(env: NodeJS.ProcessEnv): boolean {
  return givenSettings(env).some(({ name }) => name === 'LANGFUSE_SECRET_KEY');
}

function layersOf(wanted: Scope, files: readonly SettingsFile[]): Layer[] {
  return files.flatMap(({ scope, path, content }) => {
    // With a comment in it, Claude Code refuses the file.
    const isTaken = scope === wanted && content.kind === 'settings' && content.isStrict;
    return isTaken ? [{ scope, place: path, env: envBlock(content) }] : [];
  });
}

/** What our plugin's hooks are started with: they trace unless they are told not to. */
function pluginLayers(files: readonly SettingsFile[]): Layer[] {
  return files.flatMap(({ scope, content }) => {
    if (scope !== 'user' || content.kind !== 'settings' || !content.isStrict) return [];
    return findOwnPlugins(content.settings).map((plugin) => ({
      scope: 'plugin' as const,
      place: `the plugin ${plugin}`,
      env: { TRACE_TO_LANGFUSE: 'true', ...readPluginVariables(content.settings, plugin) },
    }));
  });
}

function sourceIn(layers: readonly Layer[]): (variable: string) => Source {
  return (variable) => layers.findLast(({ env }) => (env[variable] ?? '') !== '') ?? SHELL;
}
