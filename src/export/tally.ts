import type { TurnScores } from '../observations/build/scores.js';
import type { Observation } from '../observations/model.js';

/** Counts of what has been sent, or would be. */
export interface Tally {
  readonly observations: number;
  readonly turns: number;
  /** Turns among them that ran without tracing. */
  readonly untraced: number;
  readonly generations: number;
  readonly tools: number;
  readonly scores: number;
  readonly tokens: number;
  /** Before compression. */
  readonly bytes: number;
}

export const NOTHING: Tally = {
  observations: 0,
  turns: 0,
  untraced: 0,
  generations: 0,
  tools: 0,
  scores: 0,
  tokens: 0,
  bytes: 0,
};

export function countObservation(
  { type, parentId, trace, usage }: Observation,
  bytes: number,
  { scores, isUntraced = false }: { scores?: TurnScores | undefined; isUntraced?: boolean | undefined } = {},
): Tally {
  return {
    observations: 1,
    turns: type === 'agent' && parentId === trace.parentId ? 1 : 0,
    untraced: isUntraced ? 1 : 0,
    generations: type === 'generation' ? 1 : 0,
    tools: type === 'tool' ? 1 : 0,
    scores: Object.keys(scores?.figures ?? {}).length,
    tokens: usage?.total ?? 0,
    bytes,
  };
}

export function sumTallies(tallies: Iterable<Tally>): Tally {
  const total = { ...NOTHING };
  for (const tally of tallies) {
    for (const field of Object.keys(NOTHING) as (keyof Tally)[]) total[field] += tally[field];
  }
  return total;
}
