import { groupDigits } from './format.js';

const LEAST_SHOWN = 0.0001;

/** `$12.30`, below a dollar `$0.0042`, and `<$0.0001` for whatever is more than nothing. */
export function formatDollars(dollars: number): string {
  const size = Math.abs(dollars);
  if (size > 0 && size < LEAST_SHOWN / 2) return `<$${LEAST_SHOWN}`;
  const decimals = size >= 0.995 || size === 0 ? 2 : 4;
  const sign = dollars < 0 ? '-' : '';
  const [whole = '', fraction] = size.toFixed(decimals).split('.');
  return `${sign}$${groupDigits(whole)}.${fraction}`;
}

interface ShownCosts {
  readonly dollars: number;
  readonly listDollars: number;
  readonly unpricedTokens: number;
}

/**
 * In a table: `$1.20 ≈$0.30+`, which is what Claude Code's accounts say, the list price of the rest, and whether there is more. Empty
 * if nothing is known.
 */
export function formatCosts(costs: ShownCosts): string {
  return joinCosts(costs, (dollars) => `≈${dollars}`);
}

/** The same where no table explains it: `$1.20 and ≈ $0.30, list price`. */
export function describeCosts(costs: ShownCosts): string {
  return joinCosts(costs, (dollars) => `${costs.dollars > 0 ? 'and ' : ''}≈ ${dollars}, list price`);
}

/** The same for a program. List prices are never part of `dollars`. */
export function toCostRecord({ dollars, listDollars, unpricedTokens }: ShownCosts) {
  return {
    dollars: roundDollars(dollars),
    listPriceDollars: roundDollars(listDollars),
    tokensWithoutPrice: unpricedTokens,
  };
}

/** Far below a cent, and above the rounding errors of a sum. */
const DECIMALS = 10;

/** Removes the rounding errors of a sum. */
export function roundDollars(dollars: number): number {
  return Number(dollars.toFixed(DECIMALS));
}

function joinCosts({ dollars, listDollars, unpricedTokens }: ShownCosts, mark: (dollars: string) => string): string {
  const parts = [dollars > 0 ? formatDollars(dollars) : '', listDollars > 0 ? mark(formatDollars(listDollars)) : ''];
  const text = parts.filter((part) => part !== '').join(' ');
  if (unpricedTokens === 0) return text;
  return text === '' ? '?' : `${text}+`;
}
