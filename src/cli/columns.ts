import truncatedWidth from 'fast-string-truncated-width';

const ELLIPSIS = '…';

/** How wide the terminal is; what is read by a program need not be cut. */
export function terminalWidth(): number {
  return process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
}

/** How many columns a text takes in a terminal: some characters take two, some none. */
function widthOf(text: string): number {
  return truncatedWidth(text).width;
}

/** A text that takes so many columns, cut or filled up. */
export function fitColumn(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  if (!Number.isFinite(width)) return text;
  const {
    index,
    ellipsed,
    width: taken,
  } = truncatedWidth(text, { limit: width, ellipsis: ELLIPSIS, ellipsisWidth: 1 });
  // Behind a character of a frame the library counts one too few.
  const excess = Math.max(0, ellipsed ? widthOf(text.slice(0, index)) - taken : 0);
  const shown = ellipsed ? `${text.slice(0, index - excess)}${ELLIPSIS}` : text;
  const space = ' '.repeat(Math.max(0, width - widthOf(shown)));
  return align === 'left' ? shown + space : space + shown;
}

/** Rows whose columns are as wide as their widest cell; the cells of the named columns end below each other. */
export function formatTable(rows: readonly (readonly string[])[], rightAligned: readonly number[] = []): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [place, cell] of row.entries()) widths[place] = Math.max(widths[place] ?? 0, widthOf(cell));
  }
  return rows.map((row) =>
    row
      .map((cell, place) => fitColumn(cell, widths[place] ?? 0, rightAligned.includes(place) ? 'right' : 'left'))
      .join('  ')
      .trimEnd(),
  );
}
