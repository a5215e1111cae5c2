import { UsageError } from './command-line.js';

const UNITS: { readonly [unit: string]: number } = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** `7d` ago, or a local date (with `end`, up to its last moment), or a timestamp; in ms since 1970. */
export function pointInTime(option: string, text: string, now: number, end = false): number {
  const [, amount, unit = ''] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  if (amount !== undefined) return now - Number(amount) * (UNITS[unit] ?? 0);
  const [, year = '', month = '', day = ''] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? [];
  const date = new Date(Number(year), Number(month) - 1, Number(day) + (end ? 1 : 0));
  const isDate = year !== '' && new Date(Number(year), Number(month) - 1, Number(day)).getDate() === Number(day);
  if (isDate) return date.getTime() - (end ? 1 : 0);
  const moment = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(moment)) throw new UsageError(`--${option} ${text}: expected 30m, 12h, 7d, 2w or 2026-11-01`);
  return moment;
}
