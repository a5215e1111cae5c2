import { environmentOf } from '../../claude-folder.js';
import { type GivenSetting, givenSettings, readSettings, type Settings } from '../../config.js';
import { isRecord } from '../../json.js';
import type { Scope, SettingsFile } from '../../setup/settings-files.js';

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
  return {
    userFile: files.find(({ scope }) => scope === 'user')?.path ?? '',
    hookEnv,
    sourceOf: sourceIn(layers),
    given: givenSettings(hookEnv),
    settings: await readSettings(hookEnv),
    trusted: await readSettings(Object.assign(environmentOf(shell), ...managed)),
  };
}

function layersOf(wanted: Scope, files: readonly SettingsFile[]): Layer[] {
  return files.flatMap(({ scope, path, content }) => {
    // With a comment in it, Claude Code refuses the file.
    if (scope !== wanted || content.kind !== 'settings' || !content.isStrict) return [];
    const { env } = content.settings;
    const entries = isRecord(env) ? Object.entries(env) : [];
    const values = entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    return [{ scope, place: path, env: Object.fromEntries(values) }];
  });
}

function sourceIn(layers: readonly Layer[]): (variable: string) => Source {
  return (variable) => layers.findLast(({ env }) => (env[variable] ?? '') !== '') ?? SHELL;
}
