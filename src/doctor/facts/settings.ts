import { environmentOf } from '../../claude-folder.js';
import { type GivenSetting, givenSettings, readSettings, type Settings } from '../../config.js';
import { type Exposure, exposure } from '../../setup/exposure.js';
import { envBlock, type Scope, type SettingsFile } from '../../setup/settings-files.js';

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
  /** Of the files that hold a secret key. */
  readonly exposures: readonly Exposure[];
}

/** What a variable is set by: the shell, or a file, by its path. */
export interface Source {
  readonly scope: Scope | 'shell';
  readonly place: string;
}

interface Layer extends Source {
  readonly env: NodeJS.ProcessEnv;
}

const SHELL = { scope: 'shell', place: 'the shell' } as const;
/** From the weakest to the strongest. Claude Code lets the settings win over the shell, by intent. */
const SCOPES: readonly Scope[] = ['user', 'project', 'local', 'managed'];

export async function settingsFacts(shell: NodeJS.ProcessEnv, files: readonly SettingsFile[]): Promise<SettingsFacts> {
  const layers: Layer[] = [{ ...SHELL, env: shell }, ...SCOPES.flatMap((scope) => layersOf(scope, files))];
  const hookEnv = Object.assign({}, ...layers.map(({ env }) => env));
  const managed = layersOf('managed', files).map(({ env }) => env);
  const holders = files.filter(({ content }) => hasSecretKey(envBlock(content)));
  return {
    userFile: files.find(({ scope }) => scope === 'user')?.path ?? '',
    hookEnv,
    sourceOf: sourceIn(layers),
    given: givenSettings(hookEnv),
    settings: await readSettings(hookEnv),
    trusted: await readSettings(Object.assign(environmentOf(shell), ...managed)),
    exposures: holders.flatMap(({ scope, path }) => (scope === 'managed' ? [] : exposure(path))),
  };
}

function hasSecretKey(env: NodeJS.ProcessEnv): boolean {
  return givenSettings(env).some(({ name }) => name === 'SECRET_KEY');
}

function layersOf(wanted: Scope, files: readonly SettingsFile[]): Layer[] {
  return files.flatMap(({ scope, path, content }) => {
    // With a comment in it, Claude Code refuses the file.
    const isTaken = scope === wanted && content.kind === 'settings' && content.isStrict;
    return isTaken ? [{ scope, place: path, env: envBlock(content) }] : [];
  });
}

function sourceIn(layers: readonly Layer[]): (variable: string) => Source {
  return (variable) => layers.findLast(({ env }) => (env[variable] ?? '') !== '') ?? SHELL;
}
