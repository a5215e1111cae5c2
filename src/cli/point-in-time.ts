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
  const [, date, time] = /^(\d{4}-\d{2}-\d{2})(T.*)?$/.exec(text) ?? [];
  const midnight = date === undefined ? undefined : localMidnight(date);
  const moment = time === undefined ? midnight : Date.parse(text);
  if (midnight === undefined || moment === undefined || Number.isNaN(moment))
    throw new UsageError(`--${option} ${text}: expected 30m, 12h, 7d, 2w or 2026-11-01`);
  if (time !== undefined || !end) return moment;
  const nextDay = new Date(moment);
  nextDay.setDate(nextDay.getDate() + 1);
  return nextDay.getTime() - 1;
}

/** Undefined for a day that no calendar has. */
function localMidnight(date: string): number | undefined {
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  const midnight = new Date(year, month - 1, day);
  const isThatDay = midnight.getFullYear() === year && midnight.getMonth() === month - 1 && midnight.getDate() === day;
  return isThatDay ? midnight.getTime() : undefined;
}
