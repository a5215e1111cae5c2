// Every hook loads this before anything else, so it imports nothing.

/** What acts when Node starts, before any code of this program. The launcher, hook.sh, has the same list. */
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

/** The launcher keeps a variable that a project may have set under this name, until its files have been parsed. */
const HELD = 'HOOK_SH_HELD_';

/** Returns the environment as it was before the launcher put variables aside, unless a project has forged that. */
export function withHeldVariables(env: NodeJS.ProcessEnv, namedByProject: ReadonlySet<string>): NodeJS.ProcessEnv {
  const held = Object.entries(env).filter(([name]) => name.startsWith(HELD));
  if (held.length === 0) return env;
  const others = Object.entries(env).filter(([name]) => !name.startsWith(HELD));
  const own = held.filter(([name]) => !namedByProject.has(comparableName(name)));
  return Object.fromEntries([...others, ...own.map(([name, value]) => [name.slice(HELD.length), value])]);
}

/** Whether Node would start differently with these variables. */
export function startsDifferently(now: NodeJS.ProcessEnv, wanted: NodeJS.ProcessEnv): boolean {
  return NODE_START_VARIABLES.some((name) => (findVariable(now, name) ?? '') !== (findVariable(wanted, name) ?? ''));
}

/** Returns an environment whose Node starts as with another one. */
export function withNodeStartOf(env: NodeJS.ProcessEnv, wanted: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const others = Object.entries(env).filter(([name]) => !NODE_START_VARIABLES.includes(comparableName(name)));
  const start = NODE_START_VARIABLES.flatMap((name) => {
    const value = findVariable(wanted, name);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries([...others, ...start]);
}

function findVariable(env: NodeJS.ProcessEnv, wanted: string): string | undefined {
  const name = Object.keys(env).find((each) => comparableName(each) === wanted);
  return name === undefined ? undefined : env[name];
}

/** Windows does not distinguish upper and lower case in the names of variables. */
export function comparableName(name: string): string {
  return process.platform === 'win32' ? name.toUpperCase() : name;
}
