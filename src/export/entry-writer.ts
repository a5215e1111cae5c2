import { isDeepStrictEqual } from 'node:util';
import { type Callers, withRun } from '../state/caller.js';
import { type Entry, NEW_ENTRY } from '../state/entry.js';
import type { Lock } from '../state/lock.js';
import type { ExportTools, SessionExport } from './session.js';
import { knownLineOf } from './start-position.js';

/** One run that works on a session. */
export interface Run {
  readonly what: SessionExport;
  /** Undefined where the session is new. */
  readonly entry: Entry | undefined;
  readonly tools: ExportTools;
  readonly lock: Lock;
}

/** What the state is told of a session while it is exported: with each change all that this run knows of the session itself. */
export class SessionRecord {
  /** What the state had when the run began. */
  readonly known: Entry;
  readonly callers: Callers;
  readonly #run: Run;
  readonly #life: Partial<Entry>;
  #reached: Pick<Entry, 'bytes' | 'agents_bytes'> | undefined;
  #isSaved = false;

  constructor(run: Run) {
    const { what, entry } = run;
    this.known = entry ?? NEW_ENTRY;
    const { callers = [] } = this.known;
    this.callers = what.caller ? withRun(callers, what.caller, knownLineOf(this.known)) : callers;
    this.#run = run;
    this.#life = { ...lifeOf(what, entry), ...(this.callers !== callers && { callers: this.callers }) };
  }

  /** Told once all has been read: what is left then need not be looked for behind it. */
  reach(reached: Pick<Entry, 'bytes' | 'agents_bytes'>): void {
    this.#reached = reached;
  }

  get hasReachedTheEnd(): boolean {
    return this.#reached !== undefined;
  }

  save(change: Partial<Entry>): Promise<void> {
    const { what, tools, lock } = this.#run;
    if (!lock.isHeld()) throw new Error('another run has taken over');
    this.#isSaved = this.hasReachedTheEnd;
    const { destination, given, store } = tools;
    const own = { path: what.path, destination, given, ...this.#life, ...this.#reached };
    return store.update(what.sessionId, { ...own, ...change });
  }

  /** Keeps why something is still to be sent, or that nothing is, where the state does not say so yet. */
  async close(failure: string | undefined, closedLine: number | undefined): Promise<void> {
    const { pending } = this.known;
    if (failure !== undefined) {
      const { since = new Date().toISOString(), attempts = 0 } = pending ?? {};
      await this.save({ pending: { since, attempts: attempts + 1, reason: failure, closed_line: closedLine } });
    } else if (pending || (!this.#isSaved && !this.#isTold)) {
      await this.save({ pending: undefined });
    }
  }

  get #isTold(): boolean {
    return isDeepStrictEqual(standingOf(this.known), { ...this.#reached, ...this.#life });
  }
}

/**
 * Whether a session goes on, and who knows of it. A Stop that is handled late must not undo what SessionEnd has said; only
 * SessionStart does. What only a backfill knows of, the recovery leaves alone: it may go on with tracing off.
 */
function lifeOf({ occasion, agents }: SessionExport, entry: Entry | undefined): Pick<Entry, 'ended' | 'backfilled'> {
  if (occasion === 'event') return { ended: agents.areOver || entry?.ended === true, backfilled: undefined };
  const isNew = occasion === 'backfill' && entry?.path === undefined;
  return { ended: entry?.ended, backfilled: isNew || entry?.backfilled };
}

function standingOf({ bytes, agents_bytes, ended, backfilled }: Entry): Partial<Entry> {
  return { bytes, agents_bytes, ended, backfilled };
}
