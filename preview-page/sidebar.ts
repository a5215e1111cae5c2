import { formatMoment } from '../src/cli/format.js';
import { describeCost, describeTurns, messagesToText } from '../src/commands/preview/text.js';
import {
  countTokensByKind,
  findRoot,
  type ShownSession,
  type ShownTurn,
  totalTokens,
} from '../src/commands/preview/view-model.js';
import { element } from './dom.js';
import { createTurnRow, setMatchCount } from './turn-row.js';

interface Sidebar {
  readonly content: readonly HTMLElement[];
  /** Marks the open turn. */
  mark(open: ShownTurn): void;
  /** Shows how many matches each turn has. */
  showMatchCounts(counts: ReadonlyMap<ShownTurn, number>): void;
  focus(turn: ShownTurn): void;
}

const TITLE_CHARS = 160;

/** Lists the sessions and their turns. */
export function createSidebar(sessions: readonly ShownSession[], onOpen: (turn: ShownTurn) => void): Sidebar {
  const groups = sessions.map((session) => createSessionGroup(session, onOpen));
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
    showMatchCounts(counts) {
      for (const group of groups) group.showMatchCounts(counts);
    },
    focus: (turn) => rowOf(turn)?.focus(),
  };
}

/** A session in the list. The rows of its turns are created once the session or one of its turns is opened. */
function createSessionGroup(session: ShownSession, onOpen: (turn: ShownTurn) => void) {
  const rows = new Map<ShownTurn, HTMLButtonElement>();
  let counts: ReadonlyMap<ShownTurn, number> = new Map();
  const content = element('details', { class: 'session' }, renderSessionHeading(session));
  const updateCounts = () => {
    for (const [turn, row] of rows) setMatchCount(row, counts.get(turn));
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
        createTurnRow(turn, most, () => onOpen(turn)),
      );
    updateCounts();
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
    showMatchCounts(found: ReadonlyMap<ShownTurn, number>): void {
      counts = found;
      updateCounts();
    },
  };
}

function renderSessionHeading(session: ShownSession): HTMLElement {
  const { sessionId, title, folder, turns } = session;
  const [first] = turns;
  const named = turns.find(({ metadata }) => metadata.turn_number !== undefined) ?? first;
  const prompt = named && messagesToText(findRoot(named)?.input).slice(0, TITLE_CHARS);
  return element(
    'summary',
    { title: sessionId },
    element('strong', {}, title ?? (prompt || sessionId)),
    element('span', { class: 'where' }, folder ?? sessionId),
    element(
      'span',
      { class: 'facts' },
      [first ? formatMoment(first.startTime) : '', describeTurns(session), describeCost(session)]
        .filter((fact) => fact !== '')
        .join(' · '),
    ),
  );
}
