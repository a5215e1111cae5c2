import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
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

/** Keeps for the next hook that the server at this host has refused the keys, or that it has not; without an answer, neither. */
export function keepRefusal(folder: string, status: number | undefined, host: string): void {
  if (status === undefined) return;
  const path = join(folder, REFUSED);
  const isRefusal = status === 401 || status === 403;
  if (isRefusal) writeFileSync(path, `Langfuse refused the keys (${status}) at ${host}`, { mode: 0o600 });
  else rmSync(path, { force: true });
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
    const told = join(folder, TOLD);
    mkdirSync(told, { recursive: true, mode: 0o700 });
    writeFileSync(join(told, fileNameOf(sessionId)), '', { flag: 'wx', mode: 0o600 });
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
