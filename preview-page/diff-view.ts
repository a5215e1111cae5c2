import { countSameEnds } from '../src/shared/same-ends.js';
import { element } from './dom.js';
import { markMatches, renderFolded } from './text-view.js';

const DIFF_FOLD = { lines: 40, chars: 6_000 };

/** Shows a diff with what was added and removed in colour. */
export function renderDiff(diff: string, query: string): HTMLElement {
  return renderFolded(
    diff,
    query,
    (shown) => {
      const lines = shown.split('\n');
      const drawn = lines.map((line, index) =>
        element('span', { 'data-change': findChange(lines, index) }, ...markMatches(line, query), '\n'),
      );
      return element('pre', { class: 'diff' }, ...drawn);
    },
    DIFF_FOLD,
  );
}

/** Two lines name the file, and look like changes: `--- path` and `+++ path`. */
function findChange(lines: readonly string[], index: number): string | undefined {
  const [before = '', line = '', after = ''] = [lines[index - 1], lines[index], lines[index + 1]];
  const isOld = line.startsWith('--- ') && after.startsWith('+++ ');
  const isNew = line.startsWith('+++ ') && before.startsWith('--- ');
  if (isOld || isNew || line.startsWith('@@ ')) return 'place';
  return line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : undefined;
}

/** Splits a result from the diff that it ends with, in a block of code. */
export function splitDiff(text: string): { readonly before: string; readonly diff?: string } {
  const fence = text.slice(text.lastIndexOf('\n') + 1);
  if (!/^`{3,}$/.test(fence)) return { before: text };
  const opening = `${fence}diff\n`;
  const start = text.startsWith(opening) ? 0 : text.lastIndexOf(`\n${opening}`) + 1;
  if (!text.startsWith(opening, start)) return { before: text };
  return { before: text.slice(0, start).trimEnd(), diff: text.slice(start + opening.length, -fence.length - 1) };
}

/** Writes an edit as a diff. Both texts begin and end with what stays the same. */
export function compareTexts(before: string, after: string): string {
  const [removed, added] = [before.split('\n'), after.split('\n')];
  const { head, tail } = countSameEnds(removed, added);
  const same = (line: string) => ` ${line}`;
  return [
    ...removed.slice(0, head).map(same),
    ...removed.slice(head, removed.length - tail).map((line) => `-${line}`),
    ...added.slice(head, added.length - tail).map((line) => `+${line}`),
    ...removed.slice(removed.length - tail).map(same),
  ].join('\n');
}
