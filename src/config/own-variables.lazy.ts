import { stateFolder } from './claude-folder.js';
import { isOfProject, readSources, type Source } from './folder-settings.js';
import { isInstalledDestination } from './installed-destinations.js';
import { isSet, variableFor } from './settings.js';
import { NEVER_OF_PROJECT, type SettingName, variableNames } from './settings-table.js';

export interface OwnVariables {
  readonly env: NodeJS.ProcessEnv;
  /** A line for each variable that does not count, and why. None contains a value. */
  readonly ignored: readonly string[];
}

const CLAUDE_FOLDER = 'CLAUDE_CONFIG_DIR';
/** With these a project would choose which file is the user's. */
const HOMES = ['HOME', 'USERPROFILE'];
/** What is run must be known to be the user's own: that no file of the project names it is not enough. */
const COMMAND = 'CC_LANGFUSE_SECRET_KEY_COMMAND';
/** The credentials that each server gets. A project that chooses a server must provide its own. */
const SECRETS_OF_SERVERS: readonly (readonly [SettingName, readonly SettingName[]])[] = [
  ['LANGFUSE_BASE_URL', ['LANGFUSE_SECRET_KEY', COMMAND, 'CC_LANGFUSE_HEADERS']],
  ['CC_LANGFUSE_OTLP_URL', ['CC_LANGFUSE_OTLP_HEADERS']],
];

/**
 * Returns a hook's environment without what a project must not choose. Claude Code has merged the variables of all settings, so
 * they are read again. What a project overrides is taken from the user's or managed settings, if it is there.
 */
export function dropForeignVariables(passed: NodeJS.ProcessEnv, folders: readonly string[]): OwnVariables {
  const { env, ignored } = dropForeignFolder(passed, folders);
  const sources = [...new Set(folders)].flatMap((folder) => readSources(env, folder));
  const foreign = sources.filter(isOfProject);
  const isMoved = foreign.some((source) => HOMES.some((name) => name in source.env));
  const trusted = sources.filter(({ scope }) => scope === 'managed' || (scope === 'user' && !isMoved));
  const own: NodeJS.ProcessEnv = Object.assign({}, ...trusted.map((source) => source.env));
  const kept = { ...env };
  for (const name of NEVER_OF_PROJECT) {
    const namedIn = foreign.find((source) => isSet(source.env[name]))?.name;
    if (!isSet(env[name]) || env[name] === own[name]) continue;
    if (namedIn === undefined && name !== COMMAND) continue;
    kept[name] = own[name];
    const reason = namedIn === undefined ? 'only your own and managed settings can set it' : `${namedIn} cannot set it`;
    ignored.push(`${name}: is ignored, because ${reason}`);
  }
  for (const [server, secrets] of SECRETS_OF_SERVERS) {
    const serverIn = findForeignServer(server, kept, foreign, own);
    if (serverIn === undefined) continue;
    const isTheirs = (name: string) => foreign.some((source) => source.env[name] === kept[name]);
    for (const name of secrets.flatMap(variableNames)) {
      if (!isSet(kept[name]) || isTheirs(name)) continue;
      delete kept[name];
      ignored.push(`${name}: is ignored, because ${serverIn} chooses the server`);
    }
  }
  return { env: kept, ignored };
}

/** In a folder that a project chooses, nothing of what the user restricts would be found, and no session would be muted. */
function dropForeignFolder(env: NodeJS.ProcessEnv, folders: readonly string[]) {
  const ignored: string[] = [];
  if (!isSet(env[CLAUDE_FOLDER])) return { env, ignored };
  const sources = folders.flatMap((folder) => readSources(env, folder)).filter(isOfProject);
  const namedIn = sources.find((source) => source.env[CLAUDE_FOLDER] === env[CLAUDE_FOLDER])?.name;
  if (namedIn === undefined) return { env, ignored };
  ignored.push(`${CLAUDE_FOLDER}: is ignored, because ${namedIn} cannot set it`);
  return { env: { ...env, [CLAUDE_FOLDER]: undefined }, ignored };
}

/** Returns the file of the project that chooses a server, unless the user has chosen the same. */
function findForeignServer(
  setting: SettingName,
  env: NodeJS.ProcessEnv,
  foreign: readonly Source[],
  own: NodeJS.ProcessEnv,
): string | undefined {
  const variable = variableFor(setting, env);
  if (variable === undefined || env[variable] === own[variable]) return undefined;
  return foreign
    .filter(({ name, env: theirs }) => !isInstalledDestination(stateFolder(env), name, theirs))
    .find((source) => source.env[variable] === env[variable])?.name;
}

/** For commands that a person runs: adds the folder of the state that the user's or managed settings name. */
export function addStateFolder(shell: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (isSet(shell.CC_LANGFUSE_STATE_DIR)) return shell;
  // The folder does not matter: a project cannot set it.
  const sources = readSources(shell, '').filter((source) => !isOfProject(source));
  const folder = sources.findLast(({ env }) => isSet(env.CC_LANGFUSE_STATE_DIR))?.env.CC_LANGFUSE_STATE_DIR;
  return folder === undefined ? shell : { ...shell, CC_LANGFUSE_STATE_DIR: folder };
}
