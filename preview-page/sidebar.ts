import { formatMoment } from '../src/cli/format.js';
import { describeCost, describeTurns } from '../src/commands/preview/text.js';
import type { ShownSession, ShownTurn } from '../src/commands/preview/view-model.js';
import { groupBy } from '../src/shared/group-by.js';
import { button, element } from './dom.js';
import { findTitle, hasOverview } from './overview.js';
import { sumShares } from './share-chart.js';
import { listTokens } from './shares.js';
import { createTurnRow, setMatchCount } from './turn-row.js';

/** What the page can show: a turn, or else the overview of the session. */
export interface Place {
  readonly session: ShownSession;
  readonly turn?: ShownTurn;
}

/** Lists the places in the order of the page. */
export function listPlaces(sessions: readonly ShownSession[]): Place[] {
  return sessions.flatMap((session) => [
    ...(hasOverview(session) ? [{ session }] : []),
    ...session.turns.map((turn) => ({ session, turn })),
  ]);
}

interface Sidebar {
  readonly content: readonly HTMLElement[];
  /** Marks what is open. */
  mark(open: Place): void;
  /** Shows how many matches each turn has. */
  showMatchCounts(counts: ReadonlyMap<ShownTurn, number>): void;
  focus(place: Place): void;
}

/** Lists the sessions and their turns. */
export function createSidebar(places: readonly Place[], onOpen: (place: Place) => void): Sidebar {
  const bySession = groupBy(places, ({ session }) => session);
  const groups = new Map([...bySession].map(([session, own]) => [session, createSessionGroup(session, own, onOpen)]));
  const rowOf = (place: Place) => groups.get(place.session)?.open(place);
  let current: HTMLButtonElement | undefined;
  return {
    content: [...groups.values()].map(({ content }) => content),
    mark(open) {
      current?.removeAttribute('aria-current');
      current?.setAttribute('tabindex', '-1');
      current = rowOf(open);
      current?.setAttribute('aria-current', 'true');
      current?.setAttribute('tabindex', '0');
      current?.scrollIntoView({ block: 'nearest' });
    },
    showMatchCounts(counts) {
      for (const group of groups.values()) group.showMatchCounts(counts);
    },
    focus: (place) => rowOf(place)?.focus(),
  };
}

/** A session in the list. The rows of its turns are created once the session or one of its turns is opened. */
function createSessionGroup(session: ShownSession, places: readonly Place[], onOpen: (place: Place) => void) {
  const rows = new Map<Place, HTMLButtonElement>();
  let counts: ReadonlyMap<ShownTurn, number> = new Map();
  const content = element('details', { class: 'session' }, renderSessionHeading(session));
  const updateCounts = () => {
    for (const [{ turn }, row] of rows) if (turn) setMatchCount(row, counts.get(turn));
  };
  const fill = () => {
    if (rows.size > 0) return;
    const most = session.turns.reduce((highest, turn) => Math.max(highest, sumShares(listTokens([turn]))), 0);
    for (const place of places)
      rows.set(
        place,
        createRow(place, most, () => onOpen(place)),
      );
    updateCounts();
    content.append(element('ol', {}, ...[...rows.values()].map((row) => element('li', {}, row))));
  };
  content.addEventListener('toggle', () => content.open && fill());
  return {
    content,
    open(place: Place): HTMLButtonElement | undefined {
      content.open = true;
      fill();
      return rows.get(place);
    },
    showMatchCounts(found: ReadonlyMap<ShownTurn, number>): void {
      counts = found;
      updateCounts();
    },
  };
}

function createRow({ turn }: Place, most: number, onOpen: () => void): HTMLButtonElement {
  if (turn) return createTurnRow(turn, most, onOpen);
  return button('Overview', { class: 'turn-row overview', tabindex: -1 }, onOpen);
}

function renderSessionHeading(session: ShownSession): HTMLElement {
  const { sessionId, folder, turns } = session;
  const [first] = turns;
  return element(
    'summary',
    { title: sessionId },
    element('strong', {}, findTitle(session)),
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
