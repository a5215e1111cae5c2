import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Progress, Session } from '../../src/state/entry.js';
import { StateStore } from '../../src/state/store.js';

/** What is known of a session, and how far it has been sent where it was sent last. */
export type SessionState = Partial<Session & Progress> & { readonly destination?: string };

export function sessionFile(stateFolder: string, session: string, name = 'session.json'): string {
  return join(stateFolder, 'cc-langfuse_sessions', session, name);
}

/** All sessions that the state knows, by their ids. */
export function readState(stateFolder: string): { [session: string]: SessionState } {
  const known = new StateStore(stateFolder).all().map(({ session, progress }): [string, SessionState] => {
    const newestFirst = [...progress].toSorted(([, a], [, b]) => b.updated.localeCompare(a.updated));
    const [newest] = newestFirst.map(([destination, each]) => ({ ...each, destination }));
    return [session.id, { ...session, ...newest }];
  });
  return Object.fromEntries(known);
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

/** The sessions of the Stops whose turns have not been sent, one for each. */
export function listWaiting(stateFolder: string): string[] {
  const sessions = new StateStore(stateFolder).all().map(({ session }) => session);
  return sessions.flatMap(({ id, stops }) => stops.filter(({ isDone }) => !isDone).map(() => id));
}
