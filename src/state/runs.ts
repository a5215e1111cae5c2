import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod/mini';
import { BEGINNING, type Place } from '../shared/place.js';
import { count, optional } from '../shared/schema.js';

export const PlaceFields = z.object({ bytes: count, hash: z.string() });

/** A run of Claude Code in a session, or a backfill: what started it, where its turns are sent, and under which settings. */
export const RunIdentity = z.object({
  /** Undefined if its settings named no destination. */
  destination: optional(z.string()),
  /** The destination that its settings named, if `destination` has replaced it. Empty if they named none. */
  namedDestination: optional(z.string()),
  /** The variables that describe its turns or restrict what is sent. The first cc-langfuse did not save them. */
  given: optional(z.record(z.string(), z.string())),
  /** The folder that Claude Code was started in. */
  folder: optional(z.string()),
  parent: optional(z.object({ trace: z.string(), span: z.string() })),
  seed: optional(z.string()),
  metadata: optional(z.record(z.string(), z.string())),
  experiment: optional(z.record(z.string(), z.string())),
  /** The process of Claude Code, as `nameProcess` names it. */
  process: optional(z.string()),
});
export type RunIdentity = z.infer<typeof RunIdentity>;

/**
 * A run, and its part of the transcript. A turn belongs to the run in which its prompt was given, whichever run sends it. What is in
 * no run was written with tracing off.
 */
export interface Run extends RunIdentity {
  readonly from: Place;
  /** Its end; undefined as long as the run may go on. */
  readonly to?: Place | undefined;
  /** When it began and ended, in ms since 1970. */
  readonly startedAt?: number | undefined;
  readonly endedAt?: number | undefined;
  /** Other processes with the same settings that have begun since, and have not ended. */
  readonly others?: readonly string[] | undefined;
  /** Its transcript was not there when it began, so it may begin with what a fork copies from another session. */
  readonly mayCopy?: boolean | undefined;
}

/** A turn that a Stop has named, and the run that the Stop came from. */
export interface Claim extends RunIdentity {
  /** The first bytes of its prompts. A prompt between them can be another process's. */
  readonly prompts: readonly number[];
  /** Its end, as far as it had come. If the bytes before that have changed, another turn may be there. */
  readonly turnEnd: Place;
  /** When its first prompt was given, in ms since 1970. */
  readonly startedAt?: number | undefined;
  /** When the session of that run ended, in ms since 1970, and how long the transcript was then. Until then the turn may grow. */
  readonly endedAt?: number | undefined;
  readonly to?: Place | undefined;
}

/** A span in which a session was muted: a part of the transcript and, for subagents' own files, a time in ms since 1970. */
export interface Mute {
  readonly from: Place;
  readonly to?: Place | undefined;
  readonly since: number;
  readonly until?: number | undefined;
  /** The process of Claude Code that was told to be mute from its start. */
  readonly process?: string | undefined;
}

/** Whether a mute covers any of these bytes. An empty one, in which nothing was said, covers none. */
export function coversBytes({ from, to }: Pick<Mute, 'from' | 'to'>, first: number, end: number): boolean {
  const until = to?.bytes ?? Number.POSITIVE_INFINITY;
  return from.bytes < until && first < until && end > from.bytes;
}

export function coversTime({ since, until = Number.POSITIVE_INFINITY }: Mute, at: number): boolean {
  return since <= at && at <= until;
}

/** Whether the user has muted the session and has not unmuted it since. */
export function isMutedNow(mutes: readonly Mute[] = []): boolean {
  return mutes.length > 0 && mutes.at(-1)?.to === undefined;
}

/** Returns the run that a prompt belongs to, by its first byte: the one that claims it, or else the one that holds it. */
export function findRun({ runs, claims = [] }: SessionRuns, prompt: number): Run | Claim | undefined {
  return claims.find(({ prompts }) => prompts.includes(prompt)) ?? runAt(runs, prompt);
}

/** All runs of a session, including those that are known only from claims. */
export function listRuns({ runs, claims = [] }: SessionRuns): RunIdentity[] {
  return [...runs, ...claims];
}

interface SessionRuns {
  readonly runs: readonly Run[];
  readonly claims?: readonly Claim[] | undefined;
}

/** A run that goes on ends where the next one begins. */
function runAt(runs: readonly Run[], prompt: number): Run | undefined {
  const run = runs.findLast(({ from }) => from.bytes <= prompt);
  return run?.to === undefined || prompt < run.to.bytes ? run : undefined;
}

/** Returns the run that goes on, if there is one. */
export function openRun(runs: readonly Run[]): Run | undefined {
  const last = runs.at(-1);
  return last && last.to === undefined ? last : undefined;
}

/** Whether two runs would send a turn alike. If the first one's destination was replaced, the replaced one counts, too. */
export function isSameRun(run: RunIdentity, other: RunIdentity): boolean {
  const isReplaced = run.namedDestination !== undefined && run.namedDestination === (other.destination ?? '');
  return isDeepStrictEqual(describe(run), describe(isReplaced ? { ...other, destination: run.destination } : other));
}

function describe({ destination, given, parent, seed, metadata, experiment }: RunIdentity) {
  return { destination, given, parent, seed, metadata, experiment };
}

/** Adds a run or a claim in the order of the transcript; one that begins at the same byte is replaced. */
export function addInOrder<T extends Run | Claim>(before: readonly T[], added: T): T[] {
  const others = before.filter((each) => beginningOf(each) !== beginningOf(added));
  return [...others, added].toSorted((a, b) => beginningOf(a) - beginningOf(b));
}

/** The first byte of a run or of a claimed turn. */
export function beginningOf(run: Run | Claim): number {
  return 'prompts' in run ? Math.min(...run.prompts) : run.from.bytes;
}

/** The processes that may go on with a run. */
export function processesOf(run: Run | Claim): string[] {
  const others = 'prompts' in run ? [] : (run.others ?? []);
  return run.process === undefined ? [...others] : [run.process, ...others];
}

/** Whether nothing more of a run will be written. */
export function hasEnded(run: Run | Claim): boolean {
  return 'prompts' in run ? run.endedAt !== undefined : run.to !== undefined;
}

/** A part of a transcript that belongs to no run. */
interface Gap {
  /** The end of the run before it, or the beginning of the transcript. */
  readonly from: Place;
  /** The first byte after it. */
  readonly to: number;
}

/** Returns the gaps up to a byte. */
export function findGaps(runs: readonly Run[], upTo: number): Gap[] {
  const gaps: Gap[] = [];
  let next: Place | undefined = BEGINNING;
  for (const { from, to } of runs) {
    if (next) gaps.push({ from: next, to: Math.min(from.bytes, upTo) });
    if (next && (to === undefined || to.bytes > next.bytes)) next = to;
  }
  if (next) gaps.push({ from: next, to: upTo });
  return gaps.filter(({ from, to }) => from.bytes < to);
}
