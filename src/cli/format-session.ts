import type { SessionOverview } from '../transcript/sessions/overview.js';
import { formatBytes, formatDuration, formatMoment, plural, toOneLine } from './format.js';
import { cutToWidth, displayWidth, style, terminalWidth } from './terminal.js';

/** Describes a session in three lines: its title; its id and folder; when it ran and how large it is. */
export function formatSession(session: SessionOverview, state = '', turns?: number, cost = ''): string {
  const { sessionId, startedAt, bytes, model = '', title = '', folders } = session;
  const width = terminalWidth();
  const end = session.lastActivityAt;
  const start = startedAt ?? end;
  const [from, to] = [formatMoment(start), formatMoment(end)];
  const isSameDay = from.slice(0, 10) === to.slice(0, 10);
  const facts = fitFacts(
    {
      time: `${from} – ${isSameDay ? to.slice(-5) : to}`,
      duration: `(${formatDuration(end - start)})`,
      state,
      count: turns === undefined ? '' : plural(turns, 'turn'),
      cost,
      size: formatBytes(bytes),
      model: toOneLine(model),
    },
    width - 2,
  );
  return [
    style('bold', cutToWidth(toOneLine(title) || '(no prompt)', width)),
    cutToWidth(`  ${toOneLine(sessionId)}  ${toOneLine(folders[0] ?? '')}`, width),
    style('dim', cutToWidth(`  ${facts}`, width)),
  ].join('\n');
}

type Fact = 'time' | 'duration' | 'state' | 'count' | 'cost' | 'size' | 'model';
type Facts = { readonly [fact in Fact]: string };
/** What is left out in a narrow terminal, the first first. Time and cost stay, and what fits of the state. */
const LESS_IMPORTANT: readonly Fact[] = ['model', 'size', 'count', 'duration'];

function fitFacts(facts: Facts, width: number): string {
  if (!Number.isFinite(width)) return joinFacts(facts, []);
  for (const [count] of [...LESS_IMPORTANT, ''].entries()) {
    const text = joinFacts(facts, LESS_IMPORTANT.slice(0, count));
    if (displayWidth(text) <= width) return text;
  }
  const excess = displayWidth(joinFacts(facts, LESS_IMPORTANT)) - width;
  const room = displayWidth(facts.state) - excess;
  return joinFacts({ ...facts, state: room > 1 ? cutToWidth(facts.state, room) : '' }, LESS_IMPORTANT);
}

function joinFacts(facts: Facts, left: readonly Fact[]): string {
  const { time, duration, state, count, cost, size, model } = {
    ...facts,
    ...Object.fromEntries(left.map((fact) => [fact, ''])),
  };
  return [`${time} ${duration}`.trim(), state, count, cost, size, model].filter((fact) => fact !== '').join(' · ');
}
