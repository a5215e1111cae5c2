import { isRecord } from '../../shared/json.js';
import type { ToolCall } from '../../transcript/turns/turn.js';

interface ChangedLines {
  readonly added: number;
  readonly removed: number;
}

const NONE: ChangedLines = { added: 0, removed: 0 };

/** Counts the lines of files that a call changed: by the patch in its result, otherwise by its arguments. */
export function countChangedLines({ name, input, result }: ToolCall): ChangedLines {
  if (!result || result.isError) return NONE;
  const { structuredPatch = [], bashEditDiff, type } = result.details ?? {};
  const patch = [...structuredPatch, ...(bashEditDiff?.files ?? []).flatMap(({ hunks = [] }) => hunks)];
  if (patch.length > 0) {
    const lines = patch.flatMap((part) => part.lines ?? []);
    const count = (mark: string) => lines.filter((line) => line.startsWith(mark)).length;
    return { added: count('+'), removed: count('-') };
  }
  const fields = isRecord(input) ? input : {};
  if (name === 'Edit') return compareEdit(fields);
  if (name === 'MultiEdit' && Array.isArray(fields.edits))
    return fields.edits.filter(isRecord).map(compareEdit).reduce(plus, NONE);
  // The patch of a file that existed before is empty only if nothing changed.
  return name === 'Write' && type !== 'update' ? { added: splitLines(fields.content).length, removed: 0 } : NONE;
}

function plus(a: ChangedLines, b: ChangedLines): ChangedLines {
  return { added: a.added + b.added, removed: a.removed + b.removed };
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
