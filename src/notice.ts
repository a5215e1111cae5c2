import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileNameOf, stateFolder } from './state-folder.js';

const REFUSED = 'cc-langfuse_refused';
const TOLD = 'cc-langfuse_told';

/**
 * What the user is to be told in the terminal, once in a session: that nothing is exported, since keys are missing or the
 * last run had them refused. On a good day this looks for one file that is not there.
 */
export function noticeFor(env: NodeJS.ProcessEnv, sessionId: string): string | undefined {
  const has = (name: string) => Boolean(env[`CC_LANGFUSE_${name}`] || env[`LANGFUSE_${name}`]);
  const missing = ['PUBLIC_KEY', 'SECRET_KEY'].filter((name) => !has(name)).map((name) => `LANGFUSE_${name}`);
  const folder = stateFolder(env);
  const problem = missing.length > 0 ? `${missing.join(' and ')} not set` : readRefusal(folder);
  return problem !== undefined && isFirstTime(folder, sessionId)
    ? `cc-langfuse: ${problem}. Nothing is exported; see the settings in its README.`
    : undefined;
}

/** Keeps for the next hook that the server refused the keys, or that it no longer does. */
export function keepRefusal(folder: string, refusal: string | undefined): void {
  const path = join(folder, REFUSED);
  if (refusal === undefined) rmSync(path, { force: true });
  else writeFileSync(path, refusal, { mode: 0o600 });
}

function readRefusal(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, REFUSED), 'utf8');
  } catch {
    return undefined;
  }
}

function isFirstTime(folder: string, sessionId: string): boolean {
  try {
    mkdirSync(join(folder, TOLD), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, TOLD, fileNameOf(sessionId)), '', { flag: 'wx', mode: 0o600 });
    return true;
  } catch {
    return false;
  }
}
