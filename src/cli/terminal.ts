import { styleText } from 'node:util';
import truncatedWidth from 'fast-string-truncated-width';

/** Resolves once the lines are written: who waits for that does not pile up output in memory for a slow pager. */
export function printStdout(lines: string): Promise<void> {
  return new Promise((resolve) => process.stdout.write(`${lines}\n`, () => resolve()));
}

export function printJson(value: object): Promise<void> {
  return printStdout(formatJson(value));
}

/** JSON leaves characters as they are that control a terminal or reverse its text; they may come from a transcript. */
export function formatJson(value: object): string {
  return JSON.stringify(value, null, 2).replace(
    UNSAFE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

// DEL, the C1 controls, and what sets the direction of text. JSON itself escapes the other controls.
const UNSAFE = /[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function printStderr(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Adds colour if stdout is a terminal and the user wants colours. */
export function style(format: Parameters<typeof styleText>[0], text: string): string {
  // Newer versions of Node would look at the terminal themselves.
  return isColourful(process.env) ? styleText(format, text, { validateStream: false }) : text;
}

/** As in Node, `FORCE_COLOR` counts more than `NO_COLOR`, and is on if it is empty. */
function isColourful({ FORCE_COLOR, NO_COLOR, TERM }: NodeJS.ProcessEnv): boolean {
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  return process.stdout.isTTY && !NO_COLOR && TERM !== 'dumb';
}

/** For terminals that do not say how wide they are. */
const USUAL_COLUMNS = 80;

/** The terminal's columns; output that a program reads is never cut. */
export function terminalWidth(): number {
  return process.stdout.isTTY ? process.stdout.columns || USUAL_COLUMNS : Number.POSITIVE_INFINITY;
}

/** Cuts or pads a text to this many columns; some characters take two columns, some none. */
export function fitColumn(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  if (!Number.isFinite(width)) return text;
  const cut = truncatedWidth(text, { limit: width, ellipsis: '…', ellipsisWidth: 1 });
  // The library counts one column too few after a box-drawing character.
  const excess = Math.max(0, cut.ellipsed ? displayWidth(text.slice(0, cut.index)) - cut.width : 0);
  const shown = cut.ellipsed ? `${text.slice(0, cut.index - excess)}…` : text;
  const padding = ' '.repeat(Math.max(0, width - displayWidth(shown)));
  return align === 'left' ? shown + padding : padding + shown;
}

export function cutToWidth(text: string, width: number): string {
  return fitColumn(text, width).trimEnd();
}

/** How many columns a text takes. */
export function displayWidth(text: string): number {
  return truncatedWidth(text).width;
}

/** Whatever is more than nothing is seen. */
export function drawBar(value: number, most: number, columns: number): string {
  return '━'.repeat(value > 0 ? Math.max(1, Math.round((value / Math.max(most, Number.EPSILON)) * columns)) : 0);
}

/** Quotes a path for a command that the user may copy. */
export function quoteForShell(path: string): string {
  if (process.platform === 'win32') return /\s/.test(path) ? `"${path}"` : path;
  return /^[\p{L}\p{N}_@%+=:,./-]+$/u.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** A command that renames what is in the way. */
export function moveAsideCommand(path: string): string {
  return `mv ${quoteForShell(path)} ${quoteForShell(`${path}.old`)}`;
}
