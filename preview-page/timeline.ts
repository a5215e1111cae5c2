import { formatCount, formatElapsed } from '../src/cli/format.js';
import { summarize } from '../src/commands/preview/text.js';
import { type Branch, buildTree, type ShownObservation, type ShownTurn } from '../src/commands/preview/view-model.js';
import { element } from './dom.js';
import { buildLanes } from './lanes.js';
import { chooseTicks, placeBar } from './scale.js';
import { markMatches } from './text-view.js';

export interface Timeline {
  readonly content: HTMLElement;
  select(observation: ShownObservation): void;
  focus(): void;
  /** The observation this many rows below the selected one, if there is one. */
  neighbour(step: number): ShownObservation | undefined;
}

const SUMMARY_CHARS = 240;

/** Draws a turn's observations to scale: in lanes by type, and below as a tree with one row for each. */
export function createTimeline(
  turn: ShownTurn,
  query: string,
  onOpen: (observation: ShownObservation) => void,
): Timeline {
  const branches = buildTree(turn);
  const rows = branches.map((branch) => renderRow(branch, { turn, query, onOpen }));
  const tree = element('div', { class: 'waterfall', role: 'tree', 'aria-label': 'Observations' }, ...rows);
  const lanes = renderLanes(branches, turn, onOpen);
  let selected = 0;
  const choose = (next: number) => {
    rows[selected]?.setAttribute('aria-selected', 'false');
    rows[selected]?.setAttribute('tabindex', '-1');
    selected = next;
    rows[selected]?.setAttribute('aria-selected', 'true');
    rows[selected]?.setAttribute('tabindex', '0');
    rows[selected]?.scrollIntoView({ block: 'nearest' });
  };
  rows[0]?.setAttribute('tabindex', '0');
  return {
    content: element('div', { class: 'timeline' }, renderAxis(turn), ...lanes, renderLegend(branches), tree),
    select: (observation) => choose(branches.findIndex((branch) => branch.observation === observation)),
    focus: () => rows[selected]?.focus(),
    neighbour: (step) => branches[selected + step]?.observation,
  };
}

function renderAxis(turn: ShownTurn): HTMLElement {
  const total = turn.endTime - turn.startTime;
  const ticks = chooseTicks(total).map((ms) => {
    const tick = element('span', {}, ms === 0 ? '0' : formatElapsed(ms));
    tick.style.left = `${((ms / Math.max(1, total)) * 100).toFixed(3)}%`;
    return tick;
  });
  return element('div', { class: 'axis', 'aria-hidden': 'true' }, element('div', { class: 'track' }, ...ticks));
}

/** Hidden from screen readers, since the tree shows the same. */
function renderLanes(
  branches: readonly Branch[],
  turn: ShownTurn,
  onOpen: (observation: ShownObservation) => void,
): HTMLElement[] {
  return buildLanes(branches).map(({ name, rows }) => {
    const tracks = rows.map((row) => {
      const bars = row.map((observation) => {
        const bar = element('i', {
          ...barAttributes(observation),
          title: `${observation.name} ${summarize(observation).slice(0, SUMMARY_CHARS)}`,
        });
        placeBar(bar, observation, turn);
        bar.addEventListener('click', () => onOpen(observation));
        return bar;
      });
      return element('div', { class: 'track' }, ...bars);
    });
    return element(
      'div',
      { class: 'lane', 'aria-hidden': 'true' },
      element('span', {}, name),
      element('div', { class: 'tracks' }, ...tracks),
    );
  });
}

/** Says what the colours mean where the rows have no room for the words. Hidden from screen readers, which read the words. */
function renderLegend(branches: readonly Branch[]): HTMLElement {
  const types = [...new Set(branches.map(({ observation }) => observation.type))];
  const kinds = types.map((type) => element('span', { class: 'kind', 'data-type': type }, type));
  return element('div', { class: 'legend', 'aria-hidden': 'true' }, ...kinds);
}

interface RowOptions {
  readonly turn: ShownTurn;
  readonly query: string;
  readonly onOpen: (observation: ShownObservation) => void;
}

function renderRow(branch: Branch, { turn, query, onOpen }: RowOptions): HTMLElement {
  const { observation, depth, tokens } = branch;
  const { type, name, level, startTime, endTime } = observation;
  const duration = type === 'event' ? '' : formatElapsed(endTime - startTime);
  const summary = summarize(observation).slice(0, SUMMARY_CHARS);
  const bar = element('i', barAttributes(observation));
  placeBar(bar, observation, turn);
  const row = element(
    'div',
    {
      class: 'row',
      role: 'treeitem',
      tabindex: -1,
      'aria-level': depth + 1,
      'aria-selected': 'false',
      'aria-label': [type, name, summary, level === 'DEFAULT' ? '' : level, duration].filter((word) => word).join(', '),
      'data-level': level,
    },
    renderNameCell(observation, summary, query),
    element('span', { class: 'track' }, bar),
    element('span', { class: 'duration' }, duration),
    element('span', { class: 'tokens' }, tokens > 0 ? formatCount(tokens) : ''),
  );
  row.style.setProperty('--depth', String(depth));
  row.addEventListener('click', () => onOpen(observation));
  return row;
}

function renderNameCell({ type, name, level }: ShownObservation, summary: string, query: string): HTMLElement {
  return element(
    'span',
    { class: 'name' },
    element('span', { class: 'kind', 'data-type': type }, type),
    ...(level === 'DEFAULT' ? [] : [element('span', { class: 'level', 'data-level': level }, level)]),
    element('b', {}, ...markMatches(name, query)),
    element('span', { class: 'summary' }, ...markMatches(summary, query)),
  );
}

function barAttributes({ type, level }: ShownObservation) {
  return { class: 'time', 'data-type': type, 'data-level': level };
}
