import { formatMoment } from '../src/cli/format.js';
import { findRoot, type ShownSession, type ShownTurn } from '../src/commands/preview/session.js';
import { describeTurns, messagesText } from '../src/commands/preview/text.js';
import { countTokensByKind, totalTokens } from '../src/commands/preview/tokens.js';
import { element } from './dom.js';
import { setHits, turnRow } from './turn-row.js';

export interface Sidebar {
  readonly content: readonly HTMLElement[];
  /** Shows which turn is open. */
  mark(open: ShownTurn): void;
  /** Shows how many hits each turn has. */
  markHits(hits: ReadonlyMap<ShownTurn, number>): void;
  focus(turn: ShownTurn): void;
}

const TITLE_CHARS = 160;

/** The sessions and their turns. */
export function sidebar(sessions: readonly ShownSession[], onOpen: (turn: ShownTurn) => void): Sidebar {
  const groups = sessions.map((session) => sessionGroup(session, onOpen));
  const rowOf = (turn: ShownTurn) => groups.find(({ session }) => session.turns.includes(turn))?.open(turn);
  let current: HTMLButtonElement | undefined;
  return {
    content: groups.map(({ content }) => content),
    mark(open) {
      current?.removeAttribute('aria-current');
      current?.setAttribute('tabindex', '-1');
      current = rowOf(open);
      current?.setAttribute('aria-current', 'true');
      current?.setAttribute('tabindex', '0');
      current?.scrollIntoView({ block: 'nearest' });
    },
    markHits(hits) {
      for (const group of groups) group.markHits(hits);
    },
    focus: (turn) => rowOf(turn)?.focus(),
  };
}

/** A session whose turns are made when it is opened, by hand or because one of them is. */
function sessionGroup(session: ShownSession, onOpen: (turn: ShownTurn) => void) {
  const rows = new Map<ShownTurn, HTMLButtonElement>();
  let hits: ReadonlyMap<ShownTurn, number> = new Map();
  const content = element('details', { class: 'session' }, sessionHeading(session));
  const showHits = () => {
    for (const [turn, row] of rows) setHits(row, hits.get(turn));
  };
  const fill = () => {
    if (rows.size > 0) return;
    const most = session.turns.reduce(
      (highest, turn) => Math.max(highest, totalTokens(countTokensByKind(turn.observations))),
      0,
    );
    for (const turn of session.turns)
      rows.set(
        turn,
        turnRow(turn, most, () => onOpen(turn)),
      );
    showHits();
    content.append(element('ol', {}, ...[...rows.values()].map((row) => element('li', {}, row))));
  };
  content.addEventListener('toggle', () => content.open && fill());
  return {
    session,
    content,
    open(turn: ShownTurn): HTMLButtonElement | undefined {
      content.open = true;
      fill();
      return rows.get(turn);
    },
    markHits(found: ReadonlyMap<ShownTurn, number>): void {
      hits = found;
      showHits();
    },
  };
}

function sessionHeading(session: ShownSession): HTMLElement {
  const { sessionId, title, folder, turns } = session;
  const [first] = turns;
  const told = turns.find(({ metadata }) => metadata.turn_number !== undefined) ?? first;
  const prompt = told && messagesText(findRoot(told)?.input).slice(0, TITLE_CHARS);
  return element(
    'summary',
    { title: sessionId },
    element('strong', {}, title ?? (prompt || sessionId)),
    element('span', { class: 'where' }, folder ?? sessionId),
    element(
      'span',
      { class: 'facts' },
      `${first ? `${formatMoment(first.startTime)} · ` : ''}${describeTurns(session)}`,
    ),
  );
}
