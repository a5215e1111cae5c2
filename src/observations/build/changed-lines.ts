import { isRecord } from '../../shared/json.js';
import type { ToolCall } from '../../transcript/turns/turn.js';

export interface ChangedLines {
  readonly added: number;
  readonly removed: number;
}

const NONE: ChangedLines = { added: 0, removed: 0 };

/** How many lines of files a call has changed: by the patch that its result tells, else by what it was given. */
export function countChangedLines({ name, input, result }: ToolCall): ChangedLines {
  const fields = isRecord(input) ? input : {};
  if (!result || result.isError) return NONE;
  const { structuredPatch: patch = [], type } = result.details ?? {};
  if (patch.length > 0) return sum(patch.map(({ lines = [] }) => linesOfPatch(lines)));
  switch (name) {
    case 'Write':
      // A patch of a file that was there before is empty only where nothing has changed.
      return type === 'update' ? NONE : { added: linesIn(fields.content).length, removed: 0 };
    case 'Edit':
      return linesOfEdit(fields);
    case 'MultiEdit':
      return sum(Array.isArray(fields.edits) ? fields.edits.filter(isRecord).map(linesOfEdit) : []);
    default:
      return NONE;
  }
}

function linesOfPatch(lines: readonly string[]): ChangedLines {
  const starting = (mark: string) => lines.filter((line) => line.startsWith(mark)).length;
  return { added: starting('+'), removed: starting('-') };
}

/** The lines around a change are in both texts. */
function linesOfEdit({ old_string: before, new_string: after }: Record<string, unknown>): ChangedLines {
  const removed = linesIn(before);
  const added = linesIn(after);
  const shorter = Math.min(removed.length, added.length);
  let head = 0;
  while (head < shorter && removed[head] === added[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && removed.at(-1 - tail) === added.at(-1 - tail)) tail += 1;
  return { added: added.length - head - tail, removed: removed.length - head - tail };
}

function linesIn(text: unknown): string[] {
  return typeof text === 'string' && text !== '' ? text.replace(/\n$/, '').split('\n') : [];
}

function sum(changes: readonly ChangedLines[]): ChangedLines {
  return changes.reduce((a, b) => ({ added: a.added + b.added, removed: a.removed + b.removed }), NONE);
}
