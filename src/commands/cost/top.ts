import { formatCount, plural } from '../../cli/format.js';
import { formatCosts, formatDollars, roundDollars } from '../../cli/format-cost.js';
import { cutToWidth, printJson, printStderr, printStdout, style, terminalWidth } from '../../cli/terminal.js';
import { wrapToWidth } from '../../cli/wrap.js';
import { hasSubscription } from '../../config/login.js';
import { sumDollars } from '../../costs/cost-book.js';
import type { SessionUsage } from '../../costs/session-usage.js';
import { groupCosts, type Row } from './grouping.js';
import { choosePrices, describeSource } from './price-source.js';
import { toRecord } from './records.js';
import { type CostRequest, describeNothing } from './request.js';
import { NOT_BILLED, nameRow } from './table.js';

/** What costs so many times the usual stands out. */
const TIMES_USUAL = 3;
const MOST_SHOWN = 10;

/** What costs far more than others of its kind. */
interface Outliers {
  /** The median of those that cost something, in dollars. */
  readonly usual: number;
  readonly count: number;
  /** The most expensive first. */
  readonly rows: readonly { readonly row: Row; readonly times: number }[];
}

/** Shows which sessions and prompts cost far more than usual. */
export async function showTop(
  sessions: readonly SessionUsage[],
  env: NodeJS.ProcessEnv,
  request: CostRequest,
): Promise<void> {
  const { since, isJson } = request;
  const prices = await choosePrices(sessions, env);
  const source = describeSource(prices, sessions, since);
  const { rows } = groupCosts('session', sessions, prices.findPrices, since);
  const prompts = groupCosts('prompt', sessions, prices.findPrices, since).rows.filter(({ turn }) => turn);
  const [bySession, byPrompt] = [findOutliers(rows), findOutliers(prompts)];
  const isSubscription = hasSubscription(env, process.cwd());
  const notes = [
    rows.some(({ costs }) => costs.listDollars > 0) ? `prices: ${source}` : undefined,
    isSubscription ? NOT_BILLED : undefined,
  ].filter((note) => note !== undefined);
  if (isJson)
    await printJson({
      sessions: toOutlierRecord('session', bySession),
      prompts: toOutlierRecord('prompt', byPrompt),
      prices: source,
      subscription: isSubscription,
    });
  else if (bySession.count === 0) printStderr(describeNothing('a known cost', request));
  else
    await printStdout(
      [
        ...renderOutliers('session', bySession),
        '',
        ...renderOutliers('prompt', byPrompt),
        ...(notes.length > 0 ? [''] : []),
        ...notes.flatMap((note) => wrapToWidth(note)).map((line) => style('dim', line)),
      ].join('\n'),
    );
}

/** The most expensive come first. */
function findOutliers(all: readonly Row[]): Outliers {
  const paid = all.filter(({ costs }) => sumDollars(costs) > 0);
  const median = paid[Math.floor(paid.length / 2)];
  const usual = median ? sumDollars(median.costs) : 0;
  const rows = paid.map((row) => ({ row, times: sumDollars(row.costs) / usual }));
  return { usual, count: paid.length, rows: rows.filter(({ times }) => times >= TIMES_USUAL) };
}

/** Lists what stands out, as far as it fits on a screen. */
function renderOutliers(kind: 'session' | 'prompt', { usual, count, rows }: Outliers): string[] {
  const shown = rows.slice(0, MOST_SHOWN);
  const costs = padColumn(shown.map(({ row }) => formatCosts(row.costs)));
  const factors = padColumn(shown.map(({ times }) => `${formatTimes(times)} ×`));
  const more = rows.length - shown.length;
  return [
    style('bold', `${plural(count, kind)}, usually ${formatDollars(usual)}`),
    ...(rows.length === 0 ? [`none costs ${TIMES_USUAL} times as much`] : []),
    ...shown.map(({ row }, index) =>
      cutToWidth([costs[index], factors[index], nameRow(kind, row)].join('  '), terminalWidth()),
    ),
    ...(more > 0
      ? [style('dim', `and ${plural(more, kind)} more that cost ${TIMES_USUAL} times the usual: --json lists all`)]
      : []),
  ];
}

function padColumn(cells: readonly string[]): string[] {
  const width = Math.max(...cells.map((cell) => cell.length));
  return cells.map((cell) => cell.padStart(width));
}

function toOutlierRecord(kind: string, { usual, count, rows }: Outliers) {
  return {
    usualDollars: roundDollars(usual),
    count,
    above: rows.map(({ row, times }) => ({ [kind]: row.key, times: Number(times.toFixed(1)), ...toRecord(row.costs) })),
  };
}

function formatTimes(times: number): string {
  return times < 10 ? times.toFixed(1) : formatCount(Math.round(times));
}
