import { lastActivity, type SessionOverview } from '../transcript/overview/overview.js';
import { column, terminalWidth } from './columns.js';
import { style } from './style.js';
import { duration, moment, oneLine, size, things } from './words.js';

interface ListedSession {
  readonly session: SessionOverview;
  /** Undefined where nothing tells. */
  readonly turns?: number | undefined;
  readonly state?: string | undefined;
}

/** A session as a person looks for it: what it was about, which it is and where, when and how much. */
export function sessionLines({ session, turns, state }: ListedSession): string[] {
  const { sessionId, startedAt, bytes, model, title = '', folders } = session;
  const last = lastActivity(session);
  const width = terminalWidth();
  const start = startedAt ?? last;
  const facts = [
    `${moment(start)} – ${sameDay(start, last) ? moment(last).slice(-5) : moment(last)} (${duration(last - start)})`,
    state ?? '',
    turns === undefined ? '' : things(turns, 'turn'),
    size(bytes),
    oneLine(model ?? ''),
  ];
  return [
    style('bold', column(oneLine(title) || '(no prompt)', width).trimEnd()),
    column(`  ${oneLine(sessionId)}  ${oneLine(folders[0] ?? '')}`, width).trimEnd(),
    style('dim', column(`  ${facts.filter((fact) => fact !== '').join(' · ')}`, width).trimEnd()),
  ];
}

function sameDay(a: number, b: number): boolean {
  return moment(a).slice(0, 10) === moment(b).slice(0, 10);
}
