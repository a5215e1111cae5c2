import { isRecord, parseJson } from '../shared/json.js';
import { stateFolder } from './claude-folder.js';
import { toVariables } from './claude-settings.js';
import { findBadFolder, NO_FOLDER } from './folder-list.js';
import { isInstalledDestination } from './installed-destinations.js';
import { type Problem, problemWith } from './problem.js';
import {
  findIgnoredRestrictions,
  hasDestination,
  isOfKind,
  isSet,
  restrict,
  variableFor,
  whenVariableOfProject,
} from './settings.js';
import { listSettingsPaths, type Scope } from './settings-paths.js';
import { SettingsReader } from './settings-reader.js';

/** What the settings of a folder's sessions are. */
export interface FolderSettings {
  /** The variables, with the strictest of all restrictions. */
  readonly env: NodeJS.ProcessEnv;
  /** Why nothing of the folder is sent, and who says so. */
  readonly optOut: string | undefined;
  /** The problem because of which nothing of the folder is sent. */
  readonly optOutProblem?: Problem | undefined;
  /** The restrictions that cannot be read, and that no other problem names. */
  readonly problems: readonly Problem[] | undefined;
  /** Whether managed settings allow users and projects to opt out. */
  readonly mayOptOut: boolean;
  /** The variables by which the folder's own hooks send to a destination of the folder's. */
  readonly ownDestination: NodeJS.ProcessEnv | undefined;
}

export interface Source {
  /** The path of the file. */
  readonly name: string;
  readonly scope: Scope | 'shell';
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Reads the settings for a hook that Claude Code has started in a folder. Claude Code has merged the variables of all files, and
 * there the last word wins. What restricts is read again from each of them, so that a project cannot widen what its user allows.
 */
export async function readHookSettings(
  env: NodeJS.ProcessEnv,
  folder: string,
  reader = new SettingsReader(),
): Promise<FolderSettings> {
  return combine(env, folder, readSources(env, folder, reader));
}

/** Adds to a hook's environment what Claude Code does not pass on: it keeps the variables of OpenTelemetry to itself. */
export function addTelemetryVariables(
  env: NodeJS.ProcessEnv,
  folder: string,
  reader = new SettingsReader(),
): NodeJS.ProcessEnv {
  const name = 'OTEL_RESOURCE_ATTRIBUTES';
  const value = readSources(env, folder, reader).findLast((source) => source.env[name] !== undefined)?.env[name];
  return value === undefined ? env : { ...env, [name]: value };
}

/**
 * Reads the settings for the sessions of a folder, for a command that a person runs: from the shell, and for what is unset there
 * from the files that Claude Code would read. The destination and its keys never come from a project, whose author could redirect
 * the user's data, unless the user has installed them there.
 */
export async function readCommandSettings(shell: NodeJS.ProcessEnv, folder: string): Promise<FolderSettings> {
  const sources = readSources(shell, folder);
  const set = Object.fromEntries(Object.entries(shell).filter(([, value]) => value !== ''));
  const isInstalled = ({ name, env }: Source) => isInstalledDestination(stateFolder(shell), name, env);
  const envs = sources.map((source) => {
    if (!isOfProject(source)) return source.env;
    const destination = isInstalled(source) ? pickDestination(source.env) : {};
    return { ...pick(source.env, (variable) => isOfKind(variable, 'describes')), ...destination };
  });
  return combine(Object.assign({}, ...envs, set), folder, [
    ...sources,
    { name: 'the shell', scope: 'shell', env: set },
  ]);
}

async function combine(env: NodeJS.ProcessEnv, folder: string, sources: readonly Source[]): Promise<FolderSettings> {
  const mayOptOut = sources.every(
    ({ scope, env: own }) => scope !== 'managed' || own.CC_LANGFUSE_ALLOW_OPT_OUT?.trim() !== 'false',
  );
  const restricting = sources.filter(({ scope }) => mayOptOut || scope === 'managed');
  const ofProject = sources.filter(isOfProject);
  const ofUser = sources.filter((source) => !isOfProject(source)).map((source) => source.env);
  // A run that was recorded has a project's rules among the user's, and the user may have added some since.
  const { [RULES]: rules, ...others } = env;
  const restricted = restrict(
    others,
    [...ofUser, { [RULES]: rules }],
    ofProject.map((source) => source.env),
  );
  const own = pickDestination(Object.assign({}, ...ofProject.map((source) => source.env)));
  const excluding = mayOptOut ? [...restricting, { name: 'the environment', env }] : restricting;
  const off = findOff(restricting);
  const badFolder = findBadExclusion(excluding);
  const problems = [...(badFolder === undefined ? [] : [badFolder]), ...ofProject.flatMap(listBadRestrictions)];
  return {
    env: mayOptOut ? restricted : { ...restricted, [MUTE]: findMuting(restricting) },
    mayOptOut,
    optOut: off ?? badFolder?.text ?? (await findExclusion(folder, excluding)),
    optOutProblem: off === undefined ? badFolder : undefined,
    problems: problems.length === 0 ? undefined : problems,
    ownDestination: hasDestination(own) ? own : undefined,
  };
}

const MUTE = 'CC_LANGFUSE_MUTE';
const RULES = 'CC_LANGFUSE_REDACT_EXTRA';

function findMuting(sources: readonly Source[]): string | undefined {
  return sources.map(({ env }) => env[MUTE]).find(isSet);
}

export function isOfProject({ scope }: Pick<Source, 'scope'>): boolean {
  return scope === 'project' || scope === 'local';
}

/** Returns a project's variables that name a destination. */
export function pickDestination(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return pick(env, (variable) => whenVariableOfProject(variable) === 'installed');
}

function pick(env: NodeJS.ProcessEnv, isWanted: (variable: string) => boolean): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([variable]) => isWanted(variable)));
}

function findOff(sources: readonly Source[]): string | undefined {
  for (const { name, env } of sources) {
    const variable = variableFor('TRACE_TO_LANGFUSE', env);
    if (variable !== undefined && env[variable]?.trim() !== 'true') return `${variable} is off in ${name}`;
  }
  return undefined;
}

async function findExclusion(folder: string, sources: readonly Pick<Source, 'name' | 'env'>[]) {
  for (const { name, env } of sources) {
    const { CC_LANGFUSE_EXCLUDE: list = '' } = env;
    if (!isSet(list)) continue;
    const { findExcluding } = await import('./excluded-folders.lazy.js');
    const excluding = findExcluding(folder, list);
    if (excluding !== undefined) return `CC_LANGFUSE_EXCLUDE in ${name} excludes ${excluding}`;
  }
  return undefined;
}

/** What would exclude nothing was meant to exclude something. */
function findBadExclusion(sources: readonly Pick<Source, 'name' | 'env'>[]): Problem | undefined {
  for (const { name, env } of sources) {
    const bad = findBadFolder(env.CC_LANGFUSE_EXCLUDE ?? '');
    const text = `CC_LANGFUSE_EXCLUDE in ${name} has ${JSON.stringify(bad)}: ${NO_FOLDER}`;
    if (bad !== undefined) return { kind: 'bad value', variable: 'CC_LANGFUSE_EXCLUDE', text };
  }
  return undefined;
}

function listBadRestrictions({ name, env }: Source): Problem[] {
  return findIgnoredRestrictions(env).map((variable) =>
    problemWith(variable, 'ignored', `is ignored, because its value in ${name} is bad`),
  );
}

/** Reads the `env` blocks of the files that Claude Code accepts: JSON without comments. */
export function readSources(env: NodeJS.ProcessEnv, folder: string, reader = new SettingsReader()): Source[] {
  return listSettingsPaths(env, folder, reader).flatMap(({ scope, path }) => {
    const settings = parseJson(reader.read(path) ?? '');
    if (!isRecord(settings) || !isRecord(settings.env)) return [];
    return [{ scope, name: path, env: toVariables(settings.env) }];
  });
}
