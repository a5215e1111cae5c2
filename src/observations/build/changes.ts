import { isRecord } from '../../shared/json.js';
import { countSameEnds } from '../../shared/same-ends.js';
import type { Hunk } from '../../transcript/file/schema.js';
import type { ToolCall } from '../../transcript/turns/turn.js';
import type { Redact } from '../redaction/redact.js';

/** How many files and lines a call changed. */
interface Changes {
  readonly files: number;
  readonly added: number;
  readonly removed: number;
}

const NONE: Changes = { files: 0, added: 0, removed: 0 };

/** Counts what a call changed: by the patches in its result, otherwise by its arguments. */
export function countChanges(call: ToolCall): Changes {
  const { name, input, result } = call;
  if (!result || result.isError) return NONE;
  const patches = listPatches(call);
  if (patches.length > 0) {
    const lines = patches.flatMap(({ hunks }) => hunks.flatMap((hunk) => hunk.lines ?? []));
    const count = (mark: string) => lines.filter((line) => line.startsWith(mark)).length;
    return { files: patches.length, added: count('+'), removed: count('-') };
  }
  const fields = isRecord(input) ? input : {};
  if (name === 'Edit') return compareEdit(fields);
  if (name === 'MultiEdit' && Array.isArray(fields.edits))
    return { ...fields.edits.filter(isRecord).map(compareEdit).reduce(plus, NONE), files: 1 };
  // The patch of a file that existed before is empty only if nothing changed.
  const isNew = name === 'Write' && result.details?.type !== 'update' && typeof fields.content === 'string';
  return isNew ? { files: 1, added: splitLines(fields.content).length, removed: 0 } : NONE;
}

interface Patch {
  readonly path: string;
  readonly hunks: readonly Hunk[];
}

/** The patches of the files that a call changed. A new file has none. */
function listPatches({ result }: ToolCall): Patch[] {
  const { filePath: path = 'file', structuredPatch: hunks = [], bashEditDiff } = result?.details ?? {};
  const byCommand = bashEditDiff?.files ?? [];
  const all = [
    { path, hunks },
    ...byCommand.map((file) => ({ path: file.filePath ?? 'file', hunks: file.hunks ?? [] })),
  ];
  return all.filter((patch) => patch.hunks.length > 0);
}

/**
 * What a call changed, as a block of code that Langfuse draws as a diff; undefined if its result has no patch. What is secret is
 * looked for in the lines without their marks: a mark can hide the beginning of a line.
 */
export function buildDiff(call: ToolCall, redact: Redact | undefined): string | undefined {
  const lines = listPatches(call).flatMap(({ path, hunks }) => [
    `--- ${path}`,
    `+++ ${path}`,
    ...hunks.flatMap((hunk) => [formatPlace(hunk), ...redactLines(hunk.lines ?? [], redact)]),
  ]);
  if (lines.length === 0) return undefined;
  const runs = lines.flatMap((line) => line.match(/`+/g) ?? []);
  const fence = '`'.repeat(runs.reduce((longest, run) => Math.max(longest, run.length), 2) + 1);
  return `${fence}diff\n${lines.join('\n')}\n${fence}`;
}

function formatPlace({ oldStart = 0, oldLines = 0, newStart = 0, newLines = 0 }: Hunk): string {
  return `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`;
}

/** Redacts both sides of a change. If that changes how many lines there are, no line can be told to be harmless. */
function redactLines(lines: readonly string[], redact: Redact | undefined): readonly string[] {
  if (!redact) return lines;
  const [before, after] = ['+', '-'].map((other) => {
    const side = lines.filter((line) => !line.startsWith(other)).map((line) => line.slice(1));
    const kept = redact(side.join('\n')).split('\n');
    return side.length === 0 ? [] : kept.length === side.length ? kept : undefined;
  });
  if (!before || !after) return ['[redacted]'];
  const [olds, news] = [before.values(), after.values()];
  return lines.map((line) => {
    const [mark, own] = [line.slice(0, 1), line.slice(1)];
    const inOld = mark === '+' ? own : (olds.next().value ?? '');
    const inNew = mark === '-' ? own : (news.next().value ?? '');
    return mark + (inOld === own ? inNew : inOld);
  });
}

function plus(a: Changes, b: Changes): Changes {
  return { files: a.files + b.files, added: a.added + b.added, removed: a.removed + b.removed };
}

/** Both texts of an edit contain the unchanged lines around the change. */
function compareEdit({ old_string: before, new_string: after }: Record<string, unknown>): Changes {
  const removed = splitLines(before);
  const added = splitLines(after);
  const { head, tail } = countSameEnds(removed, added);
  return { files: 1, added: added.length - head - tail, removed: removed.length - head - tail };
}

function splitLines(text: unknown): string[] {
  return typeof text === 'string' && text !== '' ? text.replace(/\n$/, '').split('\n') : [];
}
