import { formatElapsed } from '../src/cli/format.js';
import type { ShownObservation, ShownTurn } from '../src/commands/preview/session.js';
import { summarize } from '../src/commands/preview/text.js';
import { countTokensByKind } from '../src/commands/preview/tokens.js';
import type { Json } from '../src/shared/json.js';
import { asText, contentView } from './content-view.js';
import { button, element } from './dom.js';
import { marked } from './text-view.js';
import { tokenChart } from './token-chart.js';

/** All that is known of an observation. */
export function detailsView(
  observation: ShownObservation,
  turn: ShownTurn,
  { query, onClose }: { query: string; onClose: () => void },
): HTMLElement[] {
  const { type, name, level, statusMessage, input, output, metadata } = observation;
  const tokens = countTokensByKind([observation]);
  const summary = type === 'generation' ? '' : summarize(observation);
  return [
    element(
      'header',
      {},
      element('span', { class: 'kind', 'data-type': type }, type),
      element('h2', {}, ...marked(name, query)),
      button('×', { class: 'quiet close', 'aria-label': 'Close' }, onClose),
    ),
    ...(summary === '' ? [] : [element('p', { class: 'summary' }, ...marked(summary, query))]),
    ...(level === 'DEFAULT'
      ? []
      : [element('p', { class: 'reason', 'data-level': level }, ...marked(statusMessage ?? level, query))]),
    factsView(observation, turn),
    ...(tokens.length > 0 ? [tokenChart(tokens)] : []),
    ...section('Input', input, query),
    ...section('Output', output, query),
    ...section('Metadata', Object.keys(metadata).length > 0 ? metadata : undefined, query),
  ];
}

function section(title: string, content: Json | undefined, query: string): HTMLElement[] {
  if (content === undefined || content === null || content === '') return [];
  return [element('section', {}, element('h3', {}, title), contentView(content, query))];
}

function factsView(observation: ShownObservation, turn: ShownTurn): HTMLElement {
  const { startTime, endTime, completionStartTime, model, modelParameters = {} } = observation;
  const facts: [string, string | undefined][] = [
    ['starts', `+${formatElapsed(startTime - turn.startTime)}`],
    ['takes', formatElapsed(endTime - startTime)],
    ['first token', completionStartTime === undefined ? undefined : formatElapsed(completionStartTime - startTime)],
    ['model', model],
    ...Object.entries(modelParameters).map(([name, value]): [string, string] => [name, asText(value)]),
  ];
  const items = facts.flatMap(([name, value]) =>
    value === undefined ? [] : [element('div', {}, element('dt', {}, name), element('dd', {}, value))],
  );
  return element('dl', { class: 'fact-list' }, ...items);
}
