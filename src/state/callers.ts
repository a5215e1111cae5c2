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

/** Whether a caller is one of these. A run that nothing started needs no entry if it is the first. */
export function includesCaller(callers: Callers, caller: Caller): boolean {
  const others = callers.length === 0 ? [{}] : callers.map(({ fromLine: _, ...other }) => other);
  // Compared as the state file would hold them: without what is undefined.
  return others.some((other) => JSON.stringify(other) === JSON.stringify(caller));
}

/** Returns the caller of the turn whose prompt is on this line. */
export function callerAt(callers: Callers, line: number): Caller {
  return callers.findLast(({ fromLine }) => fromLine <= line) ?? {};
}

/** Adds the caller of the run that begins at a line. */
export function withCaller(callers: Callers, caller: Caller, fromLine: number): Callers {
  const others = callers.filter((each) => each.fromLine !== fromLine);
  return [...others, { ...caller, fromLine } as Callers[number]].toSorted((a, b) => a.fromLine - b.fromLine);
}
