const BYTE_UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

/** `1,234` or `12.3 M`. */
export function formatCount(value: number): string {
  return value < 1_000_000 ? groupDigits(String(value)) : `${(value / 1_000_000).toFixed(1)} M`;
}

/** `1,234`. Loading the data of a locale for it takes as long as reading a hundred sessions. */
export function groupDigits(digits: string): string {
  return digits.replace(/\B(?=(?:\d{3})+$)/g, ',');
}

/** `1 turn` or `2 turns`. */
export function plural(value: number, name: string): string {
  return `${formatCount(value)} ${name}${value === 1 ? '' : 's'}`;
}

/** What is said of parts of a session whose prompt, or whose call, is in no file. */
export function describeStrays(count: number): string {
  return `the prompt or call of ${plural(count, 'part')} is in no file; such parts are sent all the same`;
}

/** Why hooks do not send some turns of a session. */
export function describeUntraced(turns: number): string {
  return `${plural(turns, 'turn')} stay${turns === 1 ? 's' : ''} on this machine: nothing says that tracing was on`;
}

/** How many sessions a backfill would send something of, and when Claude Code deletes the first of them. */
export function describeUnsent(
  { count, firstGoes }: { readonly count: number; readonly firstGoes: number },
  cleanupDays: number,
  now: number,
): string {
  const [are, first] = count === 1 ? ['is', 'it'] : ['are', 'the first of them'];
  const when = firstGoes <= now ? 'at its next start' : `after ${formatMoment(firstGoes)}`;
  return `${plural(count, 'session')} ${are} not wholly in Langfuse; Claude Code deletes ${first} ${when} (cleanupPeriodDays: ${cleanupDays})`;
}

export function formatBytes(bytes: number): string {
  const unit = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), BYTE_UNITS.length - 1);
  const value = bytes / 1_000 ** unit;
  return `${unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

/** To the second, minute or hour: `8 s`, `12 min`, `3 h 20 min`, `2 d 5 h`. */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Like `formatDuration`, but more precise below a minute: `850 ms`, `4.2 s`. */
export function formatElapsed(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 59_950 ? `${(ms / 1_000).toFixed(1)} s` : formatDuration(ms);
}

/** Local time, to the minute: `2026-11-01 14:05`. */
export function formatMoment(ms: number): string {
  return formatSecond(ms).slice(0, '2026-11-01 14:05'.length);
}

/** Local day: `2026-11-01`. */
export function formatDay(ms: number): string {
  return formatSecond(ms).slice(0, '2026-11-01'.length);
}

/** Local time, to the second: `2026-11-01 14:05:30`. */
export function formatSecond(ms: number): string {
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, '2026-11-01T14:05:30'.length).replace('T', ' ');
}

/** Puts a text on one line and removes everything that would control the terminal. */
export function toOneLine(text: string): string {
  return text
    .replace(CONTROL_SEQUENCE, '')
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it removes
const CONTROL_SEQUENCE = /\u001b(?:\[[\d;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?)/g;
