import { readCommandSettings } from '../config/folder-settings.js';
import { attempt } from '../shared/attempt.js';
import { memoize } from '../shared/memoize.js';
import type { Entry } from '../state/entry.js';
import { isMutedNow, listRuns } from '../state/runs.js';
import type { StateStore } from '../state/store.js';
import { Originals } from '../transcript/sessions/originals.js';
import { hasMessagesAfter, type SessionOverview } from '../transcript/sessions/overview.js';
import type { SessionIndex } from '../transcript/sessions/session-index.js';
import { readAllTurns } from '../transcript/turns/read-all-turns.js';
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
  /** Whether anything was answered in it. */
  readonly isAnswered: boolean;
}

/** What the state, the transcript and those that it was copied from say, whatever the settings are now. */
interface Facts extends Omit<SessionState, 'kind' | 'reason'> {
  readonly kind: 'exported' | 'partly' | 'pending' | 'muted' | 'not';
  readonly reason?: string;
  /** Whether all of its runs are for other destinations. */
  readonly isElsewhere: boolean;
}

interface Remembered extends Facts {
  /** The sessions whose transcripts were looked at, and the state of those. */
  readonly others: readonly string[];
  readonly otherFiles: string;
}

const VERSION = '1';

/** Finds the states of many sessions: each once, and once the settings of each folder. */
export class SessionStates {
  readonly #store: StateStore;
  readonly #shell: NodeJS.ProcessEnv;
  readonly #destination: string | undefined;
  readonly #index: SessionIndex;
  readonly #readFolder = memoize((folder: string) => readCommandSettings(this.#shell, folder));
  readonly find = memoize(
    (session: SessionOverview) => this.#look(session),
    ({ path }) => path,
  );

  /** Without a destination, a session's state is how far it was sent where it was sent last. */
  constructor(store: StateStore, shell: NodeJS.ProcessEnv, destination: string | undefined, index: SessionIndex) {
    this.#store = store;
    this.#shell = shell;
    this.#destination = destination;
    this.#index = index;
  }

  async #look(session: SessionOverview): Promise<SessionState> {
    const there = await this.#readFolder(session.folders[0] ?? '');
    const { isElsewhere, ...facts } = this.#findFacts(session);
    if (facts.kind !== 'partly' && facts.kind !== 'not') return facts;
    if (there.optOut !== undefined) return { ...facts, untraced: 0, kind: 'excluded', reason: there.optOut };
    return isElsewhere ? { ...facts, untraced: 0, kind: 'elsewhere' } : facts;
  }

  /** Reads the transcript only if it, what is known of it, or a transcript that it was copied from has changed. */
  #findFacts(session: SessionOverview): Facts {
    const { sessionId, path } = session;
    const section = `state ${this.#destination ?? ''}` as const;
    const ofEntry = attempt(() => this.#store.identify(sessionId, this.#destination));
    const key = `${VERSION} ${this.#index.identify(path)} ${ofEntry}`;
    const originals = new Originals(path);
    const known = ofEntry === undefined ? undefined : this.#index.read<Remembered>(path, section, key);
    if (known?.otherFiles === originals.identify(known?.others ?? [])) {
      const { others: _, otherFiles: __, ...facts } = known;
      return facts;
    }
    const entry = attempt(() => ({ is: this.#read(sessionId) }));
    const { facts, isCertain } = findFacts(session, entry?.is, this.#destination, originals);
    if (entry && ofEntry !== undefined && isCertain) {
      const others = originals.asked;
      this.#index.write(path, section, key, { ...facts, others, otherFiles: originals.identify(others) });
    }
    return facts;
  }

  #read(sessionId: string): Entry | undefined {
    return this.#destination === undefined
      ? this.#store.readNewest(sessionId)
      : this.#store.read(sessionId, this.#destination);
  }
}

/** They are uncertain if the transcript could not be read to its end, or if they contain a server's words. */
function findFacts(
  session: SessionOverview,
  entry: Entry | undefined,
  destination: string | undefined,
  originals: Originals,
): { facts: Facts; isCertain: boolean } {
  const { path, sessionId, bytes, model } = session;
  const strays = entry?.strays?.length ?? 0;
  const { turnCount = 0, bytes: exportedTo = entry?.offset ?? 0 } = entry ?? {};
  const known = { turns: entry?.turnCount, untraced: 0, strays, isAnswered: true, isElsewhere: false };
  if (isMutedNow(entry?.mutes)) return { facts: { ...known, kind: 'muted' }, isCertain: true };
  if (entry?.pending) return { facts: { ...known, kind: 'pending', reason: entry.pending.reason }, isCertain: false };
  let isCertain = true;
  const read = <T>(look: () => T, otherwise: T): T => {
    const found = attempt(() => ({ is: look() }));
    isCertain &&= found !== undefined;
    return found ? found.is : otherwise;
  };
  // A file that cannot be read to its end may contain more.
  const isWhole = turnCount > 0 && (exportedTo >= bytes || !read(() => hasMessagesAfter(path, exportedTo), true));
  const untraced = entry ? read(() => countUntraced(session, entry, originals), 0) : 0;
  if (isWhole && untraced === 0) return { facts: { ...known, kind: 'exported' }, isCertain };
  // The overview nearly always says so.
  const isAnswered = turnCount > 0 || model !== undefined || read(() => hasOwnTurn(path, sessionId, originals), true);
  const runs = entry ? listRuns(entry) : [];
  const isElsewhere =
    destination !== undefined && runs.length > 0 && runs.every((run) => run.destination !== destination);
  return { facts: { ...known, kind: turnCount > 0 ? 'partly' : 'not', untraced, isAnswered, isElsewhere }, isCertain };
}

/** Whether anything was answered in a session that was not copied from another one. */
function hasOwnTurn(path: string, sessionId: string, originals: Originals): boolean {
  for (const { copied } of readAllTurns(path, 'main', sessionId, undefined, originals)) if (!copied) return true;
  return false;
}
