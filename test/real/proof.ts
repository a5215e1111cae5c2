import { availableParallelism, loadavg } from 'node:os';
import { expect, type TestContext } from 'vitest';
import { outlineOf } from './outline.js';
import type { TracedHome } from './traced-home.js';
import { sum } from './transcripts.js';
import { unknownShapes } from './wire-shapes.js';

declare module 'vitest' {
  interface TaskMeta {
    /** Unknown line types and fields that a test found. */
    unknownShapes?: readonly string[];
    /** The longest time between an answer's arrival at the user and at Langfuse; below 0 if Langfuse had it first. */
    delayMs?: number;
  }
}

export interface Expected {
  /** What Langfuse shows in the end. */
  readonly shows: readonly string[];
  /**
   * How Claude Code's own account compares to the tokens in Langfuse: by default they are equal. `with asides` it also has
   * what Claude Code asked for itself, which no transcript contains.
   */
  readonly account?: 'with asides' | 'not to be compared' | undefined;
}

export type Task = Pick<TestContext['task'], 'meta'>;

/** How long after the user Langfuse may get an answer, on a quiet machine. */
const LATEST_MS = 1_000;

/** Of a moment before the first test. */
const BEFORE = { load: readLoad(), at: Date.now() };
const MINUTE_MS = 60_000;
/** How often the system computes its load. */
const COMPUTED_EVERY_MS = 5_000;

/** The average of a minute: what came before the last minute counts, too, and less the longer ago it was. */
function readLoad(): number {
  const [lastMinute = 0] = loadavg();
  return lastMinute;
}

/** Estimates how many times slower the machine is than a quiet one, by its load since then. At first that of before hides it. */
function slowdown(): number {
  const load = readLoad();
  const sharedMs = Math.max(Date.now() - BEFORE.at, COMPUTED_EVERY_MS);
  const before = Math.exp(-sharedMs / MINUTE_MS);
  const since = (load - BEFORE.load * before) / (1 - before);
  return Math.max(1, load / availableParallelism(), since / availableParallelism());
}

/** Proves that everything that was answered until a moment was in Langfuse soon after it. */
export async function proveArrival(traced: TracedHome, moment: number, { meta }: Task): Promise<void> {
  await traced.settled();
  const delay = traced.delayAfter(moment);
  meta.delayMs = Math.max(meta.delayMs ?? Number.NEGATIVE_INFINITY, delay);
  // This bound is a promise of the product. The longest delay is printed at the end of the run.
  expect(delay).toBeLessThan(LATEST_MS * slowdown());
}

/** Proves that Langfuse has everything once, in its place, and with the tokens that Claude Code itself counted. */
export async function proveExport(traced: TracedHome, { shows, account }: Expected, { meta }: Task): Promise<void> {
  const { claude, server } = traced;
  await traced.settled();
  meta.unknownShapes = unknownShapes(claude.transcripts, claude.payloads);
  expect(traced.differences).toEqual([]);
  expect(outlineOf(server.observations)).toEqual(shows);
  const { tokens, asides } = traced;
  if (account !== 'not to be compared') expect(account ? sum([tokens, asides]) : tokens).toEqual(traced.account);
  expect(claude.log).toBe('');
}
