import { type ParseArgsConfig, parseArgs } from 'node:util';
import { NO_WHOLE_NUMBER, WHOLE_NUMBER } from './whole-number.js';

/** What the user asked for cannot be done as it was asked: one line that says what, and what to do. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const HELP = { help: { type: 'boolean', short: 'h' } } as const;

/** The options (`--help` is one of every command's) and the operands; what is no option is a `UsageError`. */
export function parseCommandLine<T extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: T,
) {
  try {
    return parseArgs({ args: [...args], options: { ...options, ...HELP }, allowPositionals: true, strict: true });
  } catch (error) {
    const [sentence = ''] = String((error as Error).message).split(/\. |\n/);
    throw new UsageError(`${sentence.replace(/\.$/, '')}; --help tells which there are`);
  }
}

/** A whole number above 0. */
export function positiveNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!WHOLE_NUMBER.test(text)) throw new UsageError(`--${name} ${text}: ${NO_WHOLE_NUMBER}`);
  return Number(text);
}
