import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stateFolder } from '../../config/claude-folder.js';
import { sessionFileName } from '../../state/lock.js';

const REFUSED = 'cc-langfuse_refused';
const TOLD = 'cc-langfuse_told';

/**
 * What the user is to be told in the terminal, once in a session: that nothing is exported, since keys are missing or the
 * last run had them refused. On a good day this looks for one file that is not there.
 */
export function noticeFor(env: NodeJS.ProcessEnv, sessionId: string): string | undefined {
  const has = (name: string) => Boolean(env[`CC_LANGFUSE_${name}`]?.trim() || env[`LANGFUSE_${name}`]?.trim());
  const needed = env.CC_LANGFUSE_OTLP_URL?.trim() ? [] : ['PUBLIC_KEY', 'SECRET_KEY'];
  const missing = needed.filter((name) => !has(name)).map((name) => `LANGFUSE_${name}`);
  const folder = stateFolder(env);
  const problem = missing.length > 0 ? `${missing.join(' and ')} not set` : readRefusal(folder, env);
  return problem !== undefined && isFirstTime(folder, sessionId)
    ? `cc-langfuse: ${problem}. Nothing is exported. Run: cc-langfuse doctor`
    : undefined;
}

/** Keeps for the next hook that the receiver has let nothing in, or that it has; without an answer, neither. */
export function keepRefusal(
  folder: string,
  status: number | undefined,
  wordsFor: (status: number) => string,
  env: NodeJS.ProcessEnv,
): void {
  if (status === undefined) return;
  const path = join(folder, REFUSED);
  const isRefusal = status === 401 || status === 403;
  if (isRefusal) writeFileSync(path, `${keysIn(env)}\n${wordsFor(status)}`, { mode: 0o600 });
  else rmSync(path, { force: true });
}

/** What was said to these very keys. */
function readRefusal(folder: string, env: NodeJS.ProcessEnv): string | undefined {
  try {
    const [keys, refusal] = readFileSync(join(folder, REFUSED), 'utf8').split('\n');
    return keys === keysIn(env) ? refusal : undefined;
  } catch {
    return undefined;
  }
}

/** Tells keys from others without naming them. Loaded where there is a refusal: the module alone takes 2 ms. */
function keysIn(env: NodeJS.ProcessEnv): string {
  const { createHash } = process.getBuiltinModule('node:crypto');
  const keys = ['PUBLIC_KEY', 'SECRET_KEY', 'BASE_URL', 'BASEURL', 'HOST', 'OTLP_URL', 'OTLP_HEADERS'];
  const values = keys.flatMap((name) => [env[`CC_LANGFUSE_${name}`], env[`LANGFUSE_${name}`]]);
  return createHash('sha256').update(JSON.stringify(values)).digest('hex');
}

function isFirstTime(folder: string, sessionId: string): boolean {
  try {
    const told = join(folder, TOLD);
    mkdirSync(told, { recursive: true, mode: 0o700 });
    writeFileSync(join(told, sessionFileName(sessionId)), '', { flag: 'wx', mode: 0o600 });
    forgetAllBut(TOLD_KEPT, told);
    return true;
  } catch {
    return false;
  }
}

const TOLD_KEPT = 100;

function forgetAllBut(kept: number, folder: string): void {
  const files = readdirSync(folder).map((name) => join(folder, name));
  if (files.length <= kept) return;
  const oldestFirst = files.toSorted((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs);
  for (const file of oldestFirst.slice(0, -kept)) rmSync(file, { force: true });
}
