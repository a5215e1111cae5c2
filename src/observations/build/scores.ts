import type { Turn } from '../../transcript/turns/turn.js';
import type { Observation } from '../model.js';
import { addFigures, NO_FIGURES } from './figures.js';

/** Langfuse bills each score. What it knows itself, such as a turn's duration, is not repeated in one. */
export const SCORE_NAMES = ['tool_error_rate', 'lines_added', 'lines_removed'] as const;

/** What a person says of a turn: 1 is good, 0 is bad. */
export const RATING = 'user_rating';

/** The figures of a turn that are sent as scores of its trace. */
export interface TurnScores {
  readonly traceId: string;
  /** The turn's root in a caller's trace, which may hold several turns. */
  readonly observationId?: string | undefined;
  readonly environment?: string | undefined;
  /** The scores' time (see `datedAt`). The state of older versions does not have it. */
  readonly endTime?: number | undefined;
  readonly figures: { readonly [name: string]: number };
  /** Why a person has rated the turn like this. */
  readonly comment?: string | undefined;
}

const DAY_MS = 86_400_000;
/** How much of a day is left after the first score of a turn. */
const ROOM_MS = 60_000;

/**
 * The time of a turn's first score, by when the turn ended. Of two scores with the same id Langfuse keeps the one with the later
 * time, if both are of the same day (scores.up.sql). Of two with the same time it keeps either. So a score that replaces another
 * one is later, and there is room for it in the day.
 */
export function datedAt(endTime: number, time = endTime): number {
  const nextDay = (Math.floor(endTime / DAY_MS) + 1) * DAY_MS;
  return Math.min(time, nextDay - 1 - ROOM_MS);
}

/** Computes them from the turn's own calls: what its subagents did may be known only much later. */
export function computeScores(turn: Turn, { id, trace, endTime }: Observation, earlier = NO_FIGURES): TurnScores {
  const { calls, failedCalls, linesAdded, linesRemoved } = addFigures(earlier, turn);
  return {
    traceId: trace.id,
    observationId: trace.parentId === undefined ? undefined : id,
    environment: trace.environment,
    // A turn can grow without a later end: its lines may lack times, and clocks are set back. What is counted only grows.
    endTime: datedAt(endTime) + Math.min(calls + failedCalls + linesAdded + linesRemoved, ROOM_MS),
    figures: {
      ...(calls > 0 && { tool_error_rate: failedCalls / calls }),
      lines_added: linesAdded,
      lines_removed: linesRemoved,
    },
  };
}
