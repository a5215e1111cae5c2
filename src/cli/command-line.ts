import { type ParseArgsConfig, parseArgs } from 'node:util';
import { NO_WHOLE_NUMBER, WHOLE_NUMBER } from '../shared/whole-number.js';

/** What the user asked for cannot be done as it was asked: one line that says what, and what to do. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The user has asked how a command is used: its message says so. */
class HelpWanted extends Error {
  override readonly name = 'HelpWanted';
}

const HELP_OPTION = { help: { type: 'boolean', short: 'h' } } as const;

/** The options and the operands of a command; what is no option is a `UsageError`, and `--help` leads to its help. */
export function parseCommandLine<T extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: T,
  help: string,
) {
  const parsed = parse(args, options);
  const { help: isHelpWanted }: { help?: boolean } = parsed.values;
  if (isHelpWanted) throw new HelpWanted(help);
  return parsed;
}

function parse<T extends NonNullable<ParseArgsConfig['options']>>(args: readonly string[], options: T) {
  try {
    return parseArgs({
      args: [...args],
      options: { ...options, ...HELP_OPTION },
      allowPositionals: true,
      strict: true,
    });
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
