import { displayWidth, fitColumn, terminalWidth } from './terminal.js';

const MIN_NAME_COLUMNS = 10;
const MAX_COLUMNS = 140;
const GAP = 2;

/** Figures below each other, with a cell for each name below the heading. */
export interface Column {
  readonly heading: string;
  readonly cells: readonly string[];
}

/**
 * Draws a line for each name, the heading first, with its figures beside it. Columns that do not fit the terminal are left out, the
 * last first, and then names are cut. `left` is how many columns of the terminal no line needs.
 */
export function drawColumns(
  names: readonly string[],
  columns: readonly Column[],
  { minNameColumns = MIN_NAME_COLUMNS, fitName = fitColumn } = {},
): { readonly lines: readonly string[]; readonly left: number } {
  const all = columns.map(({ heading, cells }) => {
    const texts = [heading, ...cells];
    return { texts, width: Math.max(...texts.map((text) => text.length)) };
  });
  const sumWidths = (shown: typeof all) => shown.reduce((sum, { width }) => sum + GAP + width, 0);
  const shown = all.filter(
    (_, index) => index === 0 || minNameColumns + sumWidths(all.slice(0, index + 1)) <= terminalWidth(),
  );
  const widest = Math.max(minNameColumns, ...names.map(displayWidth));
  const rest = Number.isFinite(terminalWidth())
    ? Math.min(terminalWidth(), MAX_COLUMNS) - sumWidths(shown)
    : Number.POSITIVE_INFINITY;
  const nameColumns = Math.max(1, Math.min(widest, rest));
  const lines = names.map((name, index) =>
    [
      fitColumn(fitName(name, nameColumns), nameColumns),
      ...shown.map(({ texts, width }) => (texts[index] ?? '').padStart(width)),
    ].join(' '.repeat(GAP)),
  );
  return { lines, left: rest - nameColumns };
}
