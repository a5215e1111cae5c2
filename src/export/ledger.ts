import { type Entry, lastKnownLine } from '../state/entry.js';
import {
  findGaps,
  isMutedNow,
  isSameRun,
  type Mute,
  mergeByLine,
  openRun,
  type Run,
  type RunIdentity,
  runAt,
} from '../state/runs.js';
import type { Turn } from '../transcript/turns/turn.js';

/** The run that an export is made by, if its session is the run's own. */
export interface OwnRun {
  readonly identity: RunIdentity;
  /** The prompt of the turn that ended with the event; undefined if the event does not say. */
  readonly promptId?: string | undefined;
  /** Which turns of no run belong to it: the one that its event ended, only the last one, or all, as for a backfill. */
  readonly claims: 'own turn' | 'last turn' | 'all';
}

/** Knows which run each turn of a session belongs to, and so where and how it is sent. */
export class Ledger {
  readonly #destination: string;
  readonly #own: OwnRun | undefined;
  readonly #mutes: readonly Mute[];
  #runs: readonly Run[];
  #changed: readonly Run[] = [];
  /** By the first lines of the turns that this export has taken. */
  readonly #taken = new Map<number, Run>();

  constructor(entry: Entry, destination: string, own: OwnRun | undefined) {
    const { runs, mutes = [] } = entry;
    this.#runs = runs;
    this.#mutes = mutes;
    this.#destination = destination;
    this.#own = own;
    if (own?.claims !== 'own turn') return;
    // Without a SessionStart and without the turn's id, a new run is assumed to begin after the last line that earlier runs knew.
    // A run that is known adds nothing, since its event may be handled after the next run has started.
    const isNew = openRun(runs) ? !runs.some((run) => isSameRun(run, own.identity)) : runs.length === 0;
    if (isNew && own.promptId === undefined) this.#change({ ...own.identity, fromLine: lastKnownLine(entry) + 1 });
  }

  get hasChanged(): boolean {
    return this.#changed.length > 0;
  }

  /** Returns the runs that the state does not have yet, once. */
  takeChanged(): Run[] {
    const changed = [...this.#changed];
    this.#changed = [];
    return changed;
  }

  /** The lines up to a line that belong to no run. */
  gapsUpTo(line: number) {
    return findGaps(this.#runs, line);
  }

  /**
   * Binds runs to this destination that had none, or a wrong one. What an older version did not save is that of this run, too.
   */
  adopt(isWrong: (destination: string) => boolean): void {
    for (const run of this.#runs) {
      const { destination = '', given = this.#own?.identity.given ?? {} } = run;
      const isOwn = destination === this.#destination;
      if (isOwn ? run.given !== undefined : destination !== '' && !isWrong(destination)) continue;
      const { namedDestination = isOwn ? undefined : destination } = run;
      this.#change({ ...run, destination: this.#destination, namedDestination, given });
    }
  }

  /** The runs in which the prompts of a turn were given, if all of them are known and are for this destination. */
  findRuns(promptLines: readonly number[]): [Run, ...Run[]] | undefined {
    const [first, ...more] = promptLines.map((line) => runAt(this.#runs, line));
    const runs = [first, ...more].filter((run) => run?.destination === this.#destination);
    if (!first || runs.length < promptLines.length) return undefined;
    return [first, ...more.filter((run) => run !== undefined && !isSameRun(run, first))] as [Run, ...Run[]];
  }

  /** Whether the run that a line belongs to has ended. */
  hasEnded(line: number): boolean {
    return runAt(this.#runs, line)?.toLine !== undefined;
  }

  /** All runs for this destination, unless some lines belong to no run: it is not known when in the session something happened. */
  findAllRuns(): [Run, ...Run[]] | undefined {
    const isWhole = this.gapsUpTo(this.#runs.at(-1)?.fromLine ?? 0).length === 0;
    return isWhole ? this.findRuns(this.#runs.map(({ fromLine }) => fromLine)) : undefined;
  }

  /** Whether a variable has a value in any run. */
  isGiven(variable: string, value: string): boolean {
    return [...this.#runs, this.#own?.identity].some((run) => run?.given?.[variable]?.trim().toLowerCase() === value);
  }

  /** Whether the user has muted any of a turn. */
  isMuted({ lineNumbers }: Turn): boolean {
    const [first = 0, last = first] = [lineNumbers[0], lineNumbers.at(-1)];
    return this.#mutes.some(({ fromLine, toLine = Number.POSITIVE_INFINITY }) => last >= fromLine && first <= toLine);
  }

  /** Whether the user has muted the session and has not unmuted it since. */
  get isMutedNow(): boolean {
    return isMutedNow(this.#mutes);
  }

  /** Whether no hook has recorded a run of the session yet. */
  get isEmpty(): boolean {
    return this.#runs.length === 0;
  }

  /**
   * Records that the turn which ended with this export's event belongs to its run, and so do turns right before it that had no
   * event of their own. Returns whether it does.
   */
  claim({ prompts }: Turn, [before]: readonly Turn[] = []): boolean {
    if (this.#own?.claims !== 'own turn') return false;
    const { identity, promptId } = this.#own;
    const own = promptId === undefined ? undefined : prompts.find((prompt) => prompt.promptId === promptId);
    const known = own && runAt(this.#runs, own.line);
    // A turn can begin with a prompt that an earlier run left unanswered.
    const [{ line: fromLine }] = before?.prompts ?? prompts;
    const isClaimed = own !== undefined && !(known && isSameRun(known, identity));
    if (isClaimed) this.#change({ ...identity, fromLine });
    return isClaimed;
  }

  /** Takes a turn of no run, if this export may. Returns the run that has it then, to be saved once the turn is acknowledged. */
  take({ prompts, lineNumbers }: Turn): Run | undefined {
    const [{ line: fromLine }] = prompts;
    const toLine = lineNumbers.at(-1) ?? fromLine;
    const known = this.#taken.get(fromLine);
    if (this.#own?.claims !== 'all' || (!known && runAt(this.#runs, fromLine))) return undefined;
    const run = known ? this.#extend(known, toLine) : this.#cover(fromLine, toLine, this.#own.identity);
    this.#taken.set(fromLine, run);
    return run;
  }

  /** Whether the rest of a turn can decide how it is sent, or whether it is. */
  isUndecided({ prompts, lineNumbers }: Turn): boolean {
    const last = lineNumbers.at(-1) ?? 0;
    const isOpen = this.#own?.claims !== 'all' && prompts.some(({ line }) => !runAt(this.#runs, line));
    return isOpen || this.#mutes.some(({ fromLine }) => fromLine > last);
  }

  /** Records that the last turn belongs to this export's own run, since its event has ended that turn. */
  claimLast({ prompts }: Turn): boolean {
    const [{ line: fromLine }] = prompts;
    if (!this.#own || this.#own.claims === 'all' || runAt(this.#runs, fromLine)) return false;
    this.#change({ ...this.#own.identity, fromLine });
    return true;
  }

  /** Records that this export has looked at the lines of no run up to a line. */
  fillGaps(upTo: number): void {
    if (this.#own?.claims !== 'all') return;
    const { identity } = this.#own;
    for (const { toLine } of this.gapsUpTo(upTo)) this.#change(this.#cover(toLine, toLine, identity));
  }

  /** Covers lines of no run, and those before them, with a run. */
  #cover(fromLine: number, toLine: number, identity: RunIdentity): Run {
    const start = this.gapsUpTo(fromLine).at(-1)?.fromLine ?? fromLine;
    const before = this.#runs.find((run) => run.toLine === start - 1 && isSameRun(run, identity));
    const run = before ? { ...before, toLine } : { ...identity, fromLine: start, toLine };
    this.#runs = mergeByLine(this.#runs, [run]);
    return run;
  }

  /** Lets a run that this export has added go on to a line. */
  #extend(run: Run, toLine: number): Run {
    const longer = { ...run, toLine };
    this.#runs = mergeByLine(this.#runs, [longer]);
    return longer;
  }

  #change(run: Run): void {
    this.#runs = mergeByLine(this.#runs, [run]);
    this.#changed = mergeByLine(this.#changed, [run]);
  }
}
