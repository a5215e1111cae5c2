import { count, elapsed, moment, things } from '../../terminal/words.js';
import { rootOf, type ShownSession, type ShownTurn } from '../session.js';
import { tokensOf, totalOf } from '../tokens.js';
import { wordsIn } from '../words-said.js';
import { button, element } from './dom.js';
import { tokenBar } from './token-chart.js';

export interface Sidebar {
  readonly content: readonly HTMLElement[];
  /** Shows which turn is open, and how many hits each has. */
  mark(open: ShownTurn): void;
  markHits(hits: ReadonlyMap<ShownTurn, number>): void;
  focus(turn: ShownTurn): void;
}

const PROMPT_CHARS = 160;

/** The sessions and their turns. A session's turns are made when it is opened. */
export function sidebar(sessions: readonly ShownSession[], onOpen: (turn: ShownTurn) => void): Sidebar {
  const rows = new Map<ShownTurn, HTMLButtonElement>();
  const groups = new Map<ShownTurn, HTMLDetailsElement>();
  let current: HTMLButtonElement | undefined;
  let hits: ReadonlyMap<ShownTurn, number> = new Map();
  const fill = (group: HTMLDetailsElement, session: ShownSession) => {
    if (group.querySelector('ol')) return;
    const totals = session.turns.map(({ observations }) => totalOf(tokensOf(observations)));
    const most = totals.reduce((highest, total) => Math.max(highest, total), 0);
    const items = session.turns.map((turn) => {
      const row = turnRow(turn, most, () => onOpen(turn));
      rows.set(turn, row);
      setHits(row, hits.get(turn));
      return element('li', {}, row);
    });
    group.append(element('ol', {}, ...items));
  };
  const content = sessions.map((session) => {
    const group = element('details', { class: 'session' }, sessionHeading(session));
    group.addEventListener('toggle', () => group.open && fill(group, session));
    for (const turn of session.turns) groups.set(turn, group);
    return group;
  });
  const rowOf = (turn: ShownTurn) => {
    const group = groups.get(turn);
    const session = sessions.find(({ turns }) => turns.includes(turn));
    if (group && session) {
      group.open = true;
      fill(group, session);
    }
    return rows.get(turn);
  };
  return {
    content,
    mark(open) {
      const row = rowOf(open);
      current?.removeAttribute('aria-current');
      current?.setAttribute('tabindex', '-1');
      current = row;
      row?.setAttribute('aria-current', 'true');
      row?.setAttribute('tabindex', '0');
      row?.scrollIntoView({ block: 'nearest' });
    },
    markHits(found) {
      hits = found;
      for (const [turn, row] of rows) setHits(row, found.get(turn));
    },
    focus: (turn) => rowOf(turn)?.focus(),
  };
}

function sessionHeading({ sessionId, title, folder, turns }: ShownSession): HTMLElement {
  const [first] = turns;
  const prompt = first && wordsIn(rootOf(first)?.input).slice(0, PROMPT_CHARS);
  const facts = [first && moment(first.startTime), things(turns.length, 'turn')].filter((fact) => fact !== undefined);
  return element(
    'summary',
    { title: sessionId },
    element('strong', {}, title ?? (prompt || sessionId)),
    element('span', { class: 'where' }, folder ?? sessionId),
    element('span', { class: 'facts' }, facts.join(' · ')),
  );
}

function turnRow(turn: ShownTurn, most: number, onOpen: () => void): HTMLButtonElement {
  const { name, startTime, endTime, observations } = turn;
  const root = rootOf(turn);
  const tokens = tokensOf(observations);
  const errors = observations.filter(({ level }) => level === 'ERROR').length;
  // Of all turns one is reached by Tab, as in a tree: behind a thousand of them nobody would come to the rest.
  const row = button(
    '',
    { class: 'turn-row', tabindex: -1, title: `${name}: ${count(totalOf(tokens))} tokens` },
    onOpen,
  );
  row.append(
    element('span', { class: 'number' }, name.replace(/^Turn /, '')),
    element('span', { class: 'prompt' }, wordsIn(root?.input).slice(0, PROMPT_CHARS) || name),
    element('span', { class: 'hit-count' }),
    ...(errors > 0 ? [element('span', { class: 'errors', title: things(errors, 'error') }, `✗ ${errors}`)] : []),
    element('span', { class: 'took' }, elapsed(endTime - startTime)),
    tokenBar(tokens, most),
  );
  return row;
}

function setHits(row: HTMLElement, hits: number | undefined): void {
  const badge = row.querySelector('.hit-count');
  if (badge) badge.textContent = hits === undefined ? '' : String(hits);
}
