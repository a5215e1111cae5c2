import { formatCount, formatElapsed, formatMoment, plural } from '../src/cli/format.js';
import { formatDollars } from '../src/cli/format-cost.js';
import {
  describeDuration,
  describeOutcome,
  describeWholeDuration,
  messagesToText,
} from '../src/commands/preview/text.js';
import { findRoot, type ShownObservation, type ShownTurn } from '../src/commands/preview/view-model.js';
import { renderWords } from './content-view.js';
import { element } from './dom.js';
import { renderShareChart, sumShares } from './share-chart.js';
import { listTimes, listTokens } from './shares.js';
import { createTimeline, type Timeline } from './timeline.js';

export interface TurnView {
  readonly content: readonly HTMLElement[];
  readonly timeline: Timeline;
}

/** Shows a turn: the conversation, its time and tokens, and the timeline. */
export function createTurnView(
  turn: ShownTurn,
  query: string,
  onOpen: (observation: ShownObservation) => void,
): TurnView {
  const root = findRoot(turn);
  const shown = createTimeline(turn, query, onOpen);
  const sections = [
    renderHeading(turn, root),
    ...(root ? renderConversation(root, query) : []),
    renderSums([turn]),
    renderCard('Timeline', plural(turn.observations.length, 'observation'), shown.content),
  ];
  return { content: sections, timeline: shown };
}

/** What turns waited for, and the tokens that they used. */
export function renderSums(turns: readonly ShownTurn[]): HTMLElement {
  const [times, tokens] = [listTimes(turns), listTokens(turns)];
  const [time, total] = [sumShares(times), sumShares(tokens)];
  return element(
    'div',
    { class: 'sums' },
    time > 0 ? renderCard('Time', formatElapsed(time), renderShareChart(times, formatElapsed)) : undefined,
    total > 0
      ? renderCard('Tokens', `${formatCount(total)} in total`, renderShareChart(tokens, formatCount))
      : undefined,
  );
}

function renderHeading(turn: ShownTurn, root: ShownObservation | undefined): HTMLElement {
  const { name, metadata, startTime, dollars, observations } = turn;
  const count = (type: ShownObservation['type']) => observations.filter((each) => each.type === type).length;
  const facts = [
    formatMoment(startTime),
    describeDuration(turn),
    describeWholeDuration(turn),
    dollars === undefined ? '' : formatDollars(dollars),
    ...describeCount(count('generation'), 'generation'),
    ...describeCount(count('tool'), 'tool'),
    ...describeCount(count('agent') - 1, 'subagent'),
    metadata.git_branch,
  ];
  const outcome = root?.metadata.outcome;
  const work = root ? renderOutcome(root) : [];
  return element(
    'header',
    { class: 'turn-heading' },
    element(
      'h1',
      {},
      name,
      ...(typeof outcome === 'string'
        ? [element('span', { class: 'outcome', 'data-level': root?.level }, outcome.replaceAll('_', ' '))]
        : []),
    ),
    element('p', {}, facts.filter((fact) => typeof fact === 'string' && fact !== '').join(' · ')),
    ...(work.length > 0 ? [element('p', { class: 'work' }, ...work)] : []),
    ...(root?.statusMessage ? [element('p', { class: 'reason', 'data-level': root.level }, root.statusMessage)] : []),
  );
}

/** What came of a turn, with the lines that it added and removed in colour. */
export function renderOutcome(root: ShownObservation): (HTMLElement | string)[] {
  const parts = describeOutcome(root).split(/(?<!\S)([+−]\d+)\b/);
  return parts
    .filter((part) => part !== '')
    .map((part) =>
      /^[+−]\d+$/.test(part)
        ? element('span', { 'data-change': part.startsWith('+') ? 'added' : 'removed' }, part)
        : part,
    );
}

function describeCount(value: number, name: string): string[] {
  return value > 0 ? [plural(value, name)] : [];
}

function renderConversation({ input, output }: ShownObservation, query: string): HTMLElement[] {
  const said = [
    ['user', messagesToText(input)],
    ['assistant', messagesToText(output)],
  ] as const;
  const messages = said.flatMap(([role, words]) => {
    const shown = renderWords(role, words, query);
    return shown ? [element('section', { class: 'message', 'data-role': role }, element('h4', {}, role), shown)] : [];
  });
  return messages.length > 0 ? [element('div', { class: 'conversation messages' }, ...messages)] : [];
}

export function renderCard(title: string, aside: string, content: HTMLElement): HTMLElement {
  return element('section', { class: 'card' }, element('h2', {}, title, element('small', {}, aside)), content);
}
