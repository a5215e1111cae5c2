import { homedir } from 'node:os';
import { stateFolder } from './claude-folder.js';
import { isOfProject, pickDestination, readSources, type Source } from './folder-settings.js';
import { isInstalledDestination } from './installed-destinations.js';
import { comparableName } from './node-start.js';
import { LAUNCHER_VARIABLES, NODE_START_VARIABLES } from './platform.js';
import { type Problem, problemWith } from './problem.js';
import { readProjectNames } from './project-names.js';
import {
  findIgnoredRestrictions,
  hasDestination,
  isDefault,
  isOfKind,
  isSet,
  isSetting,
  restrict,
  SECRETS_OF_SERVERS,
  variableFor,
  whenVariableOfProject,
} from './settings.js';
import { SettingsReader } from './settings-reader.js';
import { type SettingName, variableNames } from './settings-table.js';

export interface OwnVariables {
  readonly env: NodeJS.ProcessEnv;
  /** The variables that do not count, and why. */
  readonly ignored: readonly Problem[];
  /** Whether nothing is sent, because a project names a destination that the user has not installed there. */
  readonly isHeld?: boolean;
  /** What has read the settings, so that the same ones count for the rest of the event. */
  readonly reader?: SettingsReader;
}

/** With these a project would choose which file is the user's. */
const CLAUDE_FOLDER = 'CLAUDE_CONFIG_DIR';
const HOMES = ['HOME', 'USERPROFILE'];
/** What is run must be known to be the user's own: that no file of the project names it is not enough. */
const COMMAND = 'CC_LANGFUSE_SECRET_KEY_COMMAND';
/** With this in the shell a user keeps one run from being traced. */
const RUN_SWITCH = 'CC_TRACE_TO_LANGFUSE';
/** Claude Code sets it for each hook, whatever the settings say. */
const OF_CLAUDE_CODE = 'CLAUDE_PROJECT_DIR';
const SERVERS = SECRETS_OF_SERVERS.map(([server]) => server);
/** What this program, Node or the system's libraries act on, and what is therefore worth a word. */
const OTHERS_THAT_MATTER = new Set([
  ...NODE_START_VARIABLES,
  ...LAUNCHER_VARIABLES,
  ...HOMES,
  ...['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', 'NO_PROXY', 'NODE_TLS_REJECT_UNAUTHORIZED'],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'CLAUDE_CODE_CERT_STORE', 'RES_OPTIONS', 'LOCALDOMAIN', 'HOSTALIASES'],
]);
/** Without it, the plugin has no destination. */
const PLUGIN_KEY = 'CLAUDE_PLUGIN_OPTION_PUBLIC_KEY';
const INSTALL_IT = 'which you have not installed there (cc-langfuse install --scope local)';
/** For what the user's own command runs. */
const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/homebrew/bin';

/**
 * Returns a hook's environment without what a project must not choose. Claude Code has merged the variables of all settings, so
 * they are read again. What a project overrides is taken from the user's or managed settings, if it is there.
 */
export function dropForeignVariables(
  passed: NodeJS.ProcessEnv,
  folders: readonly string[],
  reader = new SettingsReader(),
): OwnVariables {
  const { env, ignored } = dropForeignFolders(passed, folders, reader);
  const sources = [...new Set(folders)].flatMap((folder) => readSources(env, folder, reader));
  const foreign = sources.filter(isOfProject);
  const own = merge(sources.filter((source) => !isOfProject(source)));
  const isInstalled = (source: Source) => isInstalledDestination(stateFolder(env), source.name, source.env);
  const isAllowed = (name: string, source: Source) => {
    const when = whenVariableOfProject(name);
    return when === 'installed' ? isInstalled(source) : when === 'always' && !isRestriction(name);
  };
  /** The file because of which a value cannot be trusted. An empty value, too, takes the place of the shell's. */
  const findForeign = (name: string, value = '') => {
    const naming = foreign.filter((source) => sets(source, name));
    const isChosen = naming.some((source) => source.env[name] === value && isAllowed(name, source));
    return isChosen ? undefined : naming.find((source) => !isAllowed(name, source))?.name;
  };
  const destinationIn = foreign.some(isInstalled) ? undefined : findDestinationFile(foreign);
  const isHeld = destinationIn !== undefined;
  const kept = { ...env };
  const unknownServers = new Map<SettingName, string>();
  for (const [name, value] of Object.entries(env)) {
    const isKnown = value === own[name] || value !== passed[name];
    if (name === OF_CLAUDE_CODE || isKnown) continue;
    const namedIn = findForeign(name, value);
    if (namedIn === undefined && !(name === COMMAND && isSet(value))) continue;
    kept[name] = own[name] ?? (name === 'PATH' ? USUAL_PATH : undefined);
    const server = SERVERS.find((setting) => variableNames(setting).includes(name));
    if (server !== undefined && namedIn !== undefined && variableFor(server, kept) === undefined)
      unknownServers.set(server, namedIn);
    else if (isSet(value) && !isRestriction(name) && matters(name) && !(isHeld && isOfDestination(name)))
      ignored.push(ignore(name, explain(namedIn)));
  }
  if (destinationIn !== undefined) {
    // It may be the user's wish that nothing of the project goes to the usual destination.
    for (const name of [...Object.keys(pickDestination(kept)), PLUGIN_KEY]) delete kept[name];
    const { CC_LANGFUSE_OTLP_URL: collector = '' } = merge(foreign);
    const named = isSet(collector) ? 'CC_LANGFUSE_OTLP_URL' : 'LANGFUSE_SECRET_KEY';
    ignored.push(ignore(named, `${destinationIn} names another destination, ${INSTALL_IT}`));
  }
  // A project that chooses a server must provide its own credentials.
  for (const [server, secrets] of SECRETS_OF_SERVERS) {
    // What the user has chosen may be in the shell alone. The default could be another server.
    const unknownIn = variableFor(server, kept) === undefined ? unknownServers.get(server) : undefined;
    const serverIn = unknownIn ?? findForeignServer(server, kept, foreign, own);
    if (serverIn === undefined) continue;
    for (const name of secrets.flatMap(variableNames)) {
      if (!isSet(kept[name]) || foreign.some((source) => source.env[name] === kept[name])) continue;
      delete kept[name];
      ignored.push(ignore(name, `${serverIn} chooses the server`));
    }
  }
  const switchIn = foreign.find((source) => isOn(source.env[RUN_SWITCH]))?.name;
  if (switchIn !== undefined && isOn(kept[RUN_SWITCH]) && !isOn(own[RUN_SWITCH])) {
    kept[RUN_SWITCH] = 'false';
    ignored.push(problemWith(RUN_SWITCH, 'ignored', `counts as false, because ${switchIn} hides the shell's value`));
  }
  const theirs = foreign.map((source) => source.env);
  const restricted = restrict(kept, [], theirs);
  const all = [...ignored, ...listLifted(restricted, foreign)];
  return { env: restricted, ignored: all, isHeld };
}

function isOfDestination(name: string): boolean {
  return whenVariableOfProject(name) === 'installed';
}

/** The file of a project that names a destination with all that it needs; it may be one of several that do. */
function findDestinationFile(foreign: readonly Source[]): string | undefined {
  if (!hasDestination(pickDestination(merge(foreign)))) return undefined;
  return foreign.findLast(({ env }) => Object.keys(pickDestination(env)).length > 0)?.name;
}

/** Nothing of what the user restricts would be found in folders that a project chooses, and no session would be muted. */
function dropForeignFolders(env: NodeJS.ProcessEnv, folders: readonly string[], reader: SettingsReader) {
  const named = readProjectNames(folders, reader);
  const suspects = [CLAUDE_FOLDER, ...HOMES].filter((name) => isSet(env[name]) && named.has(name));
  if (suspects.length === 0) return { env, ignored: [] };
  const usual = suspects.map((name) => [name, name === CLAUDE_FOLDER ? undefined : homedir()]);
  const without: NodeJS.ProcessEnv = { ...env, ...Object.fromEntries(usual) };
  const foreign = folders.flatMap((folder) => readSources(without, folder, reader)).filter(isOfProject);
  const ignored = suspects.flatMap((name) => {
    const namedIn = foreign.find((source) => sets(source, name))?.name;
    return namedIn === undefined ? [] : [ignore(name, explain(namedIn))];
  });
  // In the home directory, the project's file is the user's.
  return ignored.length === 0 ? { env, ignored } : { env: without, ignored };
}

/** Restrictions of a project that allow more than the default. */
function listLifted(env: NodeJS.ProcessEnv, foreign: readonly Source[]): Problem[] {
  return foreign.flatMap(({ name: file, env: theirs }) =>
    Object.keys(theirs)
      .filter((name) => isRestriction(name) && isSet(theirs[name]) && !isSet(env[name]))
      .filter((name) => !findIgnoredRestrictions(theirs).some((bad) => bad === name) && !isDefault(name, theirs))
      .map((name) => ignore(name, `${file} can only make it stricter`)),
  );
}

function merge(sources: readonly Source[]): NodeJS.ProcessEnv {
  return Object.assign({}, ...sources.map(({ env }) => env));
}

function sets({ env }: Source, name: string): boolean {
  return Object.keys(env).some((each) => comparableName(each) === comparableName(name));
}

function isOn(value = ''): boolean {
  return value.trim() === 'true';
}

function ignore(variable: string, reason: string): Problem {
  return problemWith(variable, 'ignored', `is ignored, because ${reason}`);
}

function explain(namedIn: string | undefined): string {
  return namedIn === undefined ? 'only your own and managed settings can set it' : `${namedIn} cannot set it`;
}

function isRestriction(variable: string): boolean {
  return isOfKind(variable, 'restricts');
}

/**
 * Returns the variables of the shell that would count in hooks, and that they cannot see: Claude Code gives them the
 * project's value in its place. In files of the user's, it would be seen.
 */
export function listHiddenVariables(shell: NodeJS.ProcessEnv, folder: string): Problem[] {
  const sources = readSources(shell, folder);
  const own = merge(sources.filter((source) => !isOfProject(source)));
  return sources.filter(isOfProject).flatMap(({ name: file, env: theirs }) =>
    Object.keys(theirs)
      .filter((name) => isSet(shell[name]) && !isSet(own[name]) && isHidden(name, shell[name], theirs[name]))
      .map((name) => problemWith(name, 'hidden', `hooks do not see the shell's value, because ${file} sets it, too`)),
  );
}

function isHidden(name: string, ours = '', theirs = ''): boolean {
  if (ours.trim() === theirs.trim()) return false;
  if (isRestriction(name)) return restrict({ [name]: ours }, [], [{ [name]: theirs }])[name] !== theirs;
  if (variableNames('TRACE_TO_LANGFUSE').includes(name)) return theirs.trim() === 'true';
  return whenVariableOfProject(name) === undefined && matters(name);
}

/** Whether this program, Node or the system's libraries act on a variable. */
function matters(variable: string): boolean {
  return isSetting(variable) || OTHERS_THAT_MATTER.has(variable.toUpperCase());
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
