import { isDeepStrictEqual } from 'node:util';
import { type Callers, includesCaller, withCaller } from '../state/callers.js';
import { type Entry, NEW_ENTRY } from '../state/entry.js';
import type { Lock } from '../state/lock.js';
import type { ExportContext, ExportRequest } from './export-request.js';

/** Writes a session's entry while it is exported. Each change also carries what this run knows about the session itself. */
export class EntryWriter {
  /** The entry as it was when the run began. */
  readonly known: Entry;
  readonly callers: Callers;
  readonly #request: ExportRequest;
  readonly #context: ExportContext;
  readonly #lock: Lock;
  readonly #status: Partial<Entry>;
  #end: Pick<Entry, 'bytes' | 'agentsBytes'> | undefined;
  #isEndSaved = false;

  constructor(request: ExportRequest, context: ExportContext, lock: Lock) {
    this.known = context.state.read(request.sessionId) ?? NEW_ENTRY;
    const { callers = [] } = this.known;
    // A caller that is known adds nothing, since its event may be handled after the next run has started. A run without a
    // SessionStart begins after the last line that earlier runs knew.
    const isKnown = request.caller === undefined || includesCaller(callers, request.caller);
    this.callers = isKnown ? callers : withCaller(callers, request.caller, lastKnownLine(this.known) + 1);
    this.#request = request;
    this.#context = context;
    this.#lock = lock;
    this.#status = { ...statusAfter(request, this.known), ...(this.callers !== callers && { callers: this.callers }) };
  }

  /** Call once the file has been read to its end: up to there nothing needs to be looked for again. */
  reachEnd(end: Pick<Entry, 'bytes' | 'agentsBytes'>): void {
    this.#end = end;
  }

  get hasReachedEnd(): boolean {
    return this.#end !== undefined;
  }

  save(change: Partial<Entry>): Promise<void> {
    const { sessionId, path } = this.#request;
    const { destinationId, given, state } = this.#context;
    if (!this.#lock.isHeld()) throw new Error('another run has taken over');
    this.#isEndSaved = this.hasReachedEnd;
    const session = { path, destination: destinationId, given, ...this.#status };
    return state.update(sessionId, { ...session, ...this.#end, ...change });
  }

  /** Saves why something is still to be sent, or that nothing is, unless the state says so already. */
  async finish(failure: string | undefined, closedLine: number | undefined): Promise<void> {
    const { pending, bytes, agentsBytes, ended, backfilled } = this.known;
    if (failure !== undefined) {
      const { since = new Date().toISOString(), attempts = 0 } = pending ?? {};
      await this.save({ pending: { since, attempts: attempts + 1, reason: failure, closedLine } });
      return;
    }
    const isUnchanged = isDeepStrictEqual({ bytes, agentsBytes, ended, backfilled }, { ...this.#end, ...this.#status });
    if (pending || (!this.#isEndSaved && !isUnchanged)) await this.save({ pending: undefined });
  }
}

/**
 * A Stop that is handled late must not undo what SessionEnd has recorded: only SessionStart does. A session that only a backfill
 * knows is left alone by the recovery, since it may go on with tracing off.
 */
function statusAfter({ occasion, agents }: ExportRequest, { path, ended, backfilled }: Entry): Partial<Entry> {
  if (occasion === 'event') return { ended: agents.sessionEnded || ended === true, backfilled: undefined };
  return { ended, backfilled: (occasion === 'backfill' && path === undefined) || backfilled };
}

/** The last line that belongs to a turn which earlier runs knew, whether or not it was sent. */
function lastKnownLine({ lastLine, sentLine = 0, pending }: Entry): number {
  return Math.max(lastLine, sentLine, pending?.closedLine ?? 0);
}
