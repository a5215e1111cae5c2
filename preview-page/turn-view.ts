import { formatCount, formatElapsed, formatMoment, plural } from '../src/cli/format.js';
import { findRoot, type ShownObservation, type ShownTurn } from '../src/commands/preview/session.js';
import { messagesText } from '../src/commands/preview/text.js';
import { countTokensByKind, totalTokens } from '../src/commands/preview/tokens.js';
import { element } from './dom.js';
import { textView } from './text-view.js';
import { type Timeline, timeline } from './timeline.js';
import { tokenChart } from './token-chart.js';

export interface TurnView {
  readonly content: readonly HTMLElement[];
  readonly timeline: Timeline;
}

/** A turn: what was asked and answered, what it took, and what happened when. */
export function turnView(turn: ShownTurn, query: string, onOpen: (observation: ShownObservation) => void): TurnView {
  const root = findRoot(turn);
  const shown = timeline(turn, query, onOpen);
  const tokens = countTokensByKind(turn.observations);
  const sections = [
    heading(turn, root),
    ...(root ? conversation(root, query) : []),
    ...(totalTokens(tokens) > 0
      ? [card('Tokens', `${formatCount(totalTokens(tokens))} in all`, tokenChart(tokens))]
      : []),
    card('Timeline', plural(turn.observations.length, 'observation'), shown.content),
  ];
  return { content: sections, timeline: shown };
}

function heading(turn: ShownTurn, root: ShownObservation | undefined): HTMLElement {
  const { name, metadata, startTime, endTime, observations } = turn;
  const of = (type: ShownObservation['type']) => observations.filter((each) => each.type === type).length;
  const facts = [
    formatMoment(startTime),
    formatElapsed(endTime - startTime),
    ...some(of('generation'), 'generation'),
    ...some(of('tool'), 'tool'),
    ...some(of('agent') - 1, 'subagent'),
    metadata.git_branch,
  ];
  const outcome = root?.metadata.outcome;
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
    ...(root?.statusMessage ? [element('p', { class: 'reason', 'data-level': root.level }, root.statusMessage)] : []),
  );
}

function some(value: number, name: string): string[] {
  return value > 0 ? [plural(value, name)] : [];
}

function conversation({ input, output }: ShownObservation, query: string): HTMLElement[] {
  const said = [
    ['user', messagesText(input)],
    ['assistant', messagesText(output)],
  ] as const;
  const messages = said.flatMap(([role, words]) =>
    words === ''
      ? []
      : [element('section', { class: 'message', 'data-role': role }, element('h4', {}, role), textView(words, query))],
  );
  return messages.length > 0 ? [element('div', { class: 'conversation messages' }, ...messages)] : [];
}

function card(title: string, aside: string, content: HTMLElement): HTMLElement {
  return element('section', { class: 'card' }, element('h2', {}, title, element('small', {}, aside)), content);
}
