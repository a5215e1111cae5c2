import { NODE_START_VARIABLES } from './platform.js';

// Every hook loads this before anything else, so it imports next to nothing.

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
