import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod/mini';
import type { Place } from '../shared/place.js';
import { count, optional } from '../shared/schema.js';
import {
  addInOrder,
  beginningOf,
  type Claim,
  hasEnded,
  isMutedNow,
  isSameRun,
  type Mute,
  openRun,
  PlaceFields,
  processesOf,
  type Run,
  RunIdentity,
} from './runs.js';

/** When it happened, in ms since 1970, and its place among all facts, if the clock was set back before it was written down. */
const when = { at: z.number(), order: optional(z.number()) };
/** The end of the transcript then. */
const place = { after: PlaceFields };

/**
 * What only a hook, a backfill or the user knows of a session. A fact is never changed: what is known of the session follows from all
 * of them.
 */
export const Fact = z.discriminatedUnion('kind', [
  /** A run began. `alive` are the other processes that were at work in the session then. */
  z.object({
    kind: z.literal('start'),
    ...when,
    ...place,
    source: z.string(),
    run: RunIdentity,
    alive: z.array(z.string()),
  }),
  /** A run ended. Without `run`, it is the one that is open. */
  z.object({ kind: z.literal('end'), ...when, ...place, run: optional(RunIdentity), alive: z.array(z.string()) }),
  /** Tracing is off from there on. */
  z.object({ kind: z.literal('off'), ...when, ...place }),
  /** The user muted the session, or a process of Claude Code was told to from its start: `process`. */
  z.object({ kind: z.literal('mute'), ...when, ...place, process: optional(z.string()) }),
  z.object({ kind: z.literal('unmute'), ...when, ...place }),
  /** A Stop named a turn. The turn, here by its prompts, belongs to the Stop's run. */
  z.object({
    kind: z.literal('claim'),
    ...when,
    run: RunIdentity,
    /** The first bytes of the turn's prompts. */
    prompts: z.array(z.number()),
    /** The end of the turn, as far as it had come. */
    turnEnd: PlaceFields,
    startedAt: optional(z.number()),
  }),
  /** Claude Code has ended a turn. It waits until the turn has been sent. */
  z.object({
    kind: z.literal('stop'),
    ...when,
    run: RunIdentity,
    /** How long the transcript was then. */
    bytes: count,
    promptId: optional(z.string()),
    /** A hash of the answer. Its last line may not have been written by then. */
    answer: optional(z.string()),
    /** Whether a Stop hook has blocked before. Then the answer replies to that hook's feedback. */
    isAfterFeedback: z.boolean(),
    /** Agents and workflows that Claude Code lists as running. */
    running: z.array(z.string()),
    /** Whether its turn has been sent. The last Stop of a session is kept. */
    isDone: optional(z.boolean()),
  }),
  /** A backfill has sent what no run held. */
  z.object({ kind: z.literal('took'), ...when, run: RunIdentity, from: PlaceFields, to: PlaceFields }),
  /** A destination was wrong, or there was none (empty): another one replaces it. */
  z.object({
    kind: z.literal('adopt'),
    ...when,
    wrong: z.string(),
    right: z.string(),
    /** The settings that describe and restrict, for runs that have none. */
    given: optional(z.record(z.string(), z.string())),
  }),
]);
export type Fact = z.infer<typeof Fact>;
export type Stop = FactOf<'stop'>;
type FactOf<Kind extends Fact['kind']> = Extract<Fact, { kind: Kind }>;

/** What follows from the facts of a session. */
export interface Consent {
  /** In the order of the transcript. */
  readonly runs: readonly Run[];
  /** Turns that belong to a run which nobody saw begin: each is named by its Stop. */
  readonly claims: readonly Claim[];
  readonly mutes: readonly Mute[];
  readonly stops: readonly Stop[];
  /** When a process last ended, in ms since 1970; undefined if one has begun since. */
  readonly endedAt?: number | undefined;
}

export const NO_CONSENT: Consent = { runs: [], claims: [], mutes: [], stops: [] };

export function fold(facts: readonly Fact[]): Consent {
  return facts.toSorted((a, b) => orderOf(a) - orderOf(b)).reduce(apply, NO_CONSENT);
}

/** Adds a fact that came after all others. */
export function apply(known: Consent, fact: Fact): Consent {
  const { runs, claims, mutes, stops } = known;
  switch (fact.kind) {
    case 'start':
      return { ...known, runs: begin(known, fact), endedAt: undefined };
    case 'end':
      return { ...known, ...endOwn(known, fact), endedAt: fact.at };
    case 'off':
      return { ...known, runs: endOpen(runs, fact) };
    case 'mute':
      return { ...known, mutes: mute(mutes, fact) };
    case 'unmute':
      return { ...known, mutes: unmute(mutes, fact) };
    case 'stop':
      return { ...known, stops: [...stops, fact] };
    case 'claim':
      return { ...known, claims: addInOrder(claims, toClaim(fact)) };
    case 'took': {
      const { run, from, to } = fact;
      return { ...known, runs: addInOrder(runs, { ...run, from, to }) };
    }
    case 'adopt':
      return { ...known, runs: correct(runs, fact), claims: correct(claims, fact), stops: correctStops(stops, fact) };
  }
}

/** Notes that the turns of Stops have been sent. The last Stop says up to where the session is known, so it is kept. */
export function finishStops(facts: readonly Fact[], done: readonly Stop[]): Fact[] {
  const newest = facts.findLast(({ kind }) => kind === 'stop');
  const isDone = (stop: Stop) =>
    stop.isDone || done.some(({ at, promptId }) => at === stop.at && promptId === stop.promptId);
  return facts.flatMap((fact) => {
    if (fact.kind !== 'stop' || !isDone(fact)) return [fact];
    return fact === newest ? [{ ...fact, isDone: true }] : [];
  });
}

/** Adds facts, each once. If a backfill goes on with a run, the new `took` replaces the one with the same beginning. */
export function addFacts(before: readonly Fact[], added: readonly Fact[]): Fact[] {
  const isReplaced = (fact: Fact) =>
    fact.kind === 'took' && added.some((each) => each.kind === 'took' && each.from.bytes === fact.from.bytes);
  const isKnown = (fact: Fact) => before.some((each) => isDeepStrictEqual(each, fact));
  return [...before.filter((fact) => !isReplaced(fact)), ...added.filter((fact) => !isKnown(fact))];
}

/** These can be written down long after they happened. */
const WRITTEN_LATER: readonly Fact['kind'][] = ['stop', 'claim', 'took'];

/** Gives facts that are written down now their place after all that are known, even if the clock was set back meanwhile. */
export function putInOrder(known: readonly Fact[], added: readonly Fact[]): Fact[] {
  const newest = Math.max(...known.map(orderOf));
  const isInOrder = ({ kind, at }: Fact) => WRITTEN_LATER.includes(kind) || at >= newest;
  return added.map((fact) => (isInOrder(fact) ? fact : { ...fact, order: newest + 1 }));
}

function orderOf({ at, order = at }: Fact): number {
  return order;
}

/** Sources of sessions that may begin with a copy of another one. */
const MAY_COPY = ['resume', 'fork'];

/** SessionStart comes before its prompts: what the transcript has by then belongs to earlier runs. */
function begin({ runs, claims }: Consent, { run, source, after, at, alive }: FactOf<'start'>): readonly Run[] {
  const open = openRun(runs);
  const isJoined = open !== undefined && isAlive(open, alive);
  if (open && isSameRun(open, run))
    return addInOrder(runs, isJoined ? join(open, run) : { ...open, process: run.process ?? open.process });
  // A compaction begins no process, so it tells nothing of what was written before it.
  if (source === 'compact') return runs;
  const ended = endOpen(runs, { after, at });
  // If another process is at work in the session, a turn belongs to the process whose Stop names it.
  const to = isJoined ? after : findEarlyEnd(claims, after, run);
  const mayCopy = (after.bytes === 0 && MAY_COPY.includes(source)) || undefined;
  return addInOrder(ended, { ...run, from: after, to, startedAt: at, mayCopy });
}

/** Where a run ended, if its end was written down before its start; undefined if the run goes on. */
function findEarlyEnd(claims: readonly Claim[], after: Place, run: RunIdentity): Place | undefined {
  const own = claims.filter((claim) => beginningOf(claim) >= after.bytes && isSameRun(claim, run));
  return own.every(hasEnded) ? own.at(-1)?.to : undefined;
}

/** What is added to the transcript before another run begins was written with tracing off. */
function endOwn({ runs, claims }: Consent, { run, at, after, alive }: FactOf<'end'>) {
  // Its settings may have changed since it began.
  const isOfProcess = (each: Run | Claim) => run?.process !== undefined && processesOf(each).includes(run.process);
  const isOwn = (each: Run | Claim) => !run || ((isOfProcess(each) || isSameRun(each, run)) && !isAlive(each, alive));
  const open = openRun(runs);
  const shared = open && run && isOfProcess(open) ? addInOrder(runs, leave(open, run)) : runs;
  return {
    runs: open && isOwn(open) ? endOpen(runs, { after, at }) : shared,
    claims: claims.map((claim) => (!hasEnded(claim) && isOwn(claim) ? { ...claim, endedAt: at, to: after } : claim)),
  };
}

function endOpen(runs: readonly Run[], { after, at }: { readonly after: Place; readonly at: number }) {
  const open = openRun(runs);
  if (!open) return runs;
  return addInOrder(runs, { ...open, to: after.bytes > open.from.bytes ? after : open.from, endedAt: at });
}

/** Lets another process go on with a run, too. */
function join(run: Run, { process }: RunIdentity): Run {
  const all = processesOf(run);
  return process === undefined || all.includes(process) ? run : { ...run, others: [...(run.others ?? []), process] };
}

/** Lets the other processes of a run go on without one. */
function leave(run: Run, { process: gone }: RunIdentity): Run {
  const [process, ...others] = processesOf(run).filter((each) => each !== gone);
  return { ...run, process, others };
}

function isAlive(run: Run | Claim, alive: readonly string[]): boolean {
  return processesOf(run).some((process) => alive.includes(process));
}

/** If the session is muted already, the process counts as having muted it. */
function mute(mutes: readonly Mute[], { after, at, process }: FactOf<'mute'>): readonly Mute[] {
  const last = mutes.at(-1);
  return last && isMutedNow(mutes)
    ? [...mutes.slice(0, -1), { ...last, process: process ?? last.process }]
    : [...mutes, { from: after, since: at, process }];
}

function unmute(mutes: readonly Mute[], { after, at }: FactOf<'unmute'>): readonly Mute[] {
  const last = mutes.at(-1);
  return last && isMutedNow(mutes) ? [...mutes.slice(0, -1), { ...last, to: after, until: at }] : mutes;
}

function toClaim({ run, prompts, turnEnd, startedAt }: FactOf<'claim'>): Claim {
  return { ...run, prompts, turnEnd, startedAt };
}

function correctStops(stops: readonly Stop[], fact: FactOf<'adopt'>): readonly Stop[] {
  return stops.map((stop) => ({ ...stop, run: correct([stop.run], fact)[0] ?? stop.run }));
}

function correct<T extends RunIdentity>(all: readonly T[], { wrong, right, given }: FactOf<'adopt'>): readonly T[] {
  return all.map((run) => {
    const { destination = '', namedDestination = destination } = run;
    return destination === wrong ? { ...run, destination: right, namedDestination, given: run.given ?? given } : run;
  });
}
