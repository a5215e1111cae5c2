import type { Turn } from '../../transcript/turns/turn.js';
import type { Observation } from '../model.js';
import { countChangedLines, sumChangedLines } from './changed-lines.js';
import { determineEnding } from './ending.js';

/** The figures of a turn that are sent as scores of its trace. */
export interface TurnScores {
  readonly traceId: string;
  /** The turn's root in a caller's trace, which may hold several turns. */
  readonly observationId?: string | undefined;
  readonly environment?: string | undefined;
  readonly figures: { readonly [name: string]: number };
}

/** Computes them from the turn's own calls: what its subagents did may be known only much later. */
export function computeScores(turn: Turn, { id, trace, startTime, endTime }: Observation): TurnScores {
  const calls = turn.responses.flatMap((response) => response.calls);
  const failed = calls.filter(({ result }) => result?.isError);
  const lines = sumChangedLines(calls.map(countChangedLines));
  return {
    traceId: trace.id,
    observationId: trace.parentId === undefined ? undefined : id,
    environment: trace.environment,
    figures: {
      ...(calls.length > 0 && { tool_error_rate: failed.length / calls.length }),
      interrupted: determineEnding(turn).outcome === 'interrupted' ? 1 : 0,
      lines_added: lines.added,
      lines_removed: lines.removed,
      turn_seconds: (endTime - startTime) / 1_000,
    },
  };
}
