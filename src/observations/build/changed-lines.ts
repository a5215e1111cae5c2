import { isRecord } from '../../shared/json.js';
import type { ToolCall } from '../../transcript/turns/turn.js';

export interface ChangedLines {
  readonly added: number;
  readonly removed: number;
}

const NONE: ChangedLines = { added: 0, removed: 0 };

/** Counts the lines of files that a call changed: by the patch in its result, otherwise by its arguments. */
export function countChangedLines({ name, input, result }: ToolCall): ChangedLines {
  const fields = isRecord(input) ? input : {};
  if (!result || result.isError) return NONE;
  const { structuredPatch: patch = [], type } = result.details ?? {};
  if (patch.length > 0) {
    const lines = patch.flatMap((part) => part.lines ?? []);
    const count = (mark: string) => lines.filter((line) => line.startsWith(mark)).length;
    return { added: count('+'), removed: count('-') };
  }
  switch (name) {
    case 'Write':
      // The patch of a file that existed before is empty only if nothing changed.
      return type === 'update' ? NONE : { added: splitLines(fields.content).length, removed: 0 };
    case 'Edit':
      return compareEdit(fields);
    case 'MultiEdit':
      return sumChangedLines(Array.isArray(fields.edits) ? fields.edits.filter(isRecord).map(compareEdit) : []);
    default:
      return NONE;
  }
}

export function sumChangedLines(changes: readonly ChangedLines[]): ChangedLines {
  return changes.reduce((a, b) => ({ added: a.added + b.added, removed: a.removed + b.removed }), NONE);
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
