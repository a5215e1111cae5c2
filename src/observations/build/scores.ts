import type { Turn } from '../../transcript/turns/turn.js';
import type { Observation } from '../model.js';
import { countChangedLines } from './changed-lines.js';
import { determineEnding } from './ending.js';

/** The figures of a turn that are kept as scores on its trace. */
export interface TurnScores {
  readonly traceId: string;
  /** In another program's trace its own root, since that trace may hold several turns. */
  readonly observationId?: string | undefined;
  readonly environment?: string | undefined;
  readonly figures: { readonly [name: string]: number };
}

/** Of the turn's own calls: what its subagents did may be told only long after it. */
export function computeScores(turn: Turn, { id, trace, startTime, endTime }: Observation): TurnScores {
  const calls = turn.responses.flatMap((response) => response.calls);
  const failed = calls.filter(({ result }) => result?.isError).length;
  const changes = calls.map(countChangedLines);
  const sum = (kind: 'added' | 'removed') => changes.reduce((total, change) => total + change[kind], 0);
  return {
    traceId: trace.id,
    observationId: trace.parentId === undefined ? undefined : id,
    environment: trace.environment,
    figures: {
      // Without any call there is no rate.
      ...(calls.length > 0 && { tool_error_rate: failed / calls.length }),
      interrupted: determineEnding(turn).outcome === 'interrupted' ? 1 : 0,
      lines_added: sum('added'),
      lines_removed: sum('removed'),
      turn_seconds: (endTime - startTime) / 1_000,
    },
  };
}
