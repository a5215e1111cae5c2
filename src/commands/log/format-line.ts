import { formatSecond, toOneLine } from '../../cli/format.js';
import { style } from '../../cli/terminal.js';
import { isRecord, parseJson } from '../../shared/json.js';

const COLOURS: { readonly [level: string]: Parameters<typeof style>[0] } = {
  debug: 'dim',
  warn: 'yellow',
  error: 'red',
};
const LEVEL_COLUMNS = 'debug'.length;

/** Formats a line of the log as text: time, level, message and the other fields. What is not JSON is not changed. */
export function formatLogLine(line: string): string {
  const fields = parseJson(line);
  if (!isRecord(fields)) return toOneLine(line);
  const { time, level, msg, pid: _, ...others } = fields;
  const name = toOneLine(String(level ?? ''));
  const details = Object.entries(others).map(([field, value]) => toOneLine(`${field}=${formatValue(value)}`));
  return [
    style('dim', formatTime(time)),
    style(COLOURS[name] ?? 'reset', name.padEnd(LEVEL_COLUMNS)),
    toOneLine(String(msg ?? '')),
    ...details.map((detail) => style('dim', detail)),
  ].join('  ');
}

function formatTime(time: unknown): string {
  const moment = Date.parse(String(time));
  return Number.isNaN(moment) ? toOneLine(String(time ?? '')) : formatSecond(moment);
}

function formatValue(value: unknown): string {
  return typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : (JSON.stringify(value) ?? '');
}
