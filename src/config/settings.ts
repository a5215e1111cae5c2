import { type GitIdentity, IDENTITY_VARIABLES, readGitIdentity } from '../git/identity.js';
import type { TagKind } from '../observations/build/tags.js';
import type { Capture } from '../observations/content/capture.js';
import type { Caller } from '../observations/model.js';
import { createRedactor, type Redact, type RedactionRule } from '../observations/redaction/redact.js';
import type { Json } from '../shared/json.js';
import { githubMetadata } from './github-actions.js';
import type { OtlpHeaders } from './otlp-headers.js';
import { Environment, type Name } from './settings-table.js';

export interface Settings {
  /** Undefined where keys or a good URL are missing: `problems` says which. */
  readonly destination: DestinationConfig | undefined;
  readonly userId: string | undefined;
  /** Where the user is known by the e-mail address that git has. */
  readonly gitIdentity: GitIdentity | undefined;
  readonly tags: readonly string[];
  readonly autoTags: readonly TagKind[];
  readonly metadata: { readonly [key: string]: Json };
  readonly environment: string | undefined;
  readonly release: string | undefined;
  readonly timeoutMs: number;
  readonly maxChars: number;
  /** None where secrets are to be sent as they are. */
  readonly redact: Redact | undefined;
  readonly capture: Capture;
  readonly scores: boolean;
  /** Whether images and documents go beside what refers to them. */
  readonly media: boolean;
  /** Whether a generation shows the whole request that it answers, or what is new in it. */
  readonly input: 'answered' | 'request';
  /** What has started this run: it holds for the run's own session alone. */
  readonly caller: Caller;
  readonly debug: boolean;
  /** A line for each setting that is missing or bad; none holds a value, since it may be a key. */
  readonly problems: readonly string[];
}

/** Where it all goes. */
export type DestinationConfig = LangfuseConfig | CollectorConfig;

export interface LangfuseConfig {
  readonly kind: 'langfuse';
  readonly baseUrl: URL;
  readonly publicKey: string;
  readonly secretKey: string;
  /** By which of its doors: `auto` takes the ingestion API where there is no OTLP endpoint. */
  readonly transport: 'auto' | 'otlp' | 'ingestion';
}

/** An OpenTelemetry Collector, or whatever else takes traces over OTLP/HTTP: what it does with them is its own affair. */
export interface CollectorConfig {
  readonly kind: 'collector';
  readonly url: URL;
  readonly headers: OtlpHeaders;
}

/** Settings that the Langfuse SDKs do not have, or (`LANGFUSE_TIMEOUT`, in seconds there) mean otherwise. */
const OURS_ONLY: readonly Name[] = [
  'TIMEOUT',
  'MAX_CHARS',
  'DEBUG',
  'CAPTURE',
  'REDACT',
  'REDACT_EXTRA',
  'AUTO_TAGS',
  'TRACEPARENT',
  'TRACE_SEED',
  'SCORES',
  'MEDIA',
  'INPUT',
  'OTLP_URL',
  'OTLP_HEADERS',
  'TRANSPORT',
];
/** Those that decide what of a session leaves, and what it is called there. */
const DESCRIBING: readonly Name[] = [
  'USER_ID',
  'TAGS',
  'AUTO_TAGS',
  'METADATA',
  'TRACING_ENVIRONMENT',
  'RELEASE',
  'MAX_CHARS',
  'CAPTURE',
  'REDACT',
  'REDACT_EXTRA',
  'SCORES',
  'MEDIA',
  'INPUT',
];
const OTHER_NAMES: { readonly [name in Name]?: readonly string[] } = { BASE_URL: ['BASEURL', 'HOST'] };

/** The user id that stands for the e-mail address that git has. */
const GIT = 'git';

/** Where a bad value must not mean that more leaves than was wanted. */
const FALLBACKS: { readonly [name in Name]?: string } = { CAPTURE: 'metadata', MEDIA: 'false' };

/** Reads the settings; a bad one is named, and its default stands. */
export async function readSettings(env: NodeJS.ProcessEnv): Promise<Settings> {
  const given: { [name: string]: string } = {};
  const variables: { [name: string]: string } = {};
  for (const { name, variable, value } of givenSettings(env)) {
    given[name] = value;
    variables[name] = variable;
  }
  const problems: string[] = [];
  const result = Environment.safeParse(given);
  const bad = result.success ? [] : result.error.issues;
  for (const {
    path: [name],
    message,
  } of bad) {
    problems.push(`${variables[String(name)]}: ${message}`);
    const fallback = FALLBACKS[name as Name];
    if (fallback === undefined) delete given[String(name)];
    else given[String(name)] = fallback;
  }
  const settings = Environment.parse(given);
  const { rules, problems: badRules } = await rulesIn(settings.REDACT_EXTRA);
  for (const problem of badRules) problems.push(`${variables.REDACT_EXTRA}: ${problem}`);
  const badNames = new Set(bad.map(({ path: [name] }) => String(name)));
  problems.push(...contradictionsIn(settings, badNames));
  return {
    destination: receiverIn(settings, badNames),
    userId: settings.USER_ID === GIT ? undefined : settings.USER_ID,
    gitIdentity: settings.USER_ID === GIT ? readGitIdentity(env) : undefined,
    tags: settings.TAGS,
    autoTags: settings.AUTO_TAGS,
    metadata: settings.METADATA,
    environment: settings.TRACING_ENVIRONMENT,
    release: settings.RELEASE,
    timeoutMs: settings.TIMEOUT,
    maxChars: settings.MAX_CHARS,
    capture: settings.CAPTURE,
    scores: settings.SCORES && settings.OTLP_URL === undefined,
    // A Collector has no place for them.
    media: settings.MEDIA && settings.OTLP_URL === undefined,
    // It holds what tools were given and gave, in the model's own words too.
    input: settings.CAPTURE === 'full' ? settings.INPUT : 'answered',
    redact: settings.REDACT ? createRedactor(rules) : undefined,
    caller: { parent: settings.TRACEPARENT, seed: settings.TRACE_SEED, metadata: githubMetadata(env) },
    debug: settings.DEBUG,
    problems,
  };
}

/** With a malformed URL or header nothing is sent: what stands there by default is another's server, or another's place on it. */
function receiverIn(settings: Environment, bad: ReadonlySet<string>): DestinationConfig | undefined {
  const { OTLP_URL: url, OTLP_HEADERS: headers, BASE_URL: baseUrl, TRANSPORT: transport } = settings;
  if (bad.has('OTLP_URL')) return undefined;
  if (url) return bad.has('OTLP_HEADERS') ? undefined : { kind: 'collector', url, headers };
  const { PUBLIC_KEY: publicKey, SECRET_KEY: secretKey } = settings;
  const isComplete = publicKey !== undefined && secretKey !== undefined && !bad.has('BASE_URL');
  return isComplete ? { kind: 'langfuse', baseUrl, publicKey, secretKey, transport } : undefined;
}

/** What does not go together, or is missing for where it is to go. */
function* contradictionsIn(settings: Environment, bad: ReadonlySet<string>) {
  if (settings.INPUT === 'request' && settings.CAPTURE !== 'full')
    yield 'CC_LANGFUSE_INPUT: a whole request goes only with CC_LANGFUSE_CAPTURE=full';
  if (settings.OTLP_URL || bad.has('OTLP_URL')) {
    if (settings.SCORES) yield 'CC_LANGFUSE_SCORES: a Collector takes none, only Langfuse does';
    if (settings.TRANSPORT === 'ingestion') yield 'CC_LANGFUSE_TRANSPORT: a Collector takes OpenTelemetry alone';
    return;
  }
  if (settings.PUBLIC_KEY === undefined) yield 'LANGFUSE_PUBLIC_KEY is not set';
  if (settings.SECRET_KEY === undefined) yield 'LANGFUSE_SECRET_KEY is not set';
  if (Object.keys(settings.OTLP_HEADERS).length > 0)
    yield 'CC_LANGFUSE_OTLP_HEADERS: without CC_LANGFUSE_OTLP_URL they go nowhere';
}

/** A setting as it stands in an environment, good or bad. */
export interface GivenSetting {
  readonly name: Name;
  /** The one that counts, of those that may say it. */
  readonly variable: string;
  readonly value: string;
}

export function givenSettings(env: NodeJS.ProcessEnv): GivenSetting[] {
  return (Object.keys(Environment.shape) as Name[]).flatMap((name) => {
    const variable = variableFor(name, env);
    return variable === undefined ? [] : [{ name, variable, value: (env[variable] ?? '').trim() }];
  });
}

/** Few have rules of their own, and what checks them is not to be loaded by all. */
async function rulesIn(text: string | undefined): Promise<{ rules: RedactionRule[]; problems: string[] }> {
  if (text === undefined) return { rules: [], problems: [] };
  const { readRules } = await import('./redaction-rules.lazy.js');
  return readRules(text);
}

/** The variables that describe a session, as they are set: another run may have to export it, under settings of its own. */
export function describingVariables(env: NodeJS.ProcessEnv): { [variable: string]: string } {
  const isFromGit = env[variableFor('USER_ID', env) ?? '']?.trim() === GIT;
  const variables = [...DESCRIBING.flatMap(variablesOf), ...(isFromGit ? IDENTITY_VARIABLES : [])];
  return Object.fromEntries(variables.flatMap((name) => (isSet(env[name]) ? [[name, env[name] ?? '']] : [])));
}

/** The settings with the variables that describe another session. */
export async function readSessionSettings(given: { [variable: string]: string }, env: NodeJS.ProcessEnv) {
  const own: string[] = [...DESCRIBING.flatMap(variablesOf), ...IDENTITY_VARIABLES];
  const others = Object.fromEntries(Object.entries(env).filter(([name]) => !own.includes(name)));
  return { options: await readSettings({ ...others, ...given }), given };
}

/** The variable that a setting is taken from: of its names the first that has a value. */
export function variableFor(name: Name, env: NodeJS.ProcessEnv): string | undefined {
  return variablesOf(name).find((candidate) => isSet(env[candidate]));
}

function isSet(value = ''): boolean {
  return value.trim() !== '';
}

/** Whether a variable is a setting of this program, by any of its names. */
export function isSetting(variable: string): boolean {
  const names = Object.keys(Environment.shape) as Name[];
  return /^(?:CC_LANGFUSE_|TRACE_TO_LANGFUSE$)/.test(variable) || names.flatMap(variablesOf).includes(variable);
}

function variablesOf(name: Name): string[] {
  const names = [name, ...(OTHER_NAMES[name] ?? [])];
  const ours = names.map((each) => `CC_LANGFUSE_${each}`);
  return OURS_ONLY.includes(name) ? ours : [...ours, ...names.map((each) => `LANGFUSE_${each}`)];
}
