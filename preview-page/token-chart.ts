import { formatCount } from '../src/cli/format.js';
import { TOKEN_KINDS, type Tokens, totalTokens } from '../src/commands/preview/tokens.js';
import { element } from './dom.js';

/** Tokens by their kinds as one bar, as long as their share of the most there are. */
export function tokenBar(tokens: readonly Tokens[], most: number): HTMLElement {
  const bar = element('span', { class: 'token-bar', 'aria-hidden': 'true' });
  for (const { kind, tokens: amount } of tokens) {
    const segment = element('i', { 'data-kind': kind });
    segment.style.width = `${((amount / Math.max(1, most)) * 100).toFixed(3)}%`;
    bar.append(segment);
  }
  return bar;
}

/** The bar with what each of its colours means. */
export function tokenChart(tokens: readonly Tokens[]): HTMLElement {
  const total = totalTokens(tokens);
  const legend = tokens.map(({ kind, tokens: amount }) =>
    element(
      'li',
      {},
      element('i', { class: 'swatch', 'data-kind': kind, 'aria-hidden': 'true' }),
      element('span', {}, TOKEN_KINDS[kind]),
      element('b', {}, formatCount(amount)),
      element('small', {}, share(amount, total)),
    ),
  );
  return element('div', { class: 'token-chart' }, tokenBar(tokens, total), element('ul', {}, ...legend));
}

function share(amount: number, total: number): string {
  const percent = (amount / Math.max(1, total)) * 100;
  return percent < 1 ? '<1%' : `${percent.toFixed(0)}%`;
}
