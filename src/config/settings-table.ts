import type * as z from 'zod/mini';
import { TAG_KINDS } from '../observations/build/tags.js';
import { ABSOLUTE_PATH } from './platform.js';
import * as restrictions from './restrictions.js';
import * as formats from './setting-formats.js';

/**
 * What a setting is for: where the traces are sent (`destination`, `secret`), what leaves the machine (`restricts`), what the
 * traces say about a session (`describes`), what started the run (`caller`), and how the program runs (`run`).
 */
export type SettingKind = 'destination' | 'secret' | 'restricts' | 'describes' | 'caller' | 'run';

export interface SettingDefinition {
  readonly kind: SettingKind;
  /** For a person, in docs/settings.md. */
  readonly help: string;
  readonly schema: z.ZodMiniType<unknown, string>;
  /** As one would write it. */
  readonly default?: string;
  /** Replaces a bad value where the default would send more than the user meant to. */
  readonly fallback?: string;
  readonly aliases?: readonly string[];
  /**
   * Whether a project's settings may set it, as they may everything that describes or restricts: always, or if the user has
   * installed a destination there. Whoever wrote the project chooses nothing else.
   */
  readonly ofProject?: 'always' | 'installed';
  /** Joins two values of a setting that restricts, so that what either of them forbids stays forbidden. */
  readonly combine?: (a: string, b: string) => string;
}

/**
 * All settings, by the variable that a user sets. `CC_` before a `LANGFUSE_` name is optional. The Langfuse SDKs do not have
 * the settings that are named `CC_LANGFUSE_` here, or (`LANGFUSE_TIMEOUT`, in seconds) give them another meaning.
 */
export const SETTINGS = {
  // cli.ts reads this one and CC_LANGFUSE_WAIT itself, and hook.sh also CC_LANGFUSE_LIVE, before anything is loaded.
  TRACE_TO_LANGFUSE: {
    kind: 'run',
    help: '`true` turns the export on; anything else turns it off. `CC_TRACE_TO_LANGFUSE=false` in the shell turns it off for one run.',
    schema: formats.text,
    default: 'false',
    ofProject: 'always',
  },
  LANGFUSE_PUBLIC_KEY: {
    kind: 'destination',
    help: 'Public key of the Langfuse project.',
    schema: formats.text,
    ofProject: 'installed',
  },
  LANGFUSE_SECRET_KEY: {
    kind: 'secret',
    help: 'Secret key of the Langfuse project.',
    schema: formats.text,
    ofProject: 'installed',
  },
  CC_LANGFUSE_PROJECT_KEYS: {
    kind: 'destination',
    help: 'The public keys that the project has had, the first one first, if they were replaced: `pk-lf-1,pk-lf-2`. With any of them, what waits for another is sent.',
    schema: formats.list,
    default: '',
    ofProject: 'installed',
  },
  CC_LANGFUSE_SECRET_KEY_COMMAND: {
    kind: 'secret',
    help: 'A command that prints the secret key, instead of `LANGFUSE_SECRET_KEY`. Hooks take it only from your own or managed settings.',
    schema: formats.text,
  },
  LANGFUSE_BASE_URL: {
    kind: 'destination',
    help: 'URL of the Langfuse server. It may be that of a page of your project.',
    schema: formats.serverUrl,
    default: 'https://cloud.langfuse.com',
    aliases: ['LANGFUSE_BASEURL', 'LANGFUSE_HOST'],
    ofProject: 'installed',
  },
  CC_LANGFUSE_PROJECT_ID: {
    kind: 'destination',
    help: 'Id of the project, as in the address of its page: for links, if the keys may not read.',
    schema: formats.projectId,
    ofProject: 'installed',
  },
  CC_LANGFUSE_HEADERS: {
    kind: 'secret',
    help: 'Headers for every request to Langfuse, for a gateway in front of it: `name=value,name=value`, values percent-encoded.',
    schema: formats.gatewayHeaders,
    default: '',
  },
  CC_LANGFUSE_TRANSPORT: {
    kind: 'destination',
    help: "Langfuse's API to use: `otlp`, `ingestion` (for servers before 3.22), or `auto` to find out.",
    schema: formats.oneOf('auto', 'otlp', 'ingestion'),
    default: 'auto',
    ofProject: 'installed',
  },
  CC_LANGFUSE_OTLP_URL: {
    kind: 'destination',
    help: 'URL of an OpenTelemetry Collector that receives the traces instead of Langfuse. No keys are needed, and none are sent.',
    schema: formats.tracesUrl,
    ofProject: 'installed',
  },
  CC_LANGFUSE_OTLP_HEADERS: {
    kind: 'secret',
    help: 'Headers for the Collector: `name=value,name=value`, values percent-encoded.',
    schema: formats.otlpHeaders,
    default: '',
    ofProject: 'installed',
  },
  CC_LANGFUSE_OTLP_SEMCONV: {
    kind: 'destination',
    help: "`gen_ai` adds the attributes of OpenTelemetry's conventions for generative AI to what the Collector gets, for other backends than Langfuse.",
    schema: formats.oneOf('none', 'gen_ai'),
    default: 'none',
    ofProject: 'installed',
  },
  CC_LANGFUSE_CAPTURE: {
    kind: 'restricts',
    help: 'How much is sent: `full`, `no_tool_io` (without the inputs and outputs of tools) or `metadata` (no content).',
    schema: formats.oneOf('full', 'no_tool_io', 'metadata'),
    default: 'full',
    fallback: 'metadata',
    combine: restrictions.strictestOf('metadata', 'no_tool_io', 'full'),
  },
  CC_LANGFUSE_REDACT: {
    kind: 'restricts',
    help: '`false` sends secrets as they are, instead of `[redacted]`.',
    schema: formats.toggle,
    default: 'true',
    combine: restrictions.strictestOf('true', 'false'),
  },
  CC_LANGFUSE_REDACT_EXTRA: {
    kind: 'restricts',
    help: 'More text to redact: a JSON array of `{"pattern", "replace", "flags"}`. Patterns are JavaScript regular expressions.',
    schema: formats.text,
    combine: restrictions.joinJsonArrays,
  },
  CC_LANGFUSE_MEDIA: {
    kind: 'restricts',
    help: '`false` keeps images and documents on this machine. A Collector never gets any.',
    schema: formats.toggle,
    default: 'true',
    fallback: 'false',
    combine: restrictions.strictestOf('false', 'true'),
  },
  CC_LANGFUSE_MAX_CHARS: {
    kind: 'restricts',
    help: 'The longest field, in characters. A longer one is cut and marked.',
    schema: formats.wholeNumber,
    default: '200000',
    combine: restrictions.smallest,
  },
  CC_LANGFUSE_INPUT: {
    kind: 'restricts',
    help: 'Input of a generation: `answered` (the messages that it answers), `turn` (all messages of the turn so far) or `request` (the whole request; only with `CC_LANGFUSE_CAPTURE=full`).',
    schema: formats.oneOf('answered', 'turn', 'request'),
    default: 'answered',
    combine: restrictions.strictestOf('answered', 'turn', 'request'),
  },
  CC_LANGFUSE_EXCLUDE: {
    kind: 'restricts',
    help: 'Folders whose sessions are never sent, subfolders included: absolute paths or globs, comma-separated or as a JSON array.',
    schema: formats.folders,
    combine: restrictions.joinFolders,
  },
  CC_LANGFUSE_MUTE: {
    kind: 'restricts',
    help: '`true` mutes the session from its start, as `cc-langfuse mute` would. `cc-langfuse unmute` ends it. Any value but `false` counts as `true`.',
    schema: formats.unlessFalse,
    default: 'false',
    combine: restrictions.unlessBothFalse,
  },
  LANGFUSE_USER_ID: {
    kind: 'describes',
    help: "User of the traces. `git` means git's e-mail address in the turn's folder.",
    schema: formats.text,
  },
  LANGFUSE_TAGS: { kind: 'describes', help: 'Tags of the traces, comma-separated.', schema: formats.list, default: '' },
  CC_LANGFUSE_AUTO_TAGS: {
    kind: 'describes',
    help: 'Kinds of tags that are added automatically, comma-separated, or `none`.',
    schema: formats.tagKinds,
    default: TAG_KINDS.join(','),
  },
  // It is OpenTelemetry's. Claude Code passes no variable of that prefix to hooks, so it is read from the settings files.
  OTEL_RESOURCE_ATTRIBUTES: {
    kind: 'describes',
    help: "More tags, in the format of Claude Code's own telemetry: `department=engineering,team.id=platform` adds `department:engineering` and `team.id:platform`.",
    schema: formats.resourceTags,
    default: '',
  },
  LANGFUSE_METADATA: {
    kind: 'describes',
    help: 'Additional metadata of the traces, a JSON object.',
    schema: formats.jsonObject,
    default: '{}',
  },
  LANGFUSE_TRACING_ENVIRONMENT: {
    kind: 'describes',
    help: 'Environment of the traces.',
    schema: formats.matching(
      /^(?!langfuse)[a-z0-9-_]{1,40}$/,
      'expected up to 40 characters of a-z, 0-9, - and _, not starting with "langfuse"',
    ),
  },
  LANGFUSE_RELEASE: { kind: 'describes', help: 'Release of the traces.', schema: formats.text },
  CC_LANGFUSE_TRACE_NAME: {
    kind: 'describes',
    help: 'Name of the traces, with `{n}`, `{project}`, `{repository}`, `{title}` and `{prompt}` filled in.',
    schema: formats.traceName,
    default: '{repository}',
  },
  CC_LANGFUSE_SCORES: {
    kind: 'describes',
    help: '`true` adds scores to each turn. A Collector never gets any.',
    schema: formats.toggle,
    default: 'false',
  },
  CC_LANGFUSE_TRACEPARENT: {
    kind: 'caller',
    help: "A W3C traceparent: this run's turns become children of that span.",
    schema: formats.traceparent,
  },
  CC_LANGFUSE_TRACE_SEED: {
    kind: 'caller',
    help: 'Makes trace ids predictable: "Turn N" of this run\'s session gets `createTraceId("seed:N")` of the Langfuse SDKs.',
    schema: formats.text,
  },
  CC_LANGFUSE_EXPERIMENT: {
    kind: 'caller',
    help: 'The item of a Langfuse experiment that this run works on, as a JSON object. See [embedding](embedding.md#datasets-and-experiments).',
    schema: formats.experiment,
  },
  CC_LANGFUSE_ALLOW_OPT_OUT: {
    kind: 'run',
    help: 'In managed settings only. With `false`, users and projects cannot turn tracing off, exclude folders or mute sessions.',
    schema: formats.toggle,
    default: 'true',
  },
  CC_LANGFUSE_TIMEOUT: {
    kind: 'run',
    help: 'Milliseconds after which a run in the foreground gives up. The next run continues. At most 1,500 while the server is known to be down.',
    schema: formats.wholeNumber,
    default: '10000',
  },
  CC_LANGFUSE_LIVE: {
    kind: 'run',
    help: '`true` sends the finished parts of a turn while it runs. It needs the hook that `install --live` registers.',
    schema: formats.toggle,
    default: 'false',
    ofProject: 'always',
  },
  CC_LANGFUSE_BUDGET: {
    kind: 'run',
    help: 'Dollars at list prices: `turn=5 day=50`, or one of them. If a turn, or all sessions of a day, use more, the terminal says so once. A number alone is for a day. See [limits](cost.md#limits).',
    schema: formats.budget,
  },
  CC_LANGFUSE_WAIT: {
    kind: 'run',
    help: '`1` makes Claude Code wait after each turn until it is acknowledged. For containers that are killed without a SessionEnd.',
    schema: formats.text,
  },
  CC_LANGFUSE_STATE_DIR: {
    kind: 'run',
    help: 'Folder for the state, the log and locks, instead of `~/.claude/state`. It must be an absolute path.',
    schema: formats.matching(ABSOLUTE_PATH, 'expected an absolute path'),
  },
  CC_LANGFUSE_DEBUG: {
    kind: 'run',
    help: '`true` also logs what was exported.',
    schema: formats.toggle,
    default: 'false',
  },
} satisfies { readonly [name: string]: SettingDefinition };

type Table = typeof SETTINGS;
export type SettingName = keyof Table;
export type SettingValues = {
  readonly [name in SettingName]:
    | z.output<Table[name]['schema']>
    | (Table[name] extends { readonly default: string } ? never : undefined);
};

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

/** Whether a project's settings may always set it, or only as a part of a destination that the user has installed there. */
export function whenOfProject(name: SettingName): SettingDefinition['ofProject'] {
  const { kind, ofProject }: SettingDefinition = SETTINGS[name];
  return kind === 'describes' || kind === 'restricts' ? 'always' : ofProject;
}

/** Returns the variables that can hold a setting, the strongest first. */
export function variableNames(name: SettingName): string[] {
  const { aliases = [] }: SettingDefinition = SETTINGS[name];
  const names = [name, ...aliases];
  return [...names.filter((each) => !each.startsWith('CC_')).map((each) => `CC_${each}`), ...names];
}
