import { wrapAnsi } from 'fast-wrap-ansi';
import { terminalWidth } from './terminal.js';

/** Wraps to what an indent leaves of the terminal's width. A longer path or URL stays whole, so that it can be copied. */
export function wrapToWidth(text: string, indent = 0): string[] {
  const width = terminalWidth() - indent;
  return Number.isFinite(width) ? wrapAnsi(text, Math.max(width, indent), { trim: true }).split('\n') : [text];
}
