import { availableParallelism, loadavg } from 'node:os';
import { expect, type TestContext } from 'vitest';
import { outlineOf } from './outline.js';
import type { TracedHome } from './traced-home.js';
import { sum } from './transcripts.js';
import { unknownShapes } from './wire-shapes.js';

declare module 'vitest' {
  interface TaskMeta {
    /** What a test has met of Claude Code that is unknown here. */
    unknownShapes?: readonly string[];
    /** How long after the user had an answer Langfuse had it, at the latest; below 0 where it had it first. */
    delayMs?: number;
  }
}

export interface Expected {
  /** What Langfuse shows in the end. */
  readonly shows: readonly string[];
  /**
   * How Claude Code's own account stands to the tokens that Langfuse was told: the same unless said otherwise, or with what
   * it asked for itself, which no transcript tells.
   */
  readonly account?: 'with asides' | 'not to be compared' | undefined;
}

export type Task = Pick<TestContext['task'], 'meta'>;

/** How long after the user has an answer Langfuse may be without it, on a machine that has nothing else to do. */
const LATEST_MS = 1_000;

/** How many times as long things take, since others use the machine, too. */
function busyness(): number {
  const [lastMinute = 0] = loadavg();
  return Math.max(1, lastMinute / availableParallelism());
}

/** Proves that whatever was answered up to a moment was in Langfuse soon after it. */
export async function proveArrival(traced: TracedHome, moment: number, { meta }: Task): Promise<void> {
  await traced.settled();
  const delay = traced.delayAfter(moment);
  expect(delay).toBeLessThan(LATEST_MS * busyness());
  meta.delayMs = Math.max(meta.delayMs ?? Number.NEGATIVE_INFINITY, delay);
}

/** Proves that Langfuse has all that was said, once, in its place, and with the tokens that Claude Code itself has counted. */
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
