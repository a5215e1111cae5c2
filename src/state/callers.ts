import * as z from 'zod/mini';
import type { Caller } from '../observations/model.js';
import { optional } from '../shared/schema.js';

/**
 * The callers of a session's own runs, in order, each with the line from which it applies. A session may be resumed below
 * another span, with another seed, or by hand. A turn belongs to the caller of the run in which its prompt was given, whichever
 * run sends it, so its ids never change.
 */
export const Callers = z.array(
  z.object({
    parent: optional(z.object({ trace: z.string(), span: z.string() })),
    seed: optional(z.string()),
    metadata: optional(z.record(z.string(), z.string())),
    fromLine: z.number(),
  }),
);
export type Callers = z.infer<typeof Callers>;

/** SessionStart comes before the prompts of its run: the lines that exist by then belong to earlier runs. */
export function withStartedRun(callers: Callers, caller: Caller, countLines: () => number): Callers {
  const { fromLine: _, ...latest } = callers.at(-1) ?? { fromLine: 0 };
  return isSame(latest, caller) ? callers : withCaller(callers, caller, countLines() + 1);
}

/**
 * A run without a SessionStart begins after the last line that earlier runs knew. A caller that is already known adds nothing,
 * since its event may be handled after the next run has started.
 */
export function withRun(callers: Callers, caller: Caller, lastKnownLine: number): Callers {
  const others = callers.length === 0 ? [{}] : callers.map(({ fromLine: _, ...other }) => other);
  return others.some((other) => isSame(other, caller)) ? callers : withCaller(callers, caller, lastKnownLine + 1);
}

/** Returns the caller of the turn whose prompt is on this line. */
export function callerAt(callers: Callers, line: number): Caller {
  return callers.findLast(({ fromLine }) => fromLine <= line) ?? {};
}

function withCaller(callers: Callers, caller: Caller, fromLine: number): Callers {
  const others = callers.filter((each) => each.fromLine !== fromLine);
  return [...others, { ...caller, fromLine } as Callers[number]].toSorted((a, b) => a.fromLine - b.fromLine);
}

/** Compares them as the state file would hold them: without what is undefined. */
function isSame(one: Caller, other: Caller): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
