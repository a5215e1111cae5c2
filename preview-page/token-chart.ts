import { formatCount } from '../src/cli/format.js';
import { TOKEN_NAMES, type Tokens, totalTokens } from '../src/commands/preview/view-model.js';
import { element } from './dom.js';

/** Draws tokens by kind as one bar, to the scale of `most`. */
export function renderTokenBar(tokens: readonly Tokens[], most: number): HTMLElement {
  const bar = element('span', { class: 'token-bar', 'aria-hidden': 'true' });
  for (const { kind, tokens: amount } of tokens) {
    const segment = element('i', { 'data-kind': kind });
    segment.style.width = `${((amount / Math.max(1, most)) * 100).toFixed(3)}%`;
    bar.append(segment);
  }
  return bar;
}

/** Draws the bar and a legend. */
export function renderTokenChart(tokens: readonly Tokens[]): HTMLElement {
  const total = totalTokens(tokens);
  const legend = tokens.map(({ kind, tokens: amount }) =>
    element(
      'li',
      {},
      element('i', { class: 'swatch', 'data-kind': kind, 'aria-hidden': 'true' }),
      element('span', {}, TOKEN_NAMES[kind]),
      element('b', {}, formatCount(amount)),
      element('small', {}, formatShare(amount, total)),
    ),
  );
  return element('div', { class: 'token-chart' }, renderTokenBar(tokens, total), element('ul', {}, ...legend));
}

function formatShare(amount: number, total: number): string {
  const percent = (amount / Math.max(1, total)) * 100;
  return percent < 1 ? '<1%' : `${percent.toFixed(0)}%`;
}
