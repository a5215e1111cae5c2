import { element } from './dom.js';

/** A part of a sum, such as the tokens of a kind, or the time that a turn waited for people. */
export interface Share {
  readonly kind: string;
  readonly name: string;
  readonly amount: number;
}

/** Draws parts as one bar, to the scale of `most`. */
export function renderShareBar(shares: readonly Share[], most: number): HTMLElement {
  const bar = element('span', { class: 'share-bar', 'aria-hidden': 'true' });
  for (const { kind, amount } of shares) {
    const segment = element('i', { 'data-kind': kind });
    segment.style.width = `${((amount / Math.max(1, most)) * 100).toFixed(3)}%`;
    bar.append(segment);
  }
  return bar;
}

/** Draws the bar and a legend. */
export function renderShareChart(shares: readonly Share[], format: (amount: number) => string): HTMLElement {
  const total = sumShares(shares);
  const legend = shares.map(({ kind, name, amount }) =>
    element(
      'li',
      {},
      element('i', { class: 'swatch', 'data-kind': kind, 'aria-hidden': 'true' }),
      element('span', {}, name),
      element('b', {}, format(amount)),
      element('small', {}, formatShare(amount, total)),
    ),
  );
  return element('div', { class: 'share-chart' }, renderShareBar(shares, total), element('ul', {}, ...legend));
}

export function sumShares(shares: readonly Share[]): number {
  return shares.reduce((sum, { amount }) => sum + amount, 0);
}

function formatShare(amount: number, total: number): string {
  const percent = (amount / Math.max(1, total)) * 100;
  return percent < 1 ? '<1%' : `${percent.toFixed(0)}%`;
}
