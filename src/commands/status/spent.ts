import { addUpCosts, type Costs, listEntries } from '../../costs/cost-book.js';
import { PRICE_TABLE } from '../../costs/list-prices.js';
import { readAllUsage } from '../../costs/read-usage.js';
import { startOfDay } from '../../shared/start-of-day.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import type { SessionIndex } from '../../transcript/sessions/session-index.js';

/** What sessions cost, in local days. */
export interface Spent {
  readonly today: Costs;
  /** Since Monday. */
  readonly week: Costs;
}

/** Adds up what `cost` would say; undefined if nothing was used since Monday. Only sessions that have changed since then are read. */
export function readSpent(
  sessions: readonly Pick<SessionOverview, 'path' | 'changedAt'>[],
  folders: { readonly claude: string; readonly state: string },
  index: SessionIndex,
  now: Date,
): Spent | undefined {
  const daysSinceMonday = (now.getDay() + 6) % 7;
  const monday = startOfDay(now, -daysSinceMonday);
  const wanted = sessions.filter(({ changedAt }) => changedAt >= monday).map(({ path }) => path);
  if (wanted.length === 0) return undefined;
  const usage = readAllUsage(folders.claude, folders.state, { wanted, index });
  const entries = [...listEntries(usage, PRICE_TABLE.findPrices, ({ uses }) => uses)];
  const week = entries.filter(({ at }) => at >= monday);
  if (week.length === 0) return undefined;
  const midnight = startOfDay(now);
  return { today: addUpCosts(week.filter(({ at }) => at >= midnight)), week: addUpCosts(week) };
}
