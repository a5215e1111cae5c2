import { type ParseArgsConfig, parseArgs } from 'node:util';
import { closestMatch } from 'leven';
import { NO_WHOLE_NUMBER, WHOLE_NUMBER } from '../shared/schema.js';

/** The command cannot be run as typed. The message is one line that says why and what to do instead. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Parses options and operands. Throws a `UsageError` for an unknown option. */
export function parseCommandLine<T extends ParseArgsConfig['options']>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split(/\. |\n/);
    const [, unknown] = /^Unknown option '--(.+)'/.exec(sentence) ?? [];
    const meant = unknown === undefined ? undefined : findSimilar(unknown, [...Object.keys(options ?? {}), 'help']);
    const hint = meant === undefined ? '--help lists the options' : `did you mean --${meant}?`;
    throw new UsageError(`${sentence.replace(/\.$/, '')}; ${hint}`);
  }
}

/** Parses the options of a command that takes no operands. `hint` says what to do instead. */
export function parseOptions<T extends ParseArgsConfig['options']>(
  command: string,
  args: readonly string[],
  options: T,
  hint = `see ${command} --help`,
) {
  const { values, positionals } = parseCommandLine(args, options);
  const [operand] = positionals;
  if (operand !== undefined) throw new UsageError(`${operand}: ${command} takes no operands; ${hint}`);
  return values;
}

/** Returns the word that was probably meant, if one is similar. */
export function findSimilar(typed: string, words: readonly string[]): string | undefined {
  // If more than a third of the letters differ, it is not a typing error.
  return closestMatch(typed, words, { maxDistance: Math.floor(typed.length / 3) });
}

export function parsePositiveNumber(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!WHOLE_NUMBER.test(text)) throw new UsageError(`--${option} ${text}: ${NO_WHOLE_NUMBER}`);
  return Number(text);
}

const UNIT_MS: { readonly [unit: string]: number } = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Parses `7d` (ago), a local date or a timestamp, if given, to ms since 1970. With `isEnd`, a date means its last moment. */
export function parsePointInTime(option: string, text: string | undefined, now: number, isEnd = false) {
  if (text === undefined) return undefined;
  const [, amount, unit = ''] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  if (amount !== undefined) return now - Number(amount) * (UNIT_MS[unit] ?? 0);
  const [, date = '', time] = /^(\d{4}-\d{2}-\d{2})(T.*)?$/.exec(text) ?? [];
  const day = new Date(`${date}T00:00`);
  const moment = time === undefined ? day.getTime() : Date.parse(text);
  // JavaScript reads February 30 as March 2.
  if (day.getDate() !== Number(date.slice(-2)) || Number.isNaN(moment))
    throw new UsageError(`--${option} ${text}: expected 30m, 12h, 7d, 2w or 2026-11-01`);
  return time === undefined && isEnd ? day.setDate(day.getDate() + 1) - 1 : moment;
}

/** Why an operation on a file failed: the error's code, such as `EACCES`. */
export function errorReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
