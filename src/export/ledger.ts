import { apply, type Consent, type Fact } from '../state/facts.js';
import {
  type Claim,
  coversLines,
  coversTime,
  findGaps,
  findRun,
  hasEnded,
  isMutedNow,
  isSameRun,
  type Mute,
  type Run,
  type RunIdentity,
} from '../state/runs.js';
import { type AgentThread, listTimes, type Turn } from '../transcript/turns/turn.js';

/** The run that an export is made by, if its session is the run's own. */
export interface OwnRun {
  readonly identity: RunIdentity;
  readonly claims: Claims;
  /** When the event came, in ms since 1970. */
  readonly at: number;
}

type Took = Extract<Fact, { kind: 'took' }>;

/** Which turns of no run belong to the run of an export. */
export type Claims =
  | { readonly kind: 'nothing' }
  /** The one that a Stop names by its prompt. */
  | { readonly kind: 'prompt'; readonly promptId: string }
  /** The last one that began before so many bytes, for a Stop of a version that names no prompts. */
  | { readonly kind: 'last turn'; readonly before: number }
  /** All of them, for a backfill. */
  | { readonly kind: 'all' };

/** Knows which run each turn of a session belongs to, and so whether, where and how it is sent. */
export class Ledger {
  readonly #lineSentTo: (destination: string) => number;
  readonly #destination: string;
  readonly #own: OwnRun | undefined;
  #known: Consent;
  #added: Fact[] = [];
  /** By the first lines of the turns that this export has taken. */
  readonly #taken = new Map<number, Took>();
  /** The first line of the turn that this export has claimed. A later one can have the same id, as a teammate's message does. */
  #named: number | undefined;
  /** Whether the turn that this export's Stop names has been read. */
  #hasReadNamed = false;
  /** When the turns began that this export has read, and whether they belong to a run. */
  readonly #begun: { readonly at: number; readonly isTraced: boolean }[] = [];

  /** `lineSentTo` is up to which line the session's turns were sent to another destination. */
  constructor(
    known: Consent,
    destination: string,
    own?: OwnRun,
    lineSentTo: (destination: string) => number = () => 0,
  ) {
    this.#lineSentTo = lineSentTo;
    this.#known = known;
    this.#destination = destination;
    this.#own = own;
  }

  get hasChanged(): boolean {
    return this.#added.length > 0;
  }

  /** Returns the facts that the state does not have yet, once. */
  takeAdded(): Fact[] {
    const added = this.#added;
    this.#added = [];
    return added;
  }

  /**
   * Whether the user, or another process, has forbidden something since this export has read the state: the session was muted, or
   * one of its runs has ended, or another one has begun.
   */
  isOutdated({ runs, mutes }: Consent): boolean {
    const isNew = ({ fromLine, toLine }: Run) => {
      const own = this.#known.runs.find((run) => run.fromLine === fromLine);
      return !own || (own.toLine === undefined && toLine !== undefined);
    };
    return mutes.length > this.#known.mutes.length || runs.some(isNew);
  }

  /** The lines up to a line that belong to no run. */
  gapsUpTo(line: number) {
    return findGaps(this.#known.runs, line);
  }

  /** Binds runs to this destination that had none, or a wrong one. What the first cc-langfuse did not save is that of this run, too. */
  adopt(isWrong: (destination: string) => boolean): void {
    const { given = {} } = this.#own?.identity ?? {};
    const named = new Set([...this.#known.runs, ...this.#known.claims].map(({ destination = '' }) => destination));
    for (const wrong of named)
      if (wrong !== this.#destination && (wrong === '' || isWrong(wrong)))
        this.#add({ kind: 'adopt', at: Date.now(), wrong, right: this.#destination, given });
  }

  /** The runs in which the prompts of a turn were given, if all of them are known and are for this destination. */
  findRuns(promptLines: readonly number[]): [RunIdentity, ...RunIdentity[]] | undefined {
    const [first, ...more] = promptLines.map((line) => this.#findRun(line));
    const runs = [first, ...more].filter((run) => run?.destination === this.#destination);
    if (!first || runs.length < promptLines.length) return undefined;
    return [first, ...more.filter((run) => run !== undefined && !isSameRun(run, first))] as [Run, ...Run[]];
  }

  /** Whether the run that a line belongs to has ended. */
  hasEnded(line: number): boolean {
    const run = this.#findRun(line);
    return run !== undefined && hasEnded(run);
  }

  /** Whether a turn belongs to a run whose transcript may begin with what a fork copies. */
  mayBeCopied({ prompts }: Turn): boolean {
    const run = this.#findRun(prompts[0].line);
    return run !== undefined && 'mayCopy' in run && run.mayCopy === true;
  }

  /** All runs for this destination, unless some lines belong to no run: it is not known when in the session something happened. */
  findAllRuns(): [RunIdentity, ...RunIdentity[]] | undefined {
    const isWhole = this.gapsUpTo(this.#known.runs.at(-1)?.fromLine ?? 0).length === 0;
    return isWhole ? this.findRuns(this.#known.runs.map(({ fromLine }) => fromLine)) : undefined;
  }

  /** Whether a variable has a value in any run. */
  isGiven(variable: string, value: string): boolean {
    const all = [...this.#known.runs, ...this.#known.claims, this.#own?.identity];
    return all.some((run) => run?.given?.[variable]?.trim().toLowerCase() === value);
  }

  /** Whether the user has muted any of a turn. */
  isMuted(turn: Turn): boolean {
    const [first = 0, last = first] = [turn.lineNumbers[0], turn.lineNumbers.at(-1)];
    const { mutes } = this.#known;
    return mutes.some((mute) => coversLines(mute, first, last)) || isMutedAt(mutes, listTimes(turn));
  }

  /** Whether any of what an agent wrote to its own file was written while the session was muted, or not traced. */
  isAgentKept({ turns }: AgentThread): boolean {
    const times = turns.flatMap(listTimes);
    const isUntracedAt = this.#whenUntraced();
    return isMutedAt(this.#known.mutes, times) || times.some(isUntracedAt);
  }

  /** Whether this export's Stop names a turn that no run holds, and that has not been read: a later one was exported first. */
  get missesNamed(): boolean {
    return this.#own?.claims.kind === 'prompt' && !this.#hasReadNamed;
  }

  /** Whether this export has claimed a turn. */
  isNamed({ prompts }: Turn): boolean {
    return prompts[0].line === this.#named;
  }

  /** Whether no run goes on: what follows, if anything does, was written with tracing off. */
  get isOver(): boolean {
    const { runs } = this.#known;
    return runs.length > 0 && runs.every(hasEnded);
  }

  /** Whether the user has muted the session and has not unmuted it since. */
  get isMutedNow(): boolean {
    return isMutedNow(this.#known.mutes);
  }

  /**
   * Takes note of turns that have been read, and records that the one which this export's Stop names belongs to its run. `readTo`
   * is how many bytes have been read by then: if more than those of the turns, the prompt of a later one is among them.
   */
  claim(turns: readonly Turn[], readTo: number, isCopy: (turn: Turn) => boolean): void {
    const claims = this.#own?.claims ?? { kind: 'nothing' };
    if (claims.kind === 'all') return;
    // Of turns that interleave, the last one counts for a Stop without a prompt, and otherwise the first one with its id.
    const inOrder = claims.kind === 'last turn' ? turns.toReversed() : turns;
    for (const turn of inOrder) if (names(claims, turn, readTo)) this.#claimNamed(turn, isCopy);
    for (const { prompts } of turns) {
      const [{ line, at }] = prompts;
      this.#begun.push({ at, isTraced: this.#findRun(line) !== undefined });
    }
  }

  #claimNamed(turn: Turn, isCopy: (turn: Turn) => boolean): void {
    const { identity = {}, at = Date.now() } = this.#own ?? {};
    const [{ line: fromLine, at: startedAt }] = turn.prompts;
    if ((this.#named ?? fromLine) !== fromLine) return;
    this.#hasReadNamed = true;
    const lines = turn.prompts.map(({ line }) => line);
    const isKnown = lines.map((line) => this.#findRun(line)).every((run) => run && isSameRun(run, identity));
    if (isKnown || this.#isSentElsewhere(turn) || this.#isBeforeStart(fromLine) || turn.copied || isCopy(turn)) return;
    this.#named = fromLine;
    this.#add({ kind: 'claim', at, run: identity, lines, startedAt });
  }

  /** Whether this export may send turns of no run, and this is one. */
  mayTake({ prompts }: Turn): boolean {
    const [{ line }] = prompts;
    return this.#own?.claims.kind === 'all' && (this.#taken.has(line) || !this.#findRun(line));
  }

  /** Whether a backfill has looked at a turn of no run: it may have left it to another session. */
  wasTaken({ prompts }: Turn): boolean {
    const run = this.#findRun(prompts[0].line);
    return run !== undefined && run.startedAt === undefined;
  }

  /** Takes such a turn. Returns what is to be saved once the turn is acknowledged. */
  take({ prompts, lineNumbers }: Turn): Fact {
    const [{ line: fromLine }] = prompts;
    const toLine = lineNumbers.at(-1) ?? fromLine;
    const known = this.#taken.get(fromLine);
    const fact = known ? { ...known, toLine } : this.#cover(fromLine, toLine, this.#own?.identity ?? {});
    this.#known = apply(this.#known, fact);
    this.#taken.set(fromLine, fact);
    return fact;
  }

  /** Whether the rest of a turn can decide how it is sent, or whether it is. */
  isUndecided({ prompts, lineNumbers }: Turn): boolean {
    const last = lineNumbers.at(-1) ?? 0;
    const isOpen = this.#own?.claims.kind !== 'all' && prompts.some(({ line }) => !this.#findRun(line));
    return isOpen || this.#known.mutes.some(({ fromLine }) => fromLine > last);
  }

  /** Records that this export has looked at the lines of no run up to a line. */
  fillGaps(upTo: number): void {
    if (this.#own?.claims.kind !== 'all') return;
    const { identity } = this.#own;
    for (const { toLine } of this.gapsUpTo(upTo)) this.#add(this.#cover(toLine, toLine, identity));
  }

  #findRun(line: number): Run | Claim | undefined {
    return findRun(this.#known, line);
  }

  /** Whether the run that holds a turn has sent it to another destination. */
  #isSentElsewhere({ prompts, lineNumbers }: Turn): boolean {
    const { destination = this.#destination } = this.#findRun(prompts[0].line) ?? {};
    const sent = destination === this.#destination ? 0 : this.#lineSentTo(destination);
    return (lineNumbers.at(-1) ?? 0) <= sent;
  }

  /** Whether a process was seen to start after a line: what was there by then is not claimed. */
  #isBeforeStart(line: number): boolean {
    return this.#known.runs.some(({ fromLine, startedAt }) => startedAt !== undefined && fromLine > line);
  }

  /** Says of a time whether the session went on with tracing off, as far as the runs and the turns that have been read tell. */
  #whenUntraced(): (at: number) => boolean {
    const begun = this.#begun.toSorted((a, b) => a.at - b.at);
    const inOrder = [...this.#known.runs, ...this.#known.claims].toSorted((a, b) => a.fromLine - b.fromLine);
    const gaps = inOrder.flatMap((run, place) => {
      const next = inOrder[place + 1];
      if (!next || run.endedAt === undefined || next.fromLine <= lastLineOf(run) + 1) return [];
      return [{ after: run.endedAt, before: next.startedAt ?? Number.POSITIVE_INFINITY }];
    });
    return (at) =>
      gaps.some(({ after, before }) => after < at && at < before) ||
      begun.findLast((turn) => turn.at <= at)?.isTraced === false;
  }

  /** Covers lines of no run, and those before them. What a backfill has taken of a run goes on. */
  #cover(fromLine: number, toLine: number, run: RunIdentity): Took {
    const start = this.gapsUpTo(fromLine).at(-1)?.fromLine ?? fromLine;
    const isBefore = (each: Run) => each.toLine === start - 1 && each.startedAt === undefined && isSameRun(each, run);
    const before = this.#known.runs.find(isBefore);
    return { kind: 'took', at: Date.now(), run, fromLine: before?.fromLine ?? start, toLine };
  }

  #add(fact: Fact): void {
    this.#known = apply(this.#known, fact);
    this.#added.push(fact);
  }
}

/** Whether a Stop has ended this turn. */
function names(claims: Claims, { prompts, start }: Turn, readTo: number): boolean {
  if (claims.kind === 'prompt') return prompts.some(({ promptId }) => promptId === claims.promptId);
  return claims.kind === 'last turn' && start.offset < claims.before && claims.before < readTo;
}

function lastLineOf(run: Run | Claim): number {
  return 'lines' in run ? Math.max(...run.lines) : (run.toLine ?? Number.POSITIVE_INFINITY);
}

export function isMutedAt(mutes: readonly Mute[], times: readonly number[]): boolean {
  return mutes.length > 0 && times.some((at) => mutes.some((mute) => coversTime(mute, at)));
}
