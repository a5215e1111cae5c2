import { type FolderSettings, readCommandSettings } from '../config/folder-settings.js';
import { attempt } from '../shared/attempt.js';
import type { Entry } from '../state/entry.js';
import { isMutedNow, listRuns } from '../state/runs.js';
import type { StateStore } from '../state/store.js';
import { hasMessagesAfter, type SessionOverview } from '../transcript/sessions/overview.js';
import { countUntraced } from './untraced-turns.js';

/** How much of a session is in Langfuse. */
export interface SessionState {
  readonly kind: 'exported' | 'partly' | 'pending' | 'excluded' | 'muted' | 'elsewhere' | 'not';
  /** Why the last try to send it failed, or who excludes it. */
  readonly reason?: string | undefined;
  /** How many turns have been sent; undefined if nothing is known of the session. */
  readonly turns: number | undefined;
  /** How many turns hooks never send, since no run is known for them. */
  readonly untraced: number;
  /** How many parts belong to no known prompt or call. */
  readonly strays: number;
}

/** Finds the states of many sessions: each once, and once the settings of each folder. */
export class SessionStates {
  readonly #store: StateStore;
  readonly #shell: NodeJS.ProcessEnv;
  readonly #destination: string | undefined;
  readonly #folders = new Map<string, FolderSettings>();
  readonly #known = new Map<string, SessionState>();

  /** Without a destination, a session's state is how far it was sent where it was sent last. */
  constructor(store: StateStore, shell: NodeJS.ProcessEnv, destination: string | undefined) {
    this.#store = store;
    this.#shell = shell;
    this.#destination = destination;
  }

  async find(session: SessionOverview): Promise<SessionState> {
    const state = this.#known.get(session.path) ?? (await this.#look(session));
    this.#known.set(session.path, state);
    return state;
  }

  async #look(session: SessionOverview): Promise<SessionState> {
    const entry = attempt(() => this.#read(session.sessionId));
    const [folder = ''] = session.folders;
    const there = this.#folders.get(folder) ?? (await readCommandSettings(this.#shell, folder));
    this.#folders.set(folder, there);
    return findState(session, entry, there.optOut, this.#destination);
  }

  #read(sessionId: string): Entry | undefined {
    return this.#destination === undefined
      ? this.#store.readNewest(sessionId)
      : this.#store.read(sessionId, this.#destination);
  }
}

function findState(
  session: SessionOverview,
  entry: Entry | undefined,
  optOut: string | undefined,
  destination: string | undefined,
): SessionState {
  const { path, bytes } = session;
  const strays = entry?.strays?.length ?? 0;
  const known = { turns: entry?.turnCount, untraced: 0, strays };
  if (isMutedNow(entry?.mutes)) return { ...known, kind: 'muted' };
  if (entry?.pending) return { ...known, kind: 'pending', reason: entry.pending.reason };
  const { turnCount = 0, bytes: exportedTo = entry?.offset ?? 0 } = entry ?? {};
  // A file that cannot be read to its end may contain more.
  const hasMore = () => attempt(() => hasMessagesAfter(path, exportedTo)) ?? true;
  const isWhole = turnCount > 0 && (exportedTo >= bytes || !hasMore());
  const untraced = entry ? (attempt(() => countUntraced(session, entry)) ?? 0) : 0;
  if (isWhole && untraced === 0) return { ...known, kind: 'exported' };
  if (optOut !== undefined) return { ...known, kind: 'excluded', reason: optOut };
  const runs = entry ? listRuns(entry) : [];
  const isElsewhere = runs.length > 0 && runs.every((run) => run.destination !== destination);
  if (isElsewhere && destination !== undefined) return { ...known, kind: 'elsewhere' };
  return { ...known, kind: turnCount > 0 ? 'partly' : 'not', untraced };
}
