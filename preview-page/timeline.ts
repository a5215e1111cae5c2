import { formatCount, formatElapsed } from '../src/cli/format.js';
import type { ShownObservation, ShownTurn } from '../src/commands/preview/session.js';
import { summarize } from '../src/commands/preview/text.js';
import { countTokensByKind, totalTokens } from '../src/commands/preview/tokens.js';
import { type Branch, buildTree, findSubtree } from '../src/commands/preview/tree.js';
import { element } from './dom.js';
import { lanesOf } from './lanes.js';
import { place, ticksFor } from './scale.js';
import { marked } from './text-view.js';

export interface Timeline {
  readonly content: HTMLElement;
  select(observation: ShownObservation): void;
  focus(): void;
  /** The observation so many rows on, where there is one. */
  neighbour(step: number): ShownObservation | undefined;
}

const SUMMARY_CHARS = 240;

/** A turn's observations to the scale of its time: lanes by kind, and below each in a row of its own. */
export function timeline(turn: ShownTurn, query: string, onOpen: (observation: ShownObservation) => void): Timeline {
  const branches = buildTree(turn);
  const rows = branches.map((branch) => branchRow(branch, { branches, turn, query, onOpen }));
  const tree = element('div', { class: 'waterfall', role: 'tree', 'aria-label': 'Observations' }, ...rows);
  const lanes = laneRows(branches, turn, onOpen);
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
    content: element('div', { class: 'timeline' }, axis(turn), ...lanes, tree),
    select: (observation) => choose(branches.findIndex((branch) => branch.observation === observation)),
    focus: () => rows[selected]?.focus(),
    neighbour: (step) => branches[selected + step]?.observation,
  };
}

function axis(turn: ShownTurn): HTMLElement {
  const total = turn.endTime - turn.startTime;
  const ticks = ticksFor(total).map((ms) => {
    const tick = element('span', {}, ms === 0 ? '0' : formatElapsed(ms));
    tick.style.left = `${((ms / Math.max(1, total)) * 100).toFixed(3)}%`;
    return tick;
  });
  return element('div', { class: 'axis', 'aria-hidden': 'true' }, element('div', { class: 'track' }, ...ticks));
}

/** For the eye and the mouse alone: the tree has all of it, too. */
function laneRows(
  branches: readonly Branch[],
  turn: ShownTurn,
  onOpen: (observation: ShownObservation) => void,
): HTMLElement[] {
  return lanesOf(branches).map(({ name, rows }) => {
    const tracks = rows.map((row) => {
      const bars = row.map((observation) => {
        const bar = element('i', {
          ...barAttributes(observation),
          title: `${observation.name} ${summarize(observation).slice(0, SUMMARY_CHARS)}`,
        });
        place(bar, observation, turn);
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

interface RowTools {
  readonly branches: readonly Branch[];
  readonly turn: ShownTurn;
  readonly query: string;
  readonly onOpen: (observation: ShownObservation) => void;
}

function branchRow(branch: Branch, { branches, turn, query, onOpen }: RowTools): HTMLElement {
  const { observation, depth } = branch;
  const { type, name, level, startTime, endTime } = observation;
  const taken = totalTokens(countTokensByKind(type === 'agent' ? findSubtree(branches, branch) : [observation]));
  const took = type === 'event' ? '' : formatElapsed(endTime - startTime);
  const summary = summarize(observation).slice(0, SUMMARY_CHARS);
  const bar = element('i', barAttributes(observation));
  place(bar, observation, turn);
  const row = element(
    'div',
    {
      class: 'row',
      role: 'treeitem',
      tabindex: -1,
      'aria-level': depth + 1,
      'aria-selected': 'false',
      'aria-label': [type, name, summary, level === 'DEFAULT' ? '' : level, took].filter((word) => word).join(', '),
      'data-level': level,
    },
    nameCell(observation, summary, query),
    element('span', { class: 'track' }, bar),
    element('span', { class: 'took' }, took),
    element('span', { class: 'taken' }, taken > 0 ? formatCount(taken) : ''),
  );
  row.style.setProperty('--depth', String(depth));
  row.addEventListener('click', () => onOpen(observation));
  return row;
}

function nameCell({ type, name, level }: ShownObservation, summary: string, query: string): HTMLElement {
  return element(
    'span',
    { class: 'name' },
    element('span', { class: 'kind', 'data-type': type }, type),
    ...(level === 'DEFAULT' ? [] : [element('span', { class: 'level', 'data-level': level }, level)]),
    element('b', {}, ...marked(name, query)),
    element('span', { class: 'summary' }, ...marked(summary, query)),
  );
}

function barAttributes({ type, level }: ShownObservation) {
  return { class: 'time', 'data-type': type, 'data-level': level };
}
