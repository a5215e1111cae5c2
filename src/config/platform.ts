import type { SpawnOptionsWithStdioTuple, StdioNull, StdioPipe } from 'node:child_process';

// Every hook loads this before anything else, so it imports nothing. The launcher, hook.sh, does the same by hand:
// launcher-table.test.ts runs it for each row.

/** Why Claude Code waits until an event has been handled. Otherwise that is done in the background. */
export const WAITS = {
  always: () => true,
  wanted: ({ CC_LANGFUSE_WAIT }: NodeJS.ProcessEnv) => CC_LANGFUSE_WAIT === '1',
  /** The container may end with Claude Code. */
  headless: ({ CLAUDE_CODE_ENTRYPOINT = '', CI }: NodeJS.ProcessEnv) =>
    CLAUDE_CODE_ENTRYPOINT === '' || CLAUDE_CODE_ENTRYPOINT.startsWith('sdk') || Boolean(CI),
} as const;

export interface HookEvent {
  /** Who registers a hook for it: every installation, `install --live`, that with a budget, or the plugin alone. */
  readonly registeredBy: 'install' | 'install --live' | 'install --live with a budget' | 'plugin';
  /** How long the hook may take. All of SessionEnd's together have 1.5 s, unless one asks for more. */
  readonly seconds: number;
  /** The command of the program that handles it. If Claude Code waits, `hook` takes the place of `worker`. */
  readonly command: 'worker' | 'follow' | 'slash-command' | 'none';
  readonly waits: readonly (keyof typeof WAITS)[];
  /** What happens with tracing off. If it was on in the session before, a worker records that, and nobody waits for it. */
  readonly withTracingOff: 'nothing' | 'recorded if it was on' | 'as usual';
  /** Whether the hook may print a message for the user. What others print may become a part of the prompt. */
  readonly mayNotify: boolean;
  /** Whether the command gets the length that the transcript had: what is written later belongs to the run that begins. */
  readonly measures: boolean;
}

const END_OF_TURN: HookEvent = {
  registeredBy: 'install',
  seconds: 15,
  command: 'worker',
  waits: ['wanted'],
  withTracingOff: 'recorded if it was on',
  mayNotify: true,
  measures: false,
};

/** What is started for each event of Claude Code. */
export const HOOK_EVENTS: { readonly [event: string]: HookEvent } = {
  // It must not hold anyone up.
  SessionStart: { ...END_OF_TURN, seconds: 5, waits: [], measures: true },
  Stop: END_OF_TURN,
  StopFailure: END_OF_TURN,
  SessionEnd: { ...END_OF_TURN, waits: ['wanted', 'headless'] },
  // A prompt is about to be given, in a session whose turns are to be seen while they run.
  UserPromptSubmit: {
    registeredBy: 'install --live',
    seconds: 5,
    command: 'follow',
    waits: [],
    withTracingOff: 'nothing',
    mayNotify: false,
    measures: false,
  },
  // A tool has run, in a session with a budget: if a process in the background has left a message, it is shown in the middle of the turn.
  PostToolUse: {
    registeredBy: 'install --live with a budget',
    seconds: 5,
    command: 'none',
    waits: [],
    withTracingOff: 'nothing',
    mayNotify: false,
    measures: false,
  },
  // The user has typed a command of the plugin, and waits for its answer.
  UserPromptExpansion: {
    registeredBy: 'plugin',
    seconds: 60,
    command: 'slash-command',
    waits: ['always'],
    withTracingOff: 'as usual',
    mayNotify: false,
    measures: false,
  },
};

/** How a process is started that outlives Claude Code: in a session of its own, with none of Claude Code's pipes. */
export const DETACHED: SpawnOptionsWithStdioTuple<StdioPipe, StdioNull, StdioNull> = {
  detached: true,
  stdio: ['pipe', 'ignore', 'ignore'],
  windowsHide: true,
};

/** On POSIX and on Windows. A relative path would be another folder for each project. */
export const ABSOLUTE_PATH = /^(?:\/|[A-Za-z]:[\\/]|\\\\)/;

/** Where the state is: the first variable that is set names the folder, and the state is so far below it. */
export const STATE_PLACES = [
  { variable: 'CC_LANGFUSE_STATE_DIR', below: '', isAbsolute: true },
  { variable: 'CLAUDE_CONFIG_DIR', below: '/state', isAbsolute: false },
  { variable: process.platform === 'win32' ? 'USERPROFILE' : 'HOME', below: '/.claude/state', isAbsolute: false },
] as const;

export function findStateFolder(env: NodeJS.ProcessEnv): string | undefined {
  const folders = STATE_PLACES.flatMap(({ variable, below, isAbsolute }) => {
    const folder = isAbsolute ? env[variable]?.trim() : env[variable];
    return folder && (!isAbsolute || ABSOLUTE_PATH.test(folder)) ? [folder + below] : [];
  });
  return folders[0];
}

/** What acts when Node starts, before any code of this program. */
export const NODE_START_VARIABLES = [
  'NODE_OPTIONS',
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_SYSTEM_CA',
  'NODE_USE_ENV_PROXY',
  'NODE_PATH',
  'NODE_COMPILE_CACHE',
  'NODE_V8_COVERAGE',
  'NODE_REDIRECT_WARNINGS',
  'NODE_ICU_DATA',
  'NODE_DEBUG',
  'NODE_DEBUG_NATIVE',
  'NODE_CHANNEL_FD',
  'NODE_UNIQUE_ID',
  'OPENSSL_CONF',
  'OPENSSL_MODULES',
  'OPENSSL_ENGINES',
  'LD_PRELOAD',
  'LD_AUDIT',
  'LD_LIBRARY_PATH',
  'DYLD_INSERT_LIBRARIES',
  'DYLD_LIBRARY_PATH',
  'DYLD_FRAMEWORK_PATH',
  'DYLD_FALLBACK_LIBRARY_PATH',
];

/** What the launcher itself would act on. */
export const LAUNCHER_VARIABLES = [
  'PATH',
  'HOME',
  'CLAUDE_CONFIG_DIR',
  'CC_LANGFUSE_STATE_DIR',
  'CC_LANGFUSE_WAIT',
  'CI',
];
