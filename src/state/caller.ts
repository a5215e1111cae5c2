import * as z from 'zod/mini';
import type { Caller } from '../observations/model.js';
import { optional } from '../shared/schema.js';

const StoredCaller = z.object({
  parent: optional(z.object({ trace: z.string(), span: z.string() })),
  seed: optional(z.string()),
  metadata: optional(z.record(z.string(), z.string())),
});

/**
 * The callers of a session's own runs, each with the line from which on it holds, in that order. A session may be resumed
 * below another span, or with another seed, or by hand. What a turn is a part of was settled when its prompt was given: the
 * caller of that run holds for it whichever run sends it, or what it has grown by, so its ids never move.
 */
export const Callers = z.array(z.extend(StoredCaller, { from_line: z.number() }));
export type Callers = z.infer<typeof Callers>;

/** SessionStart comes before the prompts of its run: all that is written by then is of the runs before. */
export function withStart(callers: Callers, caller: Caller, lines: () => number): Callers {
  const { from_line: _, ...latest } = callers.at(-1) ?? { from_line: 0 };
  return isSame(latest, caller) ? callers : withCaller(callers, caller, lines() + 1);
}

/**
 * Without a SessionStart a run begins behind what the runs before it knew of. One whose caller is known already adds
 * nothing: it may be handled after the next one has started.
 */
export function withRun(callers: Callers, caller: Caller, knownLine: number): Callers {
  const others = callers.length === 0 ? [{}] : callers.map(({ from_line: _, ...other }) => other);
  return others.some((other) => isSame(other, caller)) ? callers : withCaller(callers, caller, knownLine + 1);
}

/** The one that holds for the turn whose prompt stands on a line. */
export function callerAt(callers: Callers, line: number): Caller {
  return callers.findLast(({ from_line }) => from_line <= line) ?? {};
}

function withCaller(callers: Callers, caller: Caller, line: number): Callers {
  const others = callers.filter(({ from_line }) => from_line !== line);
  return [...others, { ...caller, from_line: line }].toSorted((a, b) => a.from_line - b.from_line);
}

/** As the state would have them: there, what is undefined is missing. */
function isSame(one: Caller, other: Caller): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
