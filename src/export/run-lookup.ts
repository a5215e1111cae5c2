import { BEGINNING, type Place } from '../shared/place.js';
import { type Entry, listWaiting, type SessionRecord } from '../state/entry.js';
import { apply, type Consent, type Fact, type Stop } from '../state/facts.js';
import {
  beginningOf,
  type Claim,
  coversBytes,
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
import type { Places } from '../transcript/file/place.js';
import { type AgentThread, lineOfEnd, listTimes, type Prompt, type Turn } from '../transcript/turns/turn.js';
import { LAST_LINES_MS } from './over.js';

type Took = Extract<Fact, { kind: 'took' }>;

/** Where the places of a session's facts are in its transcript. */
export type TranscriptPlaces = Pick<Places, 'at' | 'isIntact' | 'afterLine'>;

/** What a lookup needs besides what is known of the session. */
interface RunLookupOptions {
  /** The run that an export is made by. */
  readonly own?: RunIdentity | undefined;
  /** Whether the turns of no run may be sent, too, as turns of that run. */
  readonly takesAll?: boolean | undefined;
  /** The first bytes of prompts that were sent before, by their ids. */
  readonly prompts?: Readonly<Record<string, number>> | undefined;
  /** Up to which line the session's turns were sent to a destination. */
  readonly lineSentTo?: ((destination: string) => number) | undefined;
}

type KnownSession = Consent & Pick<SessionRecord, 'seedLine'> & Partial<Pick<Entry, 'facts' | 'kept'>>;

const PROMPTS_KEPT = 32;

/** Knows which run each turn of a session belongs to, and so whether, where and how it is sent. */
export class RunLookup {
  readonly #options: RunLookupOptions;
  readonly #places: TranscriptPlaces;
  readonly #destination: string;
  /** What the state said when it was read. */
  readonly #asRead: KnownSession;
  /** What still holds of that, and what this export has added. */
  #known: Consent;
  #added: Fact[] = [];
  /** By the first bytes of the turns that this export has taken. */
  readonly #taken = new Map<number, Took>();
  /** The first bytes of prompts, by their ids. A later one can have the same id, as a teammate's message does. */
  readonly #prompts: Map<string, number>;
  /** Stops without an id that have claimed their turns. */
  readonly #settled = new Set<Stop>();
  /** When the turns began that this export has read, and whether they belong to a run. */
  readonly #begun: { readonly at: number; readonly isTraced: boolean }[] = [];

  constructor(known: KnownSession, destination: string, places: TranscriptPlaces, options: RunLookupOptions = {}) {
    this.#asRead = known;
    // If the transcript was rewritten there, the facts speak of other bytes.
    const isIntact = ({ from, to = from }: Run) => places.isIntact(from) && places.isIntact(to);
    const claims = known.claims.filter(({ turnEnd }) => places.isIntact(turnEnd));
    this.#known = { ...known, runs: known.runs.filter(isIntact), claims };
    this.#places = places;
    this.#destination = destination;
    this.#options = options;
    this.#prompts = new Map(Object.entries(options.prompts ?? {}));
    if (known.seedLine !== undefined) this.#addSeed(known.seedLine);
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
    const isNew = ({ from, to }: Run) => {
      const own = [...this.#asRead.runs, ...this.#known.runs].findLast((run) => run.from.bytes === from.bytes);
      return !own || (own.to === undefined && to !== undefined);
    };
    return mutes.length > this.#asRead.mutes.length || runs.some(isNew);
  }

  /** Sends runs that had no destination, or a wrong one, to this one. Those without settings get the settings of this run. */
  adopt(isWrong: (destination: string) => boolean): void {
    const { given = {} } = this.#options.own ?? {};
    const named = new Set([...this.#known.runs, ...this.#known.claims].map(({ destination = '' }) => destination));
    for (const wrong of named)
      if (wrong !== this.#destination && (wrong === '' || isWrong(wrong)))
        this.#add({ kind: 'adopt', at: Date.now(), wrong, right: this.#destination, given });
  }

  /** The runs in which the prompts of a turn were given, if all of them are known and are for this destination. */
  findRuns(prompts: readonly number[]): [RunIdentity, ...RunIdentity[]] | undefined {
    return this.#takeOwn(prompts.map((prompt) => this.#findRun(prompt)));
  }

  /** Returns different runs, if all of them are known and are for this destination. */
  #takeOwn([first, ...more]: readonly (Run | Claim | undefined)[]): [RunIdentity, ...RunIdentity[]] | undefined {
    if (!first || [first, ...more].some((run) => run?.destination !== this.#destination)) return undefined;
    return [first, ...more.filter((run) => run !== undefined && !isSameRun(run, first))] as [Run, ...Run[]];
  }

  /** Why there are no runs for this destination in which the prompts of a turn were given. */
  explainNone(prompts: readonly number[]): 'untraced' | 'another project' | 'no project' {
    const runs = prompts.map((prompt) => this.#findRun(prompt));
    if (runs.includes(undefined)) return 'untraced';
    return runs.some((run) => run?.destination === undefined) ? 'no project' : 'another project';
  }

  /** Whether a run is known for each prompt of a turn, wherever that sends it. */
  isKnown({ prompts }: Turn): boolean {
    return prompts.every(({ offset }) => this.#findRun(offset) !== undefined);
  }

  /** Whether the run that a turn belongs to has ended. */
  hasEnded({ prompts }: Turn): boolean {
    const run = this.#findRun(prompts[0].offset);
    return run !== undefined && hasEnded(run);
  }

  /** Whether a turn belongs to a run whose transcript may begin with what a fork copies, and is older than that run. */
  mayBeCopied({ prompts: [{ offset, at }] }: Turn): boolean {
    const run = this.#findRun(offset);
    return run !== undefined && 'mayCopy' in run && run.mayCopy === true && at < (run.startedAt ?? 0);
  }

  /**
   * All runs for this destination; undefined if a part of the session belongs to no run, since nobody knows what was written then.
   * A headless fork of an old version has no start of its own: its runs are those of the Stops that have named all of its turns.
   */
  findAllRuns(): [RunIdentity, ...RunIdentity[]] | undefined {
    const { runs, claims } = this.#known;
    const { own, takesAll } = this.#options;
    if (runs.length === 0 && claims.length === 0 && own && takesAll) return [own];
    if (runs.length === 0) return takesAll || this.#isEachTraced() ? this.#takeOwn(claims) : undefined;
    const isWhole = findGaps(runs, runs.at(-1)?.from.bytes ?? 0).length === 0;
    // A run that ended before anything was written holds no byte, but agents may have worked in it.
    return isWhole ? this.#takeOwn(runs.map((run) => this.#findRun(run.from.bytes) ?? run)) : undefined;
  }

  #isEachTraced(): boolean {
    const { facts = [], kept } = this.#asRead;
    const isOfStop = facts.every(({ kind }) => ['stop', 'claim', 'end'].includes(kind));
    return isOfStop && !kept && this.#begun.every(({ isTraced }) => isTraced);
  }

  /** Whether a variable has a value in any run. */
  isGiven(variable: string, value: string): boolean {
    const all = [...this.#known.runs, ...this.#known.claims, this.#options.own];
    return all.some((run) => run?.given?.[variable]?.trim().toLowerCase() === value);
  }

  /** Whether the user has muted any of a turn. */
  isMuted(turn: Turn): boolean {
    const { mutes } = this.#known;
    return mutes.some((mute) => this.#mutes(mute, turn)) || isMutedAt(mutes, listTimes(turn));
  }

  /** Whether an agent wrote anything to its own file while the session was muted or not traced. */
  isAgentKept({ turns }: AgentThread): boolean {
    const times = turns.flatMap(listTimes);
    const isUntracedAt = this.#whenUntraced();
    return isMutedAt(this.#known.mutes, times) || times.some(isUntracedAt);
  }

  /** Whether an agent of which nobody knows the turn wrote anything while no process was at work that is known to be traced. */
  isOutsideRuns({ turns }: AgentThread): boolean {
    const pauses = this.#options.takesAll ? [] : this.#listPauses();
    const isInPause = (at: number) => pauses.some(({ after, before }) => after + LAST_LINES_MS < at && at < before);
    return turns.flatMap(listTimes).some(isInPause);
  }

  /** The Stops of runs for this destination whose turns have not been sent. */
  get waiting(): readonly Stop[] {
    return listWaiting(this.#known, this.#destination);
  }

  /** The Stops that name turns which have not been read. */
  get missing(): readonly Stop[] {
    return this.waiting.filter(({ promptId }) => promptId !== undefined && !this.#prompts.has(promptId));
  }

  /** The last prompts of this destination's turns: a prompt is known by its id and its place. A Stop can still name any other. */
  lastPrompts(): Record<string, number> {
    const isOwn = (prompt: number) => this.#findRun(prompt)?.destination === this.#destination;
    return Object.fromEntries([...this.#prompts].slice(-PROMPTS_KEPT).filter(([, prompt]) => isOwn(prompt)));
  }

  /** The first byte of the first known prompt with this id. */
  findPrompt(promptId: string): number | undefined {
    return this.#prompts.get(promptId);
  }

  /** Whether this prompt is the first with its id, as far as they have been read: it is the one that a Stop names. */
  isFirst({ promptId, offset }: Pick<Prompt, 'promptId' | 'offset'>): boolean {
    return promptId === undefined || (this.#prompts.get(promptId) ?? offset) >= offset;
  }

  /** Whether no run goes on: what follows, if anything does, was written with tracing off. */
  get isOver(): boolean {
    return this.#known.runs.every(hasEnded);
  }

  get wasMuted(): boolean {
    return this.#known.mutes.length > 0;
  }

  /** Whether the user has muted the session and has not unmuted it since. */
  get isMutedNow(): boolean {
    return isMutedNow(this.#known.mutes);
  }

  /**
   * Takes note of turns that have been read. A turn that a Stop names belongs to the Stop's run. `readTo` is how many bytes have been
   * read by then: if the turns end before, the prompt of a later turn has been read.
   */
  claim(turns: readonly Turn[], readTo: number, isCopy: (turn: Turn) => boolean): void {
    for (const turn of turns) this.#notePrompts(turn, isCopy);
    if (this.#options.takesAll) return;
    for (const stop of this.#known.stops) {
      const turn = this.#findNamed(stop, turns, readTo);
      if (turn && !stop.isDone) this.#claimFor(stop, turn, isCopy);
    }
    for (const { prompts, copied } of turns) {
      if (copied) continue;
      const [{ offset, at }] = prompts;
      this.#begun.push({ at, isTraced: this.#findRun(offset) !== undefined });
    }
  }

  /** What a fork has copied has the ids of the other session. */
  #notePrompts(turn: Turn, isCopy: (turn: Turn) => boolean): void {
    const isAwaited = turn.prompts.some(({ promptId }) => this.waiting.some((stop) => stop.promptId === promptId));
    if (turn.copied || (isAwaited && isCopy(turn))) return;
    for (const { promptId, offset } of turn.prompts)
      if (promptId !== undefined && !this.#prompts.has(promptId)) this.#prompts.set(promptId, offset);
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

  #claimFor({ run, at }: Stop, turn: Turn, isCopy: (turn: Turn) => boolean): void {
    const [{ offset: first, at: startedAt }] = turn.prompts;
    const prompts = turn.prompts.map(({ offset }) => offset);
    const isKnown = prompts.map((prompt) => this.#findRun(prompt)).every((each) => each && isSameRun(each, run));
    const isSent = this.#isSentElsewhere(turn, run);
    if (isKnown || isSent || this.#isBeforeStart(first) || turn.copied || isCopy(turn)) return;
    this.#add({ kind: 'claim', at, run, prompts, turnEnd: this.#places.at(turn.end), startedAt });
  }

  /** Whether this export may send turns of no run, and this is one. */
  mayTake(turn: Turn): boolean {
    const [{ offset }] = turn.prompts;
    return this.#options.takesAll === true && (this.#taken.has(offset) || !this.isKnown(turn));
  }

  /** Whether a backfill has looked at a turn of no run: it may have left it to another session. */
  wasTaken({ prompts }: Turn): boolean {
    const run = this.#findRun(prompts[0].offset);
    return run !== undefined && run.startedAt === undefined;
  }

  /** Takes such a turn. Returns what is to be saved once the turn is acknowledged. */
  take({ prompts, end }: Turn): Fact {
    const [{ offset }] = prompts;
    const { offset: untraced } = prompts.find((prompt) => !this.#findRun(prompt.offset)) ?? prompts[0];
    const to = this.#places.at(end);
    const known = this.#taken.get(offset);
    const fact = known ? { ...known, to } : this.#cover(untraced, to, this.#options.own ?? {});
    this.#known = apply(this.#known, fact);
    this.#taken.set(offset, fact);
    return fact;
  }

  /** Whether the rest of a turn can decide how it is sent, or whether it is. */
  isUndecided(turn: Turn): boolean {
    const isOpen = !this.#options.takesAll && !this.isKnown(turn);
    return isOpen || this.#known.mutes.some(({ from }) => from.bytes >= turn.end);
  }

  /** Records that this export has looked at what belongs to no run, up to a byte. */
  fillGaps(upTo: number): void {
    const { own, takesAll } = this.#options;
    if (!own || !takesAll) return;
    for (const { to } of findGaps(this.#known.runs, upTo)) this.#add(this.#cover(to - 1, this.#places.at(to), own));
  }

  #findRun(prompt: number): Run | Claim | undefined {
    return findRun(this.#known, prompt);
  }

  /** In a transcript that has been rewritten, only times say what was muted. */
  #mutes(mute: Mute, { prompts, end }: Turn): boolean {
    const { from, to = from } = mute;
    const isIntact = this.#places.isIntact(from) && this.#places.isIntact(to);
    return isIntact && coversBytes(mute, Math.min(...prompts.map(({ offset }) => offset)), end);
  }

  /** The first cc-langfuse counted lines. */
  #addSeed(line: number): void {
    const to = this.#places.at(this.#places.afterLine(line) ?? 0);
    if (this.#known.runs[0]?.from.bytes !== 0) this.#add({ kind: 'took', at: 0, run: {}, from: BEGINNING, to });
  }

  /** Whether the run that holds a turn has sent it to another destination than that of a Stop which names it. */
  #isSentElsewhere(turn: Turn, { destination }: RunIdentity): boolean {
    const { destination: holder = destination } = this.#findRun(turn.prompts[0].offset) ?? {};
    if (holder === undefined || holder === destination) return false;
    return lineOfEnd(turn) <= (this.#options.lineSentTo?.(holder) ?? 0);
  }

  /** Whether a hook saw a process start after a prompt. What was there by then is not claimed. */
  #isBeforeStart(prompt: number): boolean {
    return this.#known.runs.some(({ from, startedAt }) => startedAt !== undefined && from.bytes > prompt);
  }

  /** Returns what tells of a time whether tracing was off then, judged by the runs and by the turns that have been read. */
  #whenUntraced(): (at: number) => boolean {
    const begun = this.#begun.toSorted((a, b) => a.at - b.at);
    const all = new Set([...this.#asRead.runs, ...this.#known.runs, ...this.#known.claims]);
    const inOrder = [...all].toSorted((a, b) => beginningOf(a) - beginningOf(b));
    const gaps = inOrder.flatMap((run, place) => {
      const next = inOrder[place + 1];
      if (!next || run.endedAt === undefined || beginningOf(next) <= endOf(run)) return [];
      return [{ after: run.endedAt, before: next.startedAt ?? Number.POSITIVE_INFINITY }];
    });
    return (at) =>
      gaps.some(({ after, before }) => after < at && at < before) ||
      begun.findLast((turn) => turn.at <= at)?.isTraced === false;
  }

  /** When no process was at work whose start was seen. If none was, only Stops tell. */
  #listPauses(): { after: number; before: number }[] {
    const { runs, claims } = this.#known;
    const { facts = [] } = this.#asRead;
    const seen = runs.flatMap(({ startedAt, endedAt }) => (startedAt === undefined ? [] : [{ startedAt, endedAt }]));
    if (seen.length === 0) return [{ after: Math.max(...facts.map(({ at }) => at)), before: Number.POSITIVE_INFINITY }];
    const claimed = claims.map(({ endedAt = Number.POSITIVE_INFINITY }) => endedAt);
    const inOrder = seen.toSorted((a, b) => a.startedAt - b.startedAt);
    return inOrder.map(({ endedAt = Number.POSITIVE_INFINITY }, place) => {
      const { startedAt: before = Number.POSITIVE_INFINITY } = inOrder[place + 1] ?? {};
      return { after: Math.max(endedAt, ...claimed), before };
    });
  }

  /** Covers a byte of no run, and the gap before it. If a backfill has taken what is before the gap, that run goes on. */
  #cover(byte: number, to: Place, run: RunIdentity): Took {
    const { from: start } = findGaps(this.#known.runs, byte + 1).at(-1) ?? { from: this.#places.at(byte) };
    const isBefore = (each: Run) =>
      each.to?.bytes === start.bytes && each.startedAt === undefined && isSameRun(each, run);
    const { from } = this.#known.runs.find(isBefore) ?? { from: start };
    return { kind: 'took', at: Date.now(), run, from, to };
  }

  #add(fact: Fact): void {
    this.#known = apply(this.#known, fact);
    this.#added.push(fact);
  }
}

function endOf(run: Run | Claim): number {
  return 'prompts' in run ? Math.max(...run.prompts) : (run.to?.bytes ?? Number.POSITIVE_INFINITY);
}

export function isMutedAt(mutes: readonly Mute[], times: readonly number[]): boolean {
  return mutes.length > 0 && times.some((at) => mutes.some((mute) => coversTime(mute, at)));
}
