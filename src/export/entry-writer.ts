import { isDeepStrictEqual } from 'node:util';
import type { Failure } from '../shared/failure.js';
import { type Change, type Entry, mergeChanges } from '../state/entry.js';
import type { Stop } from '../state/facts.js';
import type { Lock } from '../state/lock.js';
import type { ExportContext, ExportRequest } from './export-request.js';
import { READER } from './overlooked.js';
import type { RunLookup } from './run-lookup.js';

type End = Pick<Entry, 'bytes' | 'file' | 'agentsBytes'>;

/** Writes a session's entry while it is exported. Each change also carries what this run knows about the session itself. */
export class EntryWriter {
  /** The entry as it was when the run began. */
  readonly known: Entry;
  readonly #request: ExportRequest;
  readonly #context: ExportContext;
  readonly #lookup: RunLookup;
  readonly #lock: Lock;
  #scores: Entry['scores'];
  #end: End | undefined;
  #isEndSaved = false;
  #reader: Pick<Entry, 'reader'>;
  #savedKept: Entry['kept'];
  readonly #strays: Set<string>;
  #unsaved: Change = {};

  constructor(known: Entry, request: ExportRequest, context: ExportContext, lookup: RunLookup, lock: Lock) {
    this.known = known;
    this.#savedKept = known.kept;
    this.#strays = new Set(known.strays);
    // A newer version has read what was sent before, and this one goes on.
    this.#reader = (known.reader ?? 0) > READER ? { reader: READER } : {};
    this.#scores = known.scores;
    this.#request = request;
    this.#context = context;
    this.#lookup = lookup;
    this.#lock = lock;
  }

  /** Call if nothing has been sent yet: then this version of the reader reads all of it. */
  beginAfresh(): void {
    this.#reader = { reader: READER };
  }

  /** Returns what the state is to keep of a turn whose prompt, or an agent whose call, is in no file. */
  addStray(key: string): Pick<Entry, 'strays'> {
    this.#strays.add(key);
    return { strays: [...this.#strays] };
  }

  /** How many of them this run has added. */
  get newStrays(): number {
    return this.#strays.size - (this.known.strays?.length ?? 0);
  }

  /** Call once the file has been read to its end: up to there nothing needs to be looked for again. */
  reachEnd(end: End): void {
    this.#end = end;
  }

  get hasReachedEnd(): boolean {
    return this.#end !== undefined;
  }

  /** The scores that are due: those that were, and those of what this run has sent. */
  get scores(): Entry['scores'] {
    return this.#scores;
  }

  /** Saves a change with the next one, which must come at once: what was acknowledged must not be sent again. */
  saveLater(change: Change): void {
    this.#unsaved = mergeChanges(this.#unsaved, change);
    if (change.scores) this.#scores = { ...this.#scores, ...change.scores };
  }

  async saveUnsaved(): Promise<void> {
    if (Object.keys(this.#unsaved).length > 0) await this.save({});
  }

  /** Throws if another run has the session by now, because this process was suspended for long. */
  checkLock(): void {
    if (!this.#lock.isHeld()) throw new Error('another run has taken over');
  }

  async save(more: Change): Promise<void> {
    const { facts = [], ...change } = mergeChanges(this.#unsaved, more);
    this.#unsaved = {};
    const { sessionId, path } = this.#request;
    const { destinationId, state } = this.#context;
    this.checkLock();
    this.#isEndSaved = this.hasReachedEnd;
    if ('kept' in change) this.#savedKept = change.kept;
    const all = [...this.#lookup.takeAdded(), ...facts];
    await state.update(sessionId, { path, ...this.#reader, ...this.#end, ...change, facts: all }, destinationId);
    if (change.scores) this.#scores = { ...this.#scores, ...change.scores };
  }

  /** Saves why something is still to be sent, or that nothing is, and which Stops are done. Writes only what is new. */
  async finish(
    failure: Failure | undefined,
    { relatives, kept }: Pick<Entry, 'relatives' | 'kept'>,
    doneStops: readonly Stop[],
  ): Promise<void> {
    const { pending, bytes, file, agentsBytes } = this.known;
    if (failure) {
      const { since = new Date().toISOString(), attempts = 0 } = pending ?? {};
      const { code, text: reason } = failure;
      await this.save({ pending: { since, attempts: attempts + 1, code, reason }, file: undefined });
      return;
    }
    const isEndNew = !this.#isEndSaved && !isDeepStrictEqual({ bytes, file, agentsBytes }, { ...this.#end });
    const isKeptNew = !isDeepStrictEqual(kept, this.#savedKept);
    if (pending || relatives || isKeptNew || isEndNew || doneStops.length > 0 || this.#lookup.hasChanged)
      await this.save({
        doneStops,
        ...(pending && { pending: undefined }),
        ...(isKeptNew && { kept }),
        ...(relatives && { relatives }),
      });
    else await this.saveUnsaved();
  }
}
