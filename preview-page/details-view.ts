import { formatCount, formatElapsed, plural } from '../src/cli/format.js';
import { summarize } from '../src/commands/preview/text.js';
import type { ShownObservation, ShownTurn } from '../src/commands/preview/view-model.js';
import type { Json } from '../src/shared/json.js';
import { renderContent } from './content-view.js';
import { button, element } from './dom.js';
import { listFacts } from './facts.js';
import { renderShareChart } from './share-chart.js';
import { listTimes, listTokens } from './shares.js';
import { markMatches } from './text-view.js';

/** Shows everything that is known about an observation. */
export function renderDetails(
  observation: ShownObservation,
  turn: ShownTurn,
  { query, onClose }: { query: string; onClose: () => void },
): HTMLElement[] {
  const { type, name, level, statusMessage, input, output, metadata } = observation;
  const about = { observations: [observation] };
  const [times, tokens] = [listTimes([about]), listTokens([about])];
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
    ...(times.length > 0 ? [renderShareChart(times, formatElapsed)] : []),
    ...(tokens.length > 0 ? [renderShareChart(tokens, formatCount)] : []),
    ...renderSection('Input', input, query),
    ...renderSection('Output', output, query),
    ...renderMetadata(metadata, query),
  ];
}

function renderSection(title: string, content: Json | undefined, query: string): HTMLElement[] {
  if (content === undefined || content === null || content === '') return [];
  return [element('section', {}, element('h3', {}, title), renderContent(content, query))];
}

function renderFacts(observation: ShownObservation, turn: ShownTurn): HTMLElement {
  const items = listFacts(observation, turn).map(([name, value]) =>
    element('div', {}, element('dt', {}, name), element('dd', {}, value)),
  );
  return element('dl', { class: 'fact-list' }, ...items);
}

/** Shows every field of the metadata, unchanged. */
function renderMetadata(metadata: ShownObservation['metadata'], query: string): HTMLElement[] {
  const fields = Object.keys(metadata).length;
  if (fields === 0) return [];
  const heading = element('summary', {}, 'Metadata', element('small', {}, plural(fields, 'field')));
  return [element('details', { class: 'metadata' }, heading, renderContent(metadata, query))];
}
