import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const PROGRESS = /^(?!session\.json$)[^.]+\.json$/;

/** What is known of a session, and how far it has been sent where it was sent last. */
export type SessionState = { readonly [field: string]: unknown } & { readonly destination?: string };

export function sessionFile(stateFolder: string, session: string, name = 'session.json'): string {
  return join(stateFolder, 'cc-langfuse_sessions', session, name);
}

/** All sessions that the state knows, by their ids. */
export function readState(stateFolder: string): { [session: string]: SessionState } {
  const names = readdirSync(join(stateFolder, 'cc-langfuse_sessions')).filter((name) => !name.startsWith('.'));
  const known = names.flatMap((session) => {
    const files = readdirSync(join(stateFolder, 'cc-langfuse_sessions', session));
    if (!files.includes('session.json')) return [];
    return [[session, readSession(stateFolder, session, files)] as const];
  });
  return Object.fromEntries(known);
}

function readSession(stateFolder: string, session: string, files: readonly string[]): SessionState {
  const read = (name: string) => JSON.parse(readFileSync(sessionFile(stateFolder, session, name), 'utf8'));
  const { version: _, id: __, ...about } = read('session.json');
  const all = files.filter((name) => PROGRESS.test(name)).map((name) => ({ name, ...read(name) }));
  const [newest] = all.toSorted((a, b) => b.updated.localeCompare(a.updated));
  if (!newest) return about;
  const { name, version: ___, last_line: lastLine, turn_count: turnCount, ...progress } = newest;
  return { ...about, ...progress, lastLine, turnCount, destination: name.replace('.json', '') };
}

/** Changes fields of a session, or of its progress at a destination; those that are undefined go. */
export function changeState(stateFolder: string, session: string, change: object, destination = 'session'): void {
  const path = sessionFile(stateFolder, session, `${destination}.json`);
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...change }));
}

/** The names of the locks of all sessions and servers. */
export function listLocks(stateFolder: string): string[] {
  if (!existsSync(stateFolder)) return [];
  const names = readdirSync(stateFolder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.lock')).map((name) => basename(name));
}
