import type { Turn } from '../../transcript/turns/turn.js';
import type { Observation } from '../model.js';
import { determineEnding } from './ending.js';
import { addFigures, NO_FIGURES } from './figures.js';

/** The figures of a turn that are sent as scores of its trace. */
export interface TurnScores {
  readonly traceId: string;
  /** The turn's root in a caller's trace, which may hold several turns. */
  readonly observationId?: string | undefined;
  readonly environment?: string | undefined;
  readonly figures: { readonly [name: string]: number };
}

/** Computes them from the turn's own calls: what its subagents did may be known only much later. */
export function computeScores(turn: Turn, root: Observation, earlier = NO_FIGURES): TurnScores {
  const { id, trace, startTime, endTime } = root;
  const { calls, failedCalls, linesAdded, linesRemoved } = addFigures(earlier, turn);
  return {
    traceId: trace.id,
    observationId: trace.parentId === undefined ? undefined : id,
    environment: trace.environment,
    figures: {
      ...(calls > 0 && { tool_error_rate: failedCalls / calls }),
      interrupted: determineEnding(turn, earlier).outcome === 'interrupted' ? 1 : 0,
      lines_added: linesAdded,
      lines_removed: linesRemoved,
      turn_seconds: (endTime - startTime) / 1_000,
    },
  };
}
