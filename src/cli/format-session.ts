import { lastActivity, type SessionOverview } from '../transcript/overview/overview.js';
import { fitColumn, terminalWidth } from './columns.js';
import { formatBytes, formatDuration, formatMoment, plural, toOneLine } from './format.js';
import { style } from './style.js';

interface ListedSession {
  readonly session: SessionOverview;
  /** Undefined where nothing tells. */
  readonly turns?: number | undefined;
  readonly state?: string | undefined;
}

/** A session as a person looks for it: what it was about, which it is and where, when and how much. */
export function formatSession({ session, turns, state }: ListedSession): string[] {
  const { sessionId, startedAt, bytes, model, title = '', folders } = session;
  const last = lastActivity(session);
  const width = terminalWidth();
  const start = startedAt ?? last;
  const facts = [
    `${formatMoment(start)} – ${sameDay(start, last) ? formatMoment(last).slice(-5) : formatMoment(last)} (${formatDuration(last - start)})`,
    state ?? '',
    turns === undefined ? '' : plural(turns, 'turn'),
    formatBytes(bytes),
    toOneLine(model ?? ''),
  ];
  return [
    style('bold', fitColumn(toOneLine(title) || '(no prompt)', width).trimEnd()),
    fitColumn(`  ${toOneLine(sessionId)}  ${toOneLine(folders[0] ?? '')}`, width).trimEnd(),
    style('dim', fitColumn(`  ${facts.filter((fact) => fact !== '').join(' · ')}`, width).trimEnd()),
  ];
}

function sameDay(a: number, b: number): boolean {
  return formatMoment(a).slice(0, 10) === formatMoment(b).slice(0, 10);
}
