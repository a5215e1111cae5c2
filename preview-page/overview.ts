import { formatCount, formatMoment, plural } from '../src/cli/format.js';
import { formatDollars } from '../src/cli/format-cost.js';
import {
  describeCost,
  describeDuration,
  describeTurns,
  describeWholeDuration,
  messagesToText,
} from '../src/commands/preview/text.js';
import { findRoot, type ShownSession, type ShownTurn } from '../src/commands/preview/view-model.js';
import { button, element } from './dom.js';
import { renderShareBar, sumShares } from './share-chart.js';
import { listTimes, listTokens } from './shares.js';
import { renderCard, renderOutcome, renderSums } from './turn-view.js';

const PROMPT_CHARS = 240;

/** One turn needs no overview. */
export function hasOverview({ turns }: ShownSession): boolean {
  return turns.length > 1;
}

/** The title of a session, or else its first prompt. */
export function findTitle({ sessionId, title, turns }: ShownSession): string {
  const named = turns.find(({ metadata }) => metadata.turn_number !== undefined) ?? turns[0];
  const prompt = named && messagesToText(findRoot(named)?.input).slice(0, PROMPT_CHARS);
  return title ?? (prompt || sessionId);
}

/** Shows what a session took, and what came of it: in all, and turn by turn. */
export function renderOverview(session: ShownSession, onOpen: (turn: ShownTurn) => void): HTMLElement[] {
  const { turns, folder } = session;
  const [first] = turns;
  const facts = [first && formatMoment(first.startTime), describeTurns(session), describeCost(session), folder];
  const most = turns.reduce((longest, turn) => Math.max(longest, sumShares(listTimes([turn]))), 0);
  const hasCosts = turns.some(({ dollars }) => dollars !== undefined);
  const names = ['Turn', 'Time', 'Tokens', ...(hasCosts ? ['Cost'] : []), 'Result'];
  const table = element(
    'div',
    { class: hasCosts ? 'turn-table with-costs' : 'turn-table', role: 'table', 'aria-label': 'Turns' },
    element(
      'div',
      { class: 'turn-names', role: 'row' },
      ...names.map((name) => element('span', { role: 'columnheader' }, name)),
    ),
    ...turns.map((turn) => renderTurnLine(turn, most, hasCosts, onOpen)),
  );
  return [
    element(
      'header',
      { class: 'turn-heading' },
      element('h1', {}, findTitle(session)),
      element('p', {}, facts.filter((fact) => fact !== undefined && fact !== '').join(' · ')),
    ),
    renderSums(turns),
    renderCard('Turns', describeErrors(turns), table),
  ];
}

function renderTurnLine(
  turn: ShownTurn,
  most: number,
  hasCosts: boolean,
  onOpen: (turn: ShownTurn) => void,
): HTMLElement {
  const root = findRoot(turn);
  const outcome = typeof root?.metadata.outcome === 'string' ? root.metadata.outcome : '';
  const prompt = messagesToText(root?.input).slice(0, PROMPT_CHARS) || turn.name;
  const cell = (name: string, ...content: (Node | string)[]) =>
    element('span', { class: name, role: 'cell' }, ...content);
  const line = element(
    'div',
    { class: 'turn-line', role: 'row' },
    cell(
      'prompt',
      element('span', { class: 'number' }, String(turn.metadata.turn_number ?? '–')),
      button(prompt, { 'aria-label': `${turn.name}: ${prompt}` }, () => onOpen(turn)),
    ),
    cell(
      'took',
      renderShareBar(listTimes([turn]), most),
      element('span', { title: describeWholeDuration(turn) || undefined }, describeDuration(turn)),
    ),
    cell('tokens', formatCount(sumShares(listTokens([turn])))),
    ...(hasCosts ? [cell('cost', turn.dollars === undefined ? '' : formatDollars(turn.dollars))] : []),
    cell(
      'work',
      ...(root && root.level !== 'DEFAULT'
        ? [element('b', { 'data-level': root.level }, outcome.replaceAll('_', ' ')), ' ']
        : []),
      ...(root ? renderOutcome(root) : []),
    ),
  );
  return line;
}

function describeErrors(turns: readonly ShownTurn[]): string {
  const errors = turns.flatMap(({ observations }) => observations).filter(({ level }) => level === 'ERROR').length;
  return errors > 0 ? `${formatCount(turns.length)}, with ${plural(errors, 'error')}` : formatCount(turns.length);
}
