import { structuredPatch } from 'diff';
import { style } from '../../cli/terminal.js';

const COLOURS = { '+': 'green', '-': 'red' } as const;

/** The lines that differ between two texts of a file, with some around them, as they go through a change of each line. */
export function fileDiff(before: string, after: string, shown: (line: string) => string): string[] {
  const { hunks } = structuredPatch('', '', before, after, '', '', { context: 2 });
  return hunks.flatMap(({ oldStart, newStart, lines }) => [
    style('cyan', `@@ line ${Math.max(oldStart, newStart, 1)}`),
    ...lines.filter((line) => !line.startsWith('\\')).map((line) => coloured(shown(line.trimEnd()))),
  ]);
}

function coloured(line: string): string {
  const [sign] = line;
  return sign === '+' || sign === '-' ? style(COLOURS[sign], line) : line;
}
