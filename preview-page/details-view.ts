import { formatElapsed } from '../src/cli/format.js';
import { summarize } from '../src/commands/preview/text.js';
import type { ShownObservation, ShownTurn } from '../src/commands/preview/view-model.js';
import { countTokensByKind } from '../src/commands/preview/view-model.js';
import type { Json } from '../src/shared/json.js';
import { renderContent, toText } from './content-view.js';
import { button, element } from './dom.js';
import { markMatches } from './text-view.js';
import { renderTokenChart } from './token-chart.js';

/** Shows everything that is known about an observation. */
export function renderDetails(
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
      element('h2', {}, ...markMatches(name, query)),
      button('×', { class: 'quiet close', 'aria-label': 'Close' }, onClose),
    ),
    ...(summary === '' ? [] : [element('p', { class: 'summary' }, ...markMatches(summary, query))]),
    ...(level === 'DEFAULT'
      ? []
      : [element('p', { class: 'reason', 'data-level': level }, ...markMatches(statusMessage ?? level, query))]),
    renderFacts(observation, turn),
    ...(tokens.length > 0 ? [renderTokenChart(tokens)] : []),
    ...renderSection('Input', input, query),
    ...renderSection('Output', output, query),
    ...renderSection('Metadata', Object.keys(metadata).length > 0 ? metadata : undefined, query),
  ];
}

function renderSection(title: string, content: Json | undefined, query: string): HTMLElement[] {
  if (content === undefined || content === null || content === '') return [];
  return [element('section', {}, element('h3', {}, title), renderContent(content, query))];
}

function renderFacts(observation: ShownObservation, turn: ShownTurn): HTMLElement {
  const { startTime, endTime, completionStartTime, model, modelParameters = {} } = observation;
  const facts: [string, string | undefined][] = [
    ['start', `+${formatElapsed(startTime - turn.startTime)}`],
    ['duration', formatElapsed(endTime - startTime)],
    ['first token', completionStartTime === undefined ? undefined : formatElapsed(completionStartTime - startTime)],
    ['model', model],
    ...Object.entries(modelParameters).map(([name, value]): [string, string] => [name, toText(value)]),
  ];
  const items = facts.flatMap(([name, value]) =>
    value === undefined ? [] : [element('div', {}, element('dt', {}, name), element('dd', {}, value))],
  );
  return element('dl', { class: 'fact-list' }, ...items);
}
