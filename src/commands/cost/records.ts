import { toOneLine } from '../../cli/format.js';
import { roundDollars, toCostRecord } from '../../cli/format-cost.js';
import { addUpCosts, type Costs, countTokens } from '../../costs/cost-book.js';
import { USED_KINDS, type Used, type UsedKind } from '../../costs/session-usage.js';
import type { GroupName, Row } from './grouping.js';

/** The column in which each kind of usage is counted. */
const COLUMNS = {
  input: 'inputTokens',
  output: 'outputTokens',
  cache_read_input_tokens: 'cacheReadTokens',
  cache_creation_input_tokens: 'cacheWriteTokens',
  input_cache_creation_5m: 'cacheWriteTokens',
  input_cache_creation_1h: 'cacheWriteTokens',
  web_search_requests: 'webSearches',
} as const satisfies { readonly [kind in UsedKind]: string };

function addUpColumns(used: Used): { [column in (typeof COLUMNS)[UsedKind]]: number } {
  const sums = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, webSearches: 0 };
  for (const kind of USED_KINDS) sums[COLUMNS[kind]] += used[kind];
  return sums;
}

/** All sums for a program. */
export function toRecord({ dollars, listDollars, unpricedTokens, used, agentTokens, ...cache }: Costs) {
  const { cacheSaved, unknownCacheReads, ...others } = cache;
  others satisfies Readonly<Record<string, never>>;
  return {
    ...toCostRecord({ dollars, listDollars, unpricedTokens }),
    tokens: countTokens(used),
    ...addUpColumns(used),
    subagentTokens: agentTokens,
    listPriceCacheSavings: roundDollars(cacheSaved),
    cacheReadTokensWithoutPrice: unknownCacheReads,
  };
}

/** As RFC 4180 has it. */
export function renderCsv(by: GroupName, rows: readonly Row[]): string {
  const names = Object.keys(toRecord(addUpCosts([])));
  const lines = rows.map(({ key, costs }) => [quoteText(key), ...Object.values(toRecord(costs))]);
  return [[by, ...names], ...lines].map((cells) => `${cells.join(',')}\r\n`).join('');
}

/** A spreadsheet would run a cell that begins like a formula. A branch or a folder can have any name. */
function quoteText(text: string): string {
  const line = toOneLine(text);
  const safe = /^[=+\-@]/.test(line) ? `'${line}` : line;
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
