import { listWaiting } from '../state/entry.js';
import { apply, type Consent, type Fact, type Stop } from '../state/facts.js';
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
import { type AgentThread, listTimes, type Prompt, type Turn } from '../transcript/turns/turn.js';

type Took = Extract<Fact, { kind: 'took' }>;

/** What a ledger needs besides what is known of the session. */
interface LedgerOptions {
  /** The run that an export is made by. */
  readonly own?: RunIdentity | undefined;
  /** Whether the turns of no run may be sent, too, as turns of that run. */
  readonly takesAll?: boolean | undefined;
  /** The first lines of prompts that were sent before, by their ids. */
  readonly prompts?: Readonly<Record<string, number>> | undefined;
  /** Up to which line the session's turns were sent to a destination. */
  readonly lineSentTo?: ((destination: string) => number) | undefined;
}

const PROMPTS_KEPT = 32;

/** Knows which run each turn of a session belongs to, and so whether, where and how it is sent. */
export class Ledger {
  readonly #options: LedgerOptions;
  readonly #destination: string;
  #known: Consent;
  #added: Fact[] = [];
  /** By the first lines of the turns that this export has taken. */
  readonly #taken = new Map<number, Took>();
  /** The first lines of the turns that Stops have named which this export has read. */
  readonly #claimed = new Set<number>();
  /** The first lines of prompts, by their ids. A later one can have the same id, as a teammate's message does. */
  readonly #prompts: Map<string, number>;
  /** Stops without an id that have claimed their turns. */
  readonly #settled = new Set<Stop>();
  /** When the turns began that this export has read, and whether they belong to a run. */
  readonly #begun: { readonly at: number; readonly isTraced: boolean }[] = [];

  constructor(known: Consent, destination: string, options: LedgerOptions = {}) {
    this.#known = known;
    this.#destination = destination;
    this.#options = options;
    this.#prompts = new Map(Object.entries(options.prompts ?? {}));
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
    const { given = {} } = this.#options.own ?? {};
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
    const all = [...this.#known.runs, ...this.#known.claims, this.#options.own];
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

  /** The Stops of runs for this destination whose turns have not been sent. */
  get waiting(): readonly Stop[] {
    return listWaiting(this.#known, this.#destination);
  }

  /** The Stops that name turns which have not been read: later ones were exported first. */
  get missing(): readonly Stop[] {
    return this.waiting.filter(({ promptId }) => promptId !== undefined && !this.#prompts.has(promptId));
  }

  /** The last prompts of this destination's turns: a prompt is known by its id and its line. A Stop can still name any other. */
  lastPrompts(): Record<string, number> {
    const isOwn = (line: number) => this.#findRun(line)?.destination === this.#destination;
    return Object.fromEntries([...this.#prompts].slice(-PROMPTS_KEPT).filter(([, line]) => isOwn(line)));
  }

  /** The line of the first known prompt with this id. */
  findPromptLine(promptId: string): number | undefined {
    return this.#prompts.get(promptId);
  }

  /** Whether this prompt is the first with its id, as far as they have been read: it is the one that a Stop names. */
  isFirst({ promptId, line }: Pick<Prompt, 'promptId' | 'line'>): boolean {
    return promptId === undefined || (this.#prompts.get(promptId) ?? line) >= line;
  }

  /** Whether a Stop has named a turn that has not been sent. */
  isNamed({ prompts }: Turn): boolean {
    return this.#claimed.has(prompts[0].line);
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
   * Takes note of turns that have been read, and records that those which Stops name belong to the Stops' runs. `readTo` is how many
   * bytes have been read by then: if more than those of the turns, the prompt of a later one is among them.
   */
  claim(turns: readonly Turn[], readTo: number, isCopy: (turn: Turn) => boolean): void {
    for (const turn of turns) this.#notePrompts(turn, isCopy);
    if (this.#options.takesAll) return;
    for (const stop of this.#known.stops) {
      const turn = this.#findNamed(stop, turns, readTo);
      if (turn && !stop.isDone) this.#claimFor(stop, turn, isCopy);
    }
    for (const { prompts } of turns) {
      const [{ line, at }] = prompts;
      this.#begun.push({ at, isTraced: this.#findRun(line) !== undefined });
    }
  }

  /** What a fork has copied has the ids of the other session. */
  #notePrompts(turn: Turn, isCopy: (turn: Turn) => boolean): void {
    const isAwaited = turn.prompts.some(({ promptId }) => this.waiting.some((stop) => stop.promptId === promptId));
    if (turn.copied || (isAwaited && isCopy(turn))) return;
    for (const { promptId, line } of turn.prompts)
      if (promptId !== undefined && !this.#prompts.has(promptId)) this.#prompts.set(promptId, line);
  }

  /** The turn that a Stop has ended: without an id, the last one that began before it. */
  #findNamed(stop: Stop, turns: readonly Turn[], readTo: number): Turn | undefined {
    const { promptId, bytes } = stop;
    if (promptId !== undefined)
      return turns.find(({ prompts }) => prompts.some((each) => each.promptId === promptId && this.isFirst(each)));
    if (this.#settled.has(stop)) return undefined;
    const named = turns.findLast(({ start }) => start.offset < bytes && bytes < readTo);
    if (named) this.#settled.add(stop);
    return named;
  }

  #claimFor({ run, at, promptId }: Stop, turn: Turn, isCopy: (turn: Turn) => boolean): void {
    const [{ line: fromLine, at: startedAt }] = turn.prompts;
    const lines = turn.prompts.map(({ line }) => line);
    const isKnown = lines.map((line) => this.#findRun(line)).every((each) => each && isSameRun(each, run));
    const isSent = this.#isSentElsewhere(turn, run);
    const isBefore = promptId !== undefined && this.#options.prompts?.[promptId] !== undefined;
    if (isKnown && !isBefore && run.destination === this.#destination) this.#claimed.add(fromLine);
    if (isKnown || isSent || this.#isBeforeStart(fromLine) || turn.copied || isCopy(turn)) return;
    this.#claimed.add(fromLine);
    this.#add({ kind: 'claim', at, run, lines, startedAt });
  }

  /** Whether this export may send turns of no run, and this is one. */
  mayTake({ prompts }: Turn): boolean {
    const [{ line }] = prompts;
    return this.#options.takesAll === true && (this.#taken.has(line) || !this.#findRun(line));
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
    const fact = known ? { ...known, toLine } : this.#cover(fromLine, toLine, this.#options.own ?? {});
    this.#known = apply(this.#known, fact);
    this.#taken.set(fromLine, fact);
    return fact;
  }

  /** Whether the rest of a turn can decide how it is sent, or whether it is. */
  isUndecided({ prompts, lineNumbers }: Turn): boolean {
    const last = lineNumbers.at(-1) ?? 0;
    const isOpen = !this.#options.takesAll && prompts.some(({ line }) => !this.#findRun(line));
    return isOpen || this.#known.mutes.some(({ fromLine }) => fromLine > last);
  }

  /** Records that this export has looked at the lines of no run up to a line. */
  fillGaps(upTo: number): void {
    const { own, takesAll } = this.#options;
    if (!own || !takesAll) return;
    for (const { toLine } of this.gapsUpTo(upTo)) this.#add(this.#cover(toLine, toLine, own));
  }

  #findRun(line: number): Run | Claim | undefined {
    return findRun(this.#known, line);
  }

  /** Whether the run that holds a turn has sent it to another destination than that of a Stop which names it. */
  #isSentElsewhere({ prompts, lineNumbers }: Turn, { destination }: RunIdentity): boolean {
    const { destination: holder = destination } = this.#findRun(prompts[0].line) ?? {};
    if (holder === undefined || holder === destination) return false;
    return (lineNumbers.at(-1) ?? 0) <= (this.#options.lineSentTo?.(holder) ?? 0);
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

function lastLineOf(run: Run | Claim): number {
  return 'lines' in run ? Math.max(...run.lines) : (run.toLine ?? Number.POSITIVE_INFINITY);
}

export function isMutedAt(mutes: readonly Mute[], times: readonly number[]): boolean {
  return mutes.length > 0 && times.some((at) => mutes.some((mute) => coversTime(mute, at)));
}
