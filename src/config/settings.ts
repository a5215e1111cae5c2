import { type GitIdentity, IDENTITY_VARIABLES, readGitIdentity } from '../git/identity.js';
import type { TraceSettings } from '../observations/build/trace.js';
import { RESERVED_KEYS } from '../observations/metadata-keys.js';
import type { Caller } from '../observations/model.js';
import { createRedactor } from '../observations/redaction/redact.js';
import type { Failure } from '../shared/failure.js';
import { githubMetadata } from './github-actions.js';
import { type Problem, problemWith } from './problem.js';
import type { OwnRules } from './redaction-rules.lazy.js';
import { type Budget, isFalse } from './setting-formats.js';
import {
  SETTING_NAMES,
  SETTINGS,
  type SettingDefinition,
  type SettingKind,
  type SettingName,
  type SettingValues,
  variableNames,
  whenOfProject,
} from './settings-table.js';

export interface Settings extends TraceSettings {
  /** Undefined without keys or a valid URL: `problems` says what is wrong. */
  readonly destination: DestinationConfig | undefined;
  /** Set if the user is identified by git's e-mail address. */
  readonly gitIdentity: GitIdentity | undefined;
  /** What started this run: it applies only to the run's own session. */
  readonly caller: Caller;
  readonly timeoutMs: number;
  /** Whether turns are sent while they run. */
  readonly live: boolean;
  /** What a turn or a day may cost before the terminal says so. */
  readonly budget: Budget | undefined;
  /** Whether the session is muted from its first moment. */
  readonly mute: boolean;
  readonly debug: boolean;
  /** The settings that are missing or bad. */
  readonly problems: readonly Problem[];
  /** Why nothing may be sent, although a destination may be configured. */
  readonly hold: Failure | undefined;
}

export type DestinationConfig = LangfuseConfig | CollectorConfig;

export interface LangfuseConfig {
  readonly kind: 'langfuse';
  readonly baseUrl: URL;
  /** The id of the project, if the settings name it. */
  readonly projectId?: string | undefined;
  readonly publicKey: string;
  /** The state knows the project by it. Langfuse's keys cannot be renewed, so rotated keys have another public key. */
  readonly firstPublicKey?: string | undefined;
  /** A function runs the user's command, when the key is first needed. */
  readonly secretKey: string | ReadSecretKey;
  /** For a gateway in front of the server. */
  readonly headers: SettingValues['CC_LANGFUSE_HEADERS'];
  /** `auto` uses the ingestion API if the server has no OTLP endpoint. */
  readonly transport: SettingValues['CC_LANGFUSE_TRANSPORT'];
}

/** Rejects with a reason that can be shown. Waits until a deadline, in ms since 1970. */
type ReadSecretKey = (deadline: number) => Promise<string>;

/** An OpenTelemetry Collector, or anything else that accepts traces over OTLP/HTTP. */
export interface CollectorConfig {
  readonly kind: 'collector';
  readonly url: URL;
  readonly headers: SettingValues['CC_LANGFUSE_OTLP_HEADERS'];
  /** Conventions that the spans follow besides Langfuse's own attributes. */
  readonly semconv: SettingValues['CC_LANGFUSE_OTLP_SEMCONV'];
}

/** What a kind of destination has a place for, besides observations. */
const ALSO_TAKES: {
  readonly [kind in DestinationConfig['kind']]: { readonly scores: boolean; readonly media: boolean };
} = {
  langfuse: { scores: true, media: true },
  collector: { scores: false, media: false },
};

/** The user id that means git's e-mail address. */
export const GIT = 'git';

/** Reads the settings. A bad value becomes a problem, and the default (or the setting's fallback) is used instead. */
export async function readSettings(env: NodeJS.ProcessEnv): Promise<Settings> {
  const { values, bad, problems } = parseSettings(env);
  const isFromGit = values.LANGFUSE_USER_ID === GIT;
  const takes = ALSO_TAKES[values.CC_LANGFUSE_OTLP_URL === undefined ? 'langfuse' : 'collector'];
  const ownRules = await readRedactionRules(values.CC_LANGFUSE_REDACT_EXTRA);
  const [badRule, ...otherBadRules] = ownRules.flatMap((rules) =>
    rules.problems.map((words) => problemWith('CC_LANGFUSE_REDACT_EXTRA', 'bad rule', words)),
  );
  const capture = values.CC_LANGFUSE_CAPTURE;
  return {
    destination: findDestination(values, bad),
    userId: isFromGit ? undefined : values.LANGFUSE_USER_ID,
    gitIdentity: isFromGit ? readGitIdentity(env) : undefined,
    tags: values.CC_LANGFUSE_AUTO_TAGS.includes('resource')
      ? [...values.LANGFUSE_TAGS, ...values.OTEL_RESOURCE_ATTRIBUTES]
      : values.LANGFUSE_TAGS,
    autoTags: values.CC_LANGFUSE_AUTO_TAGS,
    metadata: withoutReservedKeys(values.LANGFUSE_METADATA),
    environment: values.LANGFUSE_TRACING_ENVIRONMENT,
    release: values.LANGFUSE_RELEASE,
    traceName: values.CC_LANGFUSE_TRACE_NAME,
    maxChars: values.CC_LANGFUSE_MAX_CHARS,
    redact: values.CC_LANGFUSE_REDACT ? createRedactor(ownRules.map((rules) => rules.redact)) : undefined,
    capture,
    scores: values.CC_LANGFUSE_SCORES && takes.scores,
    media: values.CC_LANGFUSE_MEDIA && takes.media,
    // A whole request contains the inputs and outputs of tools, and the model's words about them.
    input: values.CC_LANGFUSE_INPUT === 'request' && capture !== 'full' ? 'answered' : values.CC_LANGFUSE_INPUT,
    caller: {
      parent: values.CC_LANGFUSE_TRACEPARENT,
      seed: values.CC_LANGFUSE_TRACE_SEED,
      experiment: values.CC_LANGFUSE_EXPERIMENT,
      metadata: githubMetadata(env),
    },
    timeoutMs: values.CC_LANGFUSE_TIMEOUT,
    live: values.CC_LANGFUSE_LIVE,
    budget: values.CC_LANGFUSE_BUDGET,
    mute: values.CC_LANGFUSE_MUTE,
    debug: values.CC_LANGFUSE_DEBUG,
    problems: [
      ...problems,
      ...(badRule ? [badRule, ...otherBadRules] : []),
      ...findReservedKeys(values, env),
      ...findContradictions(values, bad),
    ],
    hold: values.CC_LANGFUSE_REDACT && badRule ? { code: 'rules', text: badRule.text } : undefined,
  };
}

function parseSettings(env: NodeJS.ProcessEnv) {
  const values: { [name: string]: unknown } = {};
  const bad = new Set<SettingName>();
  const problems: Problem[] = [];
  for (const name of SETTING_NAMES) {
    const { schema, default: usual, fallback }: SettingDefinition = SETTINGS[name];
    const variable = variableFor(name, env);
    const parsed = variable === undefined ? undefined : schema.safeParse(env[variable]?.trim());
    if (parsed?.success) values[name] = parsed.data;
    else {
      const replacement = parsed && fallback !== undefined ? fallback : usual;
      values[name] = replacement === undefined ? undefined : schema.parse(replacement);
    }
    if (variable !== undefined && parsed?.success === false) {
      bad.add(name);
      const [issue] = parsed.error.issues;
      const words = `${issue?.message}${fallback === undefined ? '' : `; using ${fallback}`}`;
      problems.push(problemWith(variable, 'bad value', words));
    }
  }
  return { values: values as SettingValues, bad, problems };
}

/** With a malformed URL or header nothing is sent: the default would be another server, or another account there. */
function findDestination(values: SettingValues, bad: ReadonlySet<SettingName>): DestinationConfig | undefined {
  const { CC_LANGFUSE_OTLP_URL: url, CC_LANGFUSE_OTLP_HEADERS: headers, CC_LANGFUSE_OTLP_SEMCONV: semconv } = values;
  if (bad.has('CC_LANGFUSE_OTLP_URL')) return undefined;
  if (url) return bad.has('CC_LANGFUSE_OTLP_HEADERS') ? undefined : { kind: 'collector', url, headers, semconv };
  const { LANGFUSE_PUBLIC_KEY: publicKey, LANGFUSE_BASE_URL: baseUrl, CC_LANGFUSE_TRANSPORT: transport } = values;
  const { CC_LANGFUSE_SECRET_KEY_COMMAND: command, CC_LANGFUSE_HEADERS: gatewayHeaders } = values;
  const { CC_LANGFUSE_PROJECT_ID: projectId, CC_LANGFUSE_PROJECT_KEYS: projectKeys } = values;
  const secretKey = values.LANGFUSE_SECRET_KEY ?? (command === undefined ? undefined : runOnce(command));
  if (publicKey === undefined || secretKey === undefined) return undefined;
  if (bad.has('LANGFUSE_BASE_URL') || bad.has('CC_LANGFUSE_HEADERS')) return undefined;
  const keys = { publicKey, firstPublicKey: findFirstKey(publicKey, projectKeys), secretKey };
  return { kind: 'langfuse', baseUrl, projectId, ...keys, headers: gatewayHeaders, transport };
}

/** They say nothing of a key that is not among them, such as that of another folder. */
export function findFirstKey(publicKey: string, projectKeys: readonly string[]): string | undefined {
  return projectKeys.includes(publicKey) ? projectKeys[0] : undefined;
}

/** Most runs that have nothing to send never need the key. A command may ask the user to unlock something, so it runs once. */
function runOnce(command: string): ReadSecretKey {
  let key: Promise<string> | undefined;
  return (deadline) => {
    key ??= import('./secret-key-command.lazy.js').then(({ readSecretKey }) => readSecretKey(command, deadline));
    return key;
  };
}

/** The user's own metadata must not take the place of what the traces say themselves. */
function withoutReservedKeys(metadata: SettingValues['LANGFUSE_METADATA']) {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !RESERVED_KEYS.has(key)));
}

function* findReservedKeys({ LANGFUSE_METADATA: metadata }: SettingValues, env: NodeJS.ProcessEnv): Generator<Problem> {
  const reserved = Object.keys(metadata).filter((key) => RESERVED_KEYS.has(key));
  const variable = variableFor('LANGFUSE_METADATA', env);
  const words = `the traces have these keys already, yours are left out: ${reserved.join(', ')}`;
  if (variable !== undefined && reserved.length > 0) yield problemWith(variable, 'no effect', words);
}

/** Yields what is missing for the destination, and the settings that have no effect beside others. */
function* findContradictions(values: SettingValues, bad: ReadonlySet<SettingName>): Generator<Problem> {
  const useless = (name: SettingName, words: string) => problemWith(name, 'no effect', words);
  const missing = (name: SettingName): Problem => ({ kind: 'missing', variable: name, text: `${name} is not set` });
  if (values.CC_LANGFUSE_INPUT === 'request' && values.CC_LANGFUSE_CAPTURE !== 'full')
    yield useless('CC_LANGFUSE_INPUT', 'request requires CC_LANGFUSE_CAPTURE=full');
  if (values.CC_LANGFUSE_OTLP_URL || bad.has('CC_LANGFUSE_OTLP_URL')) {
    if (values.CC_LANGFUSE_SCORES)
      yield useless('CC_LANGFUSE_SCORES', 'a Collector cannot take scores, only Langfuse can');
    if (values.CC_LANGFUSE_TRANSPORT === 'ingestion')
      yield useless('CC_LANGFUSE_TRANSPORT', 'a Collector only accepts OTLP');
    return;
  }
  if (values.LANGFUSE_PUBLIC_KEY === undefined) yield missing('LANGFUSE_PUBLIC_KEY');
  const hasCommand = values.CC_LANGFUSE_SECRET_KEY_COMMAND !== undefined;
  if (values.LANGFUSE_SECRET_KEY === undefined && !hasCommand) yield missing('LANGFUSE_SECRET_KEY');
  if (values.LANGFUSE_SECRET_KEY !== undefined && hasCommand)
    yield useless('CC_LANGFUSE_SECRET_KEY_COMMAND', 'is not run, because LANGFUSE_SECRET_KEY is set');
  if (Object.keys(values.CC_LANGFUSE_OTLP_HEADERS).length > 0)
    yield useless('CC_LANGFUSE_OTLP_HEADERS', 'has no effect without CC_LANGFUSE_OTLP_URL');
  if (values.CC_LANGFUSE_OTLP_SEMCONV !== 'none')
    yield useless('CC_LANGFUSE_OTLP_SEMCONV', 'has no effect without CC_LANGFUSE_OTLP_URL');
}

/** Loads the module that checks the user's own rules only if there are any: few users have some. */
async function readRedactionRules(text: string | undefined): Promise<OwnRules[]> {
  if (text === undefined) return [];
  const { parseRedactionRules } = await import('./redaction-rules.lazy.js');
  return [parseRedactionRules(text)];
}

/** A setting that an environment has, valid or not. */
export interface GivenSetting {
  readonly name: SettingName;
  /** The variable that the value comes from. */
  readonly variable: string;
  readonly value: string;
}

export function givenSettings(env: NodeJS.ProcessEnv): GivenSetting[] {
  return SETTING_NAMES.flatMap((name) => {
    const variable = variableFor(name, env);
    return variable === undefined ? [] : [{ name, variable, value: (env[variable] ?? '').trim() }];
  });
}

/** Returns the variable that a setting is read from: the strongest of its names that has a value. */
export function variableFor(name: SettingName, env: NodeJS.ProcessEnv): string | undefined {
  return variableNames(name).find((variable) => isSet(env[variable]));
}

export function isSet(value = ''): boolean {
  return value.trim() !== '';
}

/** Whether a variable belongs to this program; unknown names with its prefix do, too. */
export function isSetting(variable: string): boolean {
  return variable.startsWith('CC_LANGFUSE_') || SETTING_NAMES.some((name) => variableNames(name).includes(variable));
}

const SESSION_SETTINGS = SETTING_NAMES.filter((name) => ['describes', 'restricts'].includes(SETTINGS[name].kind));
const SESSION_VARIABLES = SESSION_SETTINGS.flatMap(variableNames);

export function isOfKind(variable: string, kind: SettingKind): boolean {
  return SETTING_NAMES.some((name) => SETTINGS[name].kind === kind && variableNames(name).includes(variable));
}

/** The credentials that each server gets. */
export const SECRETS_OF_SERVERS: readonly (readonly [SettingName, readonly SettingName[]])[] = [
  ['LANGFUSE_BASE_URL', ['LANGFUSE_SECRET_KEY', 'CC_LANGFUSE_SECRET_KEY_COMMAND', 'CC_LANGFUSE_HEADERS']],
  ['CC_LANGFUSE_OTLP_URL', ['CC_LANGFUSE_OTLP_HEADERS']],
];

/** Whether a variable names a server, or is one of its credentials. */
export function isOfServer(variable: string): boolean {
  return SECRETS_OF_SERVERS.flat(2).some((name) => variableNames(name).includes(variable));
}

/** Whether a project's settings may set a variable: always, as a part of a destination of their own, or never. */
export function whenVariableOfProject(variable: string): SettingDefinition['ofProject'] {
  const name = SETTING_NAMES.find((each) => variableNames(each).includes(variable));
  return name === undefined ? undefined : whenOfProject(name);
}

/** Whether an environment names a destination with everything that it needs. */
export function hasDestination(env: NodeJS.ProcessEnv): boolean {
  const has = (name: SettingName) => variableFor(name, env) !== undefined;
  const hasSecretKey = has('LANGFUSE_SECRET_KEY') || has('CC_LANGFUSE_SECRET_KEY_COMMAND');
  return has('CC_LANGFUSE_OTLP_URL') || (has('LANGFUSE_PUBLIC_KEY') && hasSecretKey);
}

/**
 * Adds the restrictions of other environments: the strictest win. Those of projects come last, and only restrict: what cannot be read
 * does not count, unless it has a strict fallback or holds everything back, and none lifts a default.
 */
export function restrict(
  env: NodeJS.ProcessEnv,
  others: readonly NodeJS.ProcessEnv[],
  ofProjects: readonly NodeJS.ProcessEnv[] = [],
): NodeJS.ProcessEnv {
  const restricted = { ...env };
  for (const name of SETTING_NAMES) {
    const { combine, default: usual }: SettingDefinition = SETTINGS[name];
    const list = (each: NodeJS.ProcessEnv) => (isSet(each[name]) ? [each[name] ?? ''] : []);
    const own = [env, ...others].flatMap(list);
    const theirs = ofProjects.filter((each) => !isIgnoredRestriction(name, each)).flatMap(list);
    const isUsual = own.length === 0 && theirs.length > 0 && usual !== undefined;
    const values = [...(isUsual ? [usual] : own), ...theirs];
    const strictest = combine && values.length > 0 ? values.reduce(combine) : undefined;
    if (strictest !== undefined && !(isUsual && strictest === usual)) restricted[name] = strictest;
  }
  return restricted;
}

/** Whether a variable has a setting's default. */
export function isDefault(variable: string, env: NodeJS.ProcessEnv): boolean {
  return givenSettings(env).some((given) => {
    const { default: usual }: SettingDefinition = SETTINGS[given.name];
    return given.variable === variable && given.value.toLowerCase() === usual;
  });
}

/** The restrictions in a project's settings that cannot be read. */
export function findIgnoredRestrictions(env: NodeJS.ProcessEnv): SettingName[] {
  return SETTING_NAMES.filter((name) => SETTINGS[name].kind === 'restricts' && isIgnoredRestriction(name, env));
}

function isIgnoredRestriction(name: SettingName, env: NodeJS.ProcessEnv): boolean {
  const { schema, default: usual, fallback }: SettingDefinition = SETTINGS[name];
  const isIgnorable = usual !== undefined && fallback === undefined;
  return isIgnorable && isSet(env[name]) && !schema.safeParse(env[name]?.trim()).success;
}

/**
 * Returns the variables that decide what of a run's turns is sent, and what is said about them. They are kept with the run, since
 * another run, with settings of its own, may have to send its turns.
 */
export function describingVariables(env: NodeJS.ProcessEnv): { [variable: string]: string } {
  const userVariable = variableFor('LANGFUSE_USER_ID', env);
  const isFromGit = userVariable !== undefined && env[userVariable]?.trim() === GIT;
  const variables = [...SESSION_VARIABLES, ...(isFromGit ? IDENTITY_VARIABLES : [])];
  return Object.fromEntries(variables.flatMap((name) => (isSet(env[name]) ? [[name, env[name] ?? '']] : [])));
}

/** Whether variables mute a session from its first moment. */
export function isMuteSet({ CC_LANGFUSE_MUTE: value }: NodeJS.ProcessEnv = {}): boolean {
  return isSet(value) && !isFalse(value ?? '');
}

/** Returns an environment in which what describes and restricts is what a run was given. */
export function withGivenVariables(env: NodeJS.ProcessEnv, given: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const replaced = [...SESSION_VARIABLES, ...IDENTITY_VARIABLES];
  const others = Object.fromEntries(Object.entries(env).filter(([name]) => !replaced.includes(name)));
  return { ...others, ...given };
}
