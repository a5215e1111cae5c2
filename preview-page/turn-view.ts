import { formatCount, formatMoment, plural } from '../src/cli/format.js';
import { formatDollars } from '../src/cli/format-cost.js';
import { describeDuration, describeWholeDuration, describeWork, messagesToText } from '../src/commands/preview/text.js';
import {
  countTokensByKind,
  findRoot,
  type ShownObservation,
  type ShownTurn,
  totalTokens,
} from '../src/commands/preview/view-model.js';
import { element } from './dom.js';
import { renderText } from './text-view.js';
import { createTimeline, type Timeline } from './timeline.js';
import { renderTokenChart } from './token-chart.js';

export interface TurnView {
  readonly content: readonly HTMLElement[];
  readonly timeline: Timeline;
}

/** Shows a turn: the conversation, the tokens and the timeline. */
export function createTurnView(
  turn: ShownTurn,
  query: string,
  onOpen: (observation: ShownObservation) => void,
): TurnView {
  const root = findRoot(turn);
  const shown = createTimeline(turn, query, onOpen);
  const tokens = countTokensByKind(turn.observations);
  const sections = [
    renderHeading(turn, root),
    ...(root ? renderConversation(root, query) : []),
    ...(totalTokens(tokens) > 0
      ? [renderCard('Tokens', `${formatCount(totalTokens(tokens))} in total`, renderTokenChart(tokens))]
      : []),
    renderCard('Timeline', plural(turn.observations.length, 'observation'), shown.content),
  ];
  return { content: sections, timeline: shown };
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
  const work = root ? describeWork(root) : '';
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
    ...(work === '' ? [] : [element('p', {}, work)]),
    ...(root?.statusMessage ? [element('p', { class: 'reason', 'data-level': root.level }, root.statusMessage)] : []),
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
  const messages = said.flatMap(([role, words]) =>
    words === ''
      ? []
      : [
          element(
            'section',
            { class: 'message', 'data-role': role },
            element('h4', {}, role),
            renderText(words, query),
          ),
        ],
  );
  return messages.length > 0 ? [element('div', { class: 'conversation messages' }, ...messages)] : [];
}

function renderCard(title: string, aside: string, content: HTMLElement): HTMLElement {
  return element('section', { class: 'card' }, element('h2', {}, title, element('small', {}, aside)), content);
}
