import type { SessionOverview } from '../transcript/sessions/overview.js';
import { formatBytes, formatDuration, formatMoment, plural, toOneLine } from './format.js';
import { cutToWidth, style, terminalWidth } from './terminal.js';

/** Describes a session in three lines: its title; its id and folder; when it ran and how large it is. */
export function formatSession(session: SessionOverview, state = '', turns?: number, cost = ''): string {
  const { sessionId, startedAt, bytes, model = '', title = '', folders } = session;
  const width = terminalWidth();
  const end = session.lastActivityAt;
  const start = startedAt ?? end;
  const [from, to] = [formatMoment(start), formatMoment(end)];
  const isSameDay = from.slice(0, 10) === to.slice(0, 10);
  const facts = [
    `${from} – ${isSameDay ? to.slice(-5) : to} (${formatDuration(end - start)})`,
    state,
    turns === undefined ? '' : plural(turns, 'turn'),
    cost,
    formatBytes(bytes),
    toOneLine(model),
  ];
  return [
    style('bold', cutToWidth(toOneLine(title) || '(no prompt)', width)),
    cutToWidth(`  ${toOneLine(sessionId)}  ${toOneLine(folders[0] ?? '')}`, width),
    style('dim', cutToWidth(`  ${facts.filter((fact) => fact !== '').join(' · ')}`, width)),
  ].join('\n');
}
