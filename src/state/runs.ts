import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod/mini';
import { optional } from '../shared/schema.js';

/** What started a run of Claude Code in a session, or a backfill, where its turns are sent, and under which settings. */
export const RunIdentity = z.object({
  /** Undefined if its settings named no destination. */
  destination: optional(z.string()),
  /** What its settings named if that was wrong, and `destination` has replaced it; empty if they named none. */
  namedDestination: optional(z.string()),
  /** The variables that describe its turns or restrict what of them is sent; the first cc-langfuse did not save them. */
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
 * A run, and its lines. A turn belongs to the run in which its prompt was given, whichever run sends it. Lines of no run were written
 * with tracing off.
 */
export interface Run extends RunIdentity {
  readonly fromLine: number;
  /** Its last line; undefined as long as the run may go on. */
  readonly toLine?: number | undefined;
  /** When it began and ended, in ms since 1970. */
  readonly startedAt?: number | undefined;
  readonly endedAt?: number | undefined;
  /** Its transcript was not there when it began, so it may begin with what a fork copies from another session. */
  readonly mayCopy?: boolean | undefined;
}

/** A turn that a Stop has named, and the run that the Stop came from. */
export interface Claim extends RunIdentity {
  readonly fromLine: number;
  /** The lines of its prompts. Those between them can be another process's. */
  readonly lines: readonly number[];
  /** When its first prompt was given, in ms since 1970. */
  readonly startedAt?: number | undefined;
  /** When the session of that run ended, in ms since 1970. Until then the turn may grow. */
  readonly endedAt?: number | undefined;
}

/** When the user has muted a session: the lines, and for what subagents write to their own files, the time in ms since 1970. */
export interface Mute {
  readonly fromLine: number;
  readonly toLine?: number | undefined;
  readonly since: number;
  readonly until?: number | undefined;
  /** The process of Claude Code that was told to be mute from its start. */
  readonly process?: string | undefined;
}

/** Whether a mute covers lines. An empty one, in which nothing was said, covers none. */
export function coversLines(
  { fromLine, toLine = Number.POSITIVE_INFINITY }: Mute,
  first: number,
  last: number,
): boolean {
  return fromLine <= toLine && first <= toLine && last >= fromLine;
}

export function coversTime({ since, until = Number.POSITIVE_INFINITY }: Mute, at: number): boolean {
  return since <= at && at <= until;
}

/** Whether the user has muted the session and has not unmuted it since. */
export function isMutedNow(mutes: readonly Mute[] = []): boolean {
  return mutes.length > 0 && mutes.at(-1)?.toLine === undefined;
}

/** Returns the run that a prompt belongs to: the one that claims it, or else the one that holds its line. */
export function findRun({ runs, claims = [] }: SessionRuns, line: number): Run | Claim | undefined {
  return claims.find(({ lines }) => lines.includes(line)) ?? runAt(runs, line);
}

/** All runs of a session, those included of which only claims are known. */
export function listRuns({ runs, claims = [] }: SessionRuns): RunIdentity[] {
  return [...runs, ...claims];
}

interface SessionRuns {
  readonly runs: readonly Run[];
  readonly claims?: readonly Claim[] | undefined;
}

/** A run that goes on ends where the next one begins. */
function runAt(runs: readonly Run[], line: number): Run | undefined {
  const run = runs.findLast(({ fromLine }) => fromLine <= line);
  return run?.toLine === undefined || line <= run.toLine ? run : undefined;
}

/** Returns the run that goes on, if there is one. */
export function openRun(runs: readonly Run[]): Run | undefined {
  const last = runs.at(-1);
  return last && last.toLine === undefined ? last : undefined;
}

/** Whether two runs would send a turn alike, or did before another destination replaced that of the first. */
export function isSameRun(run: RunIdentity, other: RunIdentity): boolean {
  const isReplaced = run.namedDestination !== undefined && run.namedDestination === (other.destination ?? '');
  return isDeepStrictEqual(describe(run), describe(isReplaced ? { ...other, destination: run.destination } : other));
}

function describe({ destination, given, parent, seed, metadata, experiment }: RunIdentity) {
  return { destination, given, parent, seed, metadata, experiment };
}

/** Adds runs or claims in the order of their lines; one that begins at the same line is replaced. */
export function mergeByLine<T extends { readonly fromLine: number }>(before: readonly T[], changed: readonly T[]): T[] {
  const others = before.filter(({ fromLine }) => !changed.some((each) => each.fromLine === fromLine));
  return [...others, ...changed].toSorted((a, b) => a.fromLine - b.fromLine);
}

/** Whether nothing more of a run will be written. */
export function hasEnded(run: Run | Claim): boolean {
  return 'lines' in run ? run.endedAt !== undefined : run.toLine !== undefined;
}

/** Returns the parts of the lines up to a line that belong to no run. */
export function findGaps(runs: readonly Run[], upTo: number): { fromLine: number; toLine: number }[] {
  const gaps: { fromLine: number; toLine: number }[] = [];
  let next = 1;
  for (const { fromLine, toLine = Number.POSITIVE_INFINITY } of runs) {
    if (fromLine > next) gaps.push({ fromLine: next, toLine: Math.min(fromLine - 1, upTo) });
    next = Math.max(next, toLine + 1);
  }
  if (next <= upTo) gaps.push({ fromLine: next, toLine: upTo });
  return gaps.filter(({ fromLine, toLine }) => fromLine <= toLine);
}
