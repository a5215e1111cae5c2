/** `$12.30`, and below a dollar as many decimals as it takes: `$0.0042`. */
export function formatDollars(dollars: number): string {
  const size = Math.abs(dollars);
  const decimals = size >= 0.995 || size === 0 ? 2 : 4;
  const sign = dollars < 0 ? '-' : '';
  return `${sign}$${size.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })}`;
}
