/** `$12.30`, and below a dollar as many decimals as it takes: `$0.0042`. */
export function formatDollars(dollars: number): string {
  const size = Math.abs(dollars);
  const decimals = size >= 0.995 || size === 0 ? 2 : 4;
  const sign = dollars < 0 ? '-' : '';
  return `${sign}$${size.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })}`;
}

/** `$1.20 ~$0.30+`: what Claude Code's accounts say, what is learnt, and whether there is more. Empty if nothing is known. */
export function formatCosts(costs: { dollars: number; learntDollars: number; unpricedTokens: number }): string {
  const { dollars, learntDollars, unpricedTokens } = costs;
  const parts = [
    dollars > 0 ? formatDollars(dollars) : '',
    learntDollars > 0 ? `~${formatDollars(learntDollars)}` : '',
  ];
  const text = parts.filter((part) => part !== '').join(' ');
  if (unpricedTokens === 0) return text;
  return text === '' ? '?' : `${text}+`;
}
