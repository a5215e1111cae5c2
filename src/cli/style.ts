import { styleText } from 'node:util';

type Format = Parameters<typeof styleText>[0];

/** A text in a colour, or as it is where the output is no terminal, or the user wants none. */
export function style(format: Format, text: string): string {
  const isWanted = process.stdout.isTTY && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
  return isWanted ? styleText(format, text) : text;
}
