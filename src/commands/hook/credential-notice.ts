import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ownCommand } from '../../cli/own-command.js';
import { stateFolder } from '../../config/claude-folder.js';
import { attempt } from '../../shared/attempt.js';
import { sessionFolder } from '../../state/session-folder.js';

const REFUSED = 'cc-langfuse_refused';
const NOTIFIED = 'told';

const ENTER_KEYS =
  'Enter them: /plugin, Installed, cc-langfuse, Configure options. Or set them in the env block of your settings';

/** Returns what the terminal should say, once per session. Normally this only looks for one file that does not exist. */
export function takeNotice(env: NodeJS.ProcessEnv, sessionId: string): string | undefined {
  const has = (name: string) => Boolean(env[`CC_LANGFUSE_${name}`]?.trim() || env[`LANGFUSE_${name}`]?.trim());
  const needed = env.CC_LANGFUSE_OTLP_URL?.trim() ? [] : ['PUBLIC_KEY', 'SECRET_KEY'];
  const isKnown = (name: string) => has(name) || (name === 'SECRET_KEY' && has('SECRET_KEY_COMMAND'));
  const missing = needed.filter((name) => !isKnown(name)).map((name) => `LANGFUSE_${name}`);
  const folder = stateFolder(env);
  const problem = readRefusal(folder, env) ?? (missing.length > 0 ? `${missing.join(' and ')} not set` : undefined);
  if (problem === undefined || !isFirstTime(folder, sessionId)) return undefined;
  // The plugin can be enabled without keys. Its user need not have the program on the path.
  const isUnconfigured = missing.length > 0 && env.CLAUDE_PLUGIN_ROOT !== undefined;
  const advice = isUnconfigured ? ENTER_KEYS : `Run: ${ownCommand()} doctor`;
  return `cc-langfuse: ${problem}. Nothing is exported. ${advice}`;
}

/** Tells the next hook why nothing can be sent with these settings, or that something can again. */
export function saveRefusal(folder: string, refusal: string | undefined, env: NodeJS.ProcessEnv): void {
  const path = join(folder, REFUSED);
  if (refusal === undefined) rmSync(path, { force: true });
  else {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(path, `${hashKeys(env)}\n${refusal}`, { mode: 0o600 });
  }
}

/** Returns what was saved for these settings. */
function readRefusal(folder: string, env: NodeJS.ProcessEnv): string | undefined {
  const text = attempt(() => readFileSync(join(folder, REFUSED), 'utf8'));
  const [keys, refusal] = text?.split('\n') ?? [];
  return text !== undefined && keys === hashKeys(env) ? refusal : undefined;
}

/** Identifies settings without naming them. The module is loaded only if there is a refusal: it takes 2 ms. */
function hashKeys(env: NodeJS.ProcessEnv): string {
  const { createHash } = process.getBuiltinModule('node:crypto');
  const keys = [
    ...['PUBLIC_KEY', 'SECRET_KEY', 'BASE_URL', 'BASEURL', 'HOST'],
    ...['SECRET_KEY_COMMAND', 'HEADERS', 'OTLP_URL', 'OTLP_HEADERS', 'REDACT_EXTRA'],
  ];
  const values = keys.flatMap((name) => [env[`CC_LANGFUSE_${name}`], env[`LANGFUSE_${name}`]]);
  return createHash('sha256').update(JSON.stringify(values)).digest('hex');
}

function isFirstTime(folder: string, sessionId: string): boolean {
  try {
    const session = sessionFolder(folder, sessionId);
    mkdirSync(session, { recursive: true, mode: 0o700 });
    writeFileSync(join(session, NOTIFIED), '', { flag: 'wx', mode: 0o600 });
    return true;
  } catch {
    return false;
  }
}
