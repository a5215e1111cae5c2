import { isRecord } from '../../shared/json.js';
import type { ToolCall, Turn } from '../../transcript/turns/turn.js';
import type { Observation } from '../model.js';

/** Langfuse bills each score. What it knows itself, such as a turn's duration, is not repeated in one. */
export const SCORE_NAMES = ['tool_error_rate', 'lines_added', 'lines_removed'] as const;

/** The figures of a turn that are sent as scores of its trace. */
export interface TurnScores {
  readonly traceId: string;
  /** The turn's root in a caller's trace, which may hold several turns. */
  readonly observationId?: string | undefined;
  readonly environment?: string | undefined;
  /**
   * When the turn ended, which is the scores' time. It grows with the turn: of two scores with the same id Langfuse keeps the
   * later one, if they are of the same day (scores.up.sql). The state of older versions does not have it.
   */
  readonly endTime?: number | undefined;
  readonly figures: { readonly [name: string]: number };
}

/** Computes them from the turn's own calls: what its subagents did may be known only much later. */
export function computeScores(turn: Turn, { id, trace, endTime }: Observation): TurnScores {
  const calls = turn.responses.flatMap((response) => response.calls);
  const failed = calls.filter(({ result }) => result?.isError);
  const changes = calls.flatMap(listChanges);
  return {
    traceId: trace.id,
    observationId: trace.parentId === undefined ? undefined : id,
    environment: trace.environment,
    endTime,
    figures: {
      ...(calls.length > 0 && { tool_error_rate: failed.length / calls.length }),
      lines_added: changes.reduce((sum, { added }) => sum + added, 0),
      lines_removed: changes.reduce((sum, { removed }) => sum + removed, 0),
    },
  };
}

interface ChangedLines {
  readonly added: number;
  readonly removed: number;
}

/** Lists the changes that a call made to files: by the patch in its result, otherwise by its arguments. */
function listChanges({ name, input, result }: ToolCall): ChangedLines[] {
  if (!result || result.isError) return [];
  const { structuredPatch = [], bashEditDiff, type } = result.details ?? {};
  const patch = [...structuredPatch, ...(bashEditDiff?.files ?? []).flatMap(({ hunks = [] }) => hunks)];
  if (patch.length > 0) {
    const lines = patch.flatMap((part) => part.lines ?? []);
    const count = (mark: string) => lines.filter((line) => line.startsWith(mark)).length;
    return [{ added: count('+'), removed: count('-') }];
  }
  const fields = isRecord(input) ? input : {};
  if (name === 'Edit') return [compareEdit(fields)];
  if (name === 'MultiEdit') return Array.isArray(fields.edits) ? fields.edits.filter(isRecord).map(compareEdit) : [];
  // The patch of a file that existed before is empty only if nothing changed.
  return name === 'Write' && type !== 'update' ? [{ added: splitLines(fields.content).length, removed: 0 }] : [];
}

/** Both texts of an edit contain the unchanged lines around the change. */
function compareEdit({ old_string: before, new_string: after }: Record<string, unknown>): ChangedLines {
  const removed = splitLines(before);
  const added = splitLines(after);
  const shorter = Math.min(removed.length, added.length);
  let head = 0;
  while (head < shorter && removed[head] === added[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && removed.at(-1 - tail) === added.at(-1 - tail)) tail += 1;
  return { added: added.length - head - tail, removed: removed.length - head - tail };
}

function splitLines(text: unknown): string[] {
  return typeof text === 'string' && text !== '' ? text.replace(/\n$/, '').split('\n') : [];
}
