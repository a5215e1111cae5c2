import { homedir } from 'node:os';
import { formatCount, formatMoment, plural, toOneLine } from '../../cli/format.js';
import { formatCosts, formatDollars } from '../../cli/format-cost.js';
import { cutToWidth, displayWidth, drawBar, fitColumn, style, terminalWidth } from '../../cli/terminal.js';
import { type Costs, countTokens, type Entry, sumDollars } from '../../costs/cost-book.js';
import { attempt } from '../../shared/attempt.js';
import { readPromptAt } from '../../transcript/sessions/overview.js';
import { countExact, type Grouped, type GroupName, isByPart, type Row } from './grouping.js';

/** Without a terminal nothing is cut, and a bar has this many columns. */
const BAR_COLUMNS = 20;
const MIN_NAME_COLUMNS = 10;
/** The start of the id, and the whole date. */
const MIN_SESSION_COLUMNS = '01234567  2026-10-01 12:00'.length;
const MAX_COLUMNS = 140;
const PROMPT_COLUMNS = 60;
/** There is one row for each prompt. */
const MOST_PROMPTS = 30;

/** What the dollars rest on. */
export interface Basis {
  /** Where list prices come from. */
  readonly source: string;
  /** Whether today's login does not bill dollars. */
  readonly isSubscription: boolean;
}

interface Column {
  readonly heading: string;
  readonly cells: readonly string[];
  readonly total: string;
}

/** Draws one row for each group, the heading above and the sum below. Columns that do not fit are left out, the last first. */
export function renderTable(by: GroupName, all: readonly Row[], total: Costs, { isSubscription }: Basis): string[] {
  const rows = by === 'prompt' ? all.slice(0, MOST_PROMPTS) : all;
  const width = Math.min(terminalWidth(), MAX_COLUMNS);
  const names = rows.map((row) => nameRow(by, row));
  const possible = chooseColumns(rows, total, isSubscription);
  const widths = possible.map(measure);
  const narrowest = by === 'session' ? MIN_SESSION_COLUMNS : MIN_NAME_COLUMNS;
  const widest = Math.max(...names.map(displayWidth), by.length, narrowest);
  const needed = (count: number) => widths.slice(0, count).reduce((sum, each) => sum + each + 2, narrowest);
  const shown = possible.map((_, index) => index + 1).findLast((count) => needed(count) <= terminalWidth()) ?? 1;
  const columns = possible.slice(0, shown);
  const rest = width - columns.reduce((sum, column) => sum + measure(column) + 2, 0);
  const name = Number.isFinite(terminalWidth()) ? Math.max(1, Math.min(widest, rest)) : widest;
  const bar = Number.isFinite(terminalWidth()) ? Math.min(BAR_COLUMNS, rest - name - 2) : BAR_COLUMNS;
  const most = Math.max(...rows.map(({ costs }) => weigh(costs, total)));
  const line = (text: string, cells: readonly string[], end = '') =>
    [fitColumn(text, name), ...cells.map((cell, index) => cell.padStart(widths[index] ?? 0)), end].join('  ').trimEnd();
  return [
    style(
      'bold',
      line(
        by,
        columns.map(({ heading }) => heading),
      ),
    ),
    ...rows.map(({ costs }, index) =>
      line(
        fitName(names[index] ?? '', name, by),
        columns.map(({ cells }) => cells[index] ?? ''),
        bar >= 4 ? style('cyan', drawBar(weigh(costs, total), most, bar)) : '',
      ),
    ),
    style(
      'bold',
      line(
        'total',
        columns.map((column) => column.total),
      ),
    ),
  ];
}

function chooseColumns(rows: readonly Row[], total: Costs, isSubscription: boolean): Column[] {
  const column = (heading: string, show: (costs: Costs) => string): Column => ({
    heading,
    cells: rows.map(({ costs }) => show(costs)),
    total: show(total),
  });
  const columns = [
    column(isSubscription ? 'API value' : 'dollars', showDollars),
    column('tokens', ({ used }) => formatCount(countTokens(used))),
  ];
  if (total.agentTokens > 0) columns.push(column('subagents', showAgentShare));
  columns.push(column('output', ({ used }) => formatCount(used.output)));
  columns.push(column('cache read', ({ used }) => formatCount(used.cache_read_input_tokens)));
  return columns;
}

/** What tokens cost can count on a later day than the tokens. */
function showDollars(costs: Costs): string {
  return formatCosts(costs) || (countTokens(costs.used) > 0 ? '–' : formatDollars(0));
}

function showAgentShare({ agentTokens, used }: Costs): string {
  return agentTokens === 0 ? '' : formatShare(agentTokens, countTokens(used));
}

function formatShare(part: number, whole: number): string {
  return `${Math.round((part / Math.max(1, whole)) * 100)}%`;
}

/** If no cost is known at all, the tokens count. */
function weigh(costs: Costs, total: Costs): number {
  if (sumDollars(total) > 0) return sumDollars(costs);
  return countTokens(costs.used);
}

function measure({ heading, cells, total }: Column): number {
  return Math.max(heading.length, total.length, ...cells.map((cell) => cell.length));
}

export function nameRow(by: GroupName, row: Row): string {
  const { key, session, turn } = row;
  const { startedAt, folder } = session;
  if (by === 'prompt' && turn !== undefined) return namePrompt(row);
  if (by === 'session') return `${toOneLine(key).slice(0, 8)}  ${formatMoment(startedAt)}  ${shorten(folder)}`;
  return shorten(key);
}

/** Its text is in the transcript only. */
function namePrompt({ session: { sessionId, path, causes }, turn = 0 }: Row): string {
  const offset = causes?.prompts[turn];
  const prompt = offset === undefined ? undefined : attempt(() => readPromptAt(path, offset));
  const time = prompt?.at === undefined ? '' : `  ${formatMoment(prompt.at)}`;
  return `${sessionId.slice(0, 8)} turn ${turn || '?'}${time}  ${cutToWidth(toOneLine(prompt?.text ?? ''), PROMPT_COLUMNS)}`;
}

function shorten(text: string): string {
  const home = homedir();
  const line = toOneLine(text);
  return line.startsWith(`${home}/`) ? `~${line.slice(home.length)}` : line;
}

/** The end of a path tells more than its beginning. */
function fitName(name: string, width: number, by: GroupName): string {
  const isPath = by === 'project' || by === 'repository' || by === 'branch';
  if (!isPath || name.length <= width) return name;
  return `…${name.slice(name.length - width + 1)}`;
}

/** Says below the table what its figures do not. */
export function describeTotal(by: GroupName, { entries, rows }: Grouped, total: Costs, basis: Basis): string[] {
  const { cacheSaved, unknownCacheReads, agentTokens, used, listDollars, unpricedTokens } = total;
  const guessed = entries.some(({ session }) => session.points.some(({ point }) => point.hasDefaultPrice));
  const read = unknownCacheReads > 0 && cacheSaved === 0;
  const hidden = by === 'prompt' ? rows.length - MOST_PROMPTS : 0;
  return [
    '',
    hidden > 0 ? `and ${plural(hidden, 'prompt')} more: --json lists all` : undefined,
    isByPart(by)
      ? `${formatShare(countExact(entries), countTokens(used))} by what the lines of requests say, the rest by how the context grew`
      : undefined,
    agentTokens > 0 ? `subagents used ${formatShare(agentTokens, countTokens(used))} of the tokens` : undefined,
    cacheSaved !== 0 ? `the cache saved ≈ ${formatDollars(cacheSaved)}, list price` : undefined,
    read ? `${plural(unknownCacheReads, 'token')} were read from the cache; what that saved is not known` : undefined,
    listDollars > 0
      ? `≈ marks tokens that no account of Claude Code includes: ≈ ${formatDollars(listDollars)}, list price`
      : undefined,
    listDollars > 0 || cacheSaved !== 0 ? `prices: ${basis.source}` : undefined,
    unpricedTokens > 0
      ? `+ and ? leave out ${plural(unpricedTokens, 'token')} in no account, of models without a list price: ${nameUnpriced(entries)}`
      : undefined,
    basis.isSubscription ? 'you are logged in with a subscription, which does not bill these dollars' : undefined,
    guessed ? 'for a model that it does not know, Claude Code itself takes a default price' : undefined,
  ]
    .filter((line) => line !== undefined)
    .map((line) => style('dim', cutToWidth(line, terminalWidth())));
}

function nameUnpriced(entries: readonly Entry[]): string {
  const unpriced = entries.filter(({ unpricedTokens }) => unpricedTokens > 0);
  return [...new Set(unpriced.map(({ model }) => toOneLine(model)))].toSorted().join(', ');
}
