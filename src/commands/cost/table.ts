import { homedir } from 'node:os';
import { type Column, drawColumns } from '../../cli/columns.js';
import { formatCount, formatMoment, plural, toOneLine } from '../../cli/format.js';
import { formatCosts, formatDollars } from '../../cli/format-cost.js';
import { cutToWidth, drawBar, style } from '../../cli/terminal.js';
import { wrapToWidth } from '../../cli/wrap.js';
import { type Costs, countTokens, sumDollars } from '../../costs/cost-book.js';
import { attempt } from '../../shared/attempt.js';
import { readPromptAt } from '../../transcript/sessions/overview.js';
import { type Grouped, type GroupName, isByPart, type Row } from './grouping.js';

/** At most. */
const BAR_COLUMNS = 20;
/** What a name needs so that one can tell it from others. */
const MIN_NAME_COLUMNS: { readonly [by in GroupName]?: number } = {
  session: '01234567  2026-10-01 12:00'.length,
  prompt: '01234567 turn 12  2026-10-01 12:00  and its beginning'.length,
};
const PROMPT_COLUMNS = 60;
/** There is one row for each prompt. */
const MOST_PROMPTS = 30;

export const NOT_BILLED = 'you are logged in with a subscription, which does not bill these dollars';

/** What the dollars rest on. */
interface Basis {
  /** Where list prices come from. */
  readonly source: string;
  /** Whether today's login does not bill dollars. */
  readonly isSubscription: boolean;
}

/** Draws one row for each group, the heading above and the sum below, and a bar where there is room. */
export function renderTable(by: GroupName, { rows: all, total }: Grouped, { isSubscription }: Basis): string[] {
  const rows = by === 'prompt' ? all.slice(0, MOST_PROMPTS) : all;
  const names = [by, ...rows.map((row) => nameRow(by, row)), 'total'];
  const { lines, left } = drawColumns(names, listColumns([...rows.map(({ costs }) => costs), total], isSubscription), {
    minNameColumns: MIN_NAME_COLUMNS[by],
    fitName: (name, width) => fitName(name, width, by),
  });
  const most = Math.max(...rows.map(({ costs }) => weigh(costs, total)));
  const bar = Math.min(BAR_COLUMNS, left - 2);
  return lines.map((line, index) => {
    const row = rows[index - 1];
    if (!row) return style('bold', line.trimEnd());
    const drawn = bar < 4 ? '' : drawBar(weigh(row.costs, total), most, bar);
    return drawn === '' ? line.trimEnd() : `${line}  ${style('cyan', drawn)}`;
  });
}

/** The last of all is the total. */
function listColumns(all: readonly Costs[], isSubscription: boolean): Column[] {
  const column = (heading: string, show: (costs: Costs) => string): Column => ({ heading, cells: all.map(show) });
  const hasAgents = all.some(({ agentTokens }) => agentTokens > 0);
  return [
    column(isSubscription ? 'API value' : 'dollars', showDollars),
    column('tokens', ({ used }) => formatCount(countTokens(used))),
    ...(hasAgents ? [column('subagents', showAgentShare)] : []),
    column('output', ({ used }) => formatCount(used.output)),
    column('cache read', ({ used }) => formatCount(used.cache_read_input_tokens)),
  ];
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

export function nameRow(by: GroupName, row: Row): string {
  const { key, session, turn } = row;
  const { startedAt, folder } = session;
  if (by === 'prompt' && turn !== undefined) return namePrompt(row);
  if (by === 'session') return `${toOneLine(key).slice(0, 8)}  ${formatMoment(startedAt)}  ${shorten(folder)}`;
  return shorten(key);
}

/** Its text is in the transcript only. */
function namePrompt({ session: { sessionId, path }, turn, promptAt }: Row): string {
  const prompt = promptAt === undefined ? undefined : attempt(() => readPromptAt(path, promptAt));
  const time = prompt?.at === undefined ? '' : `  ${formatMoment(prompt.at)}`;
  return `${toOneLine(sessionId).slice(0, 8)} turn ${turn || '?'}${time}  ${cutToWidth(toOneLine(prompt?.text ?? ''), PROMPT_COLUMNS)}`;
}

function shorten(text: string): string {
  const home = homedir();
  const line = toOneLine(text);
  return line.startsWith(`${home}/`) ? `~${line.slice(home.length)}` : line;
}

/** The end of a path tells more than its beginning. */
function fitName(name: string, width: number, by: GroupName): string {
  const isPath = by === 'project' || by === 'repository' || by === 'branch';
  return isPath ? reverse(cutToWidth(reverse(name), width)) : name;
}

function reverse(text: string): string {
  return [...text].toReversed().join('');
}

/** Says below the table what its figures do not. */
export function describeTotal(by: GroupName, grouped: Grouped, basis: Basis): string[] {
  const { rows, total, exactTokens, modelsWithoutPrice, hasDefaultPrice } = grouped;
  const { cacheSaved, unknownCacheReads, agentTokens, used, listDollars, unpricedTokens } = total;
  const read = unknownCacheReads > 0 && cacheSaved === 0;
  const hidden = by === 'prompt' ? rows.length - MOST_PROMPTS : 0;
  return [
    '',
    hidden > 0 ? `and ${plural(hidden, 'prompt')} more: --json lists all` : undefined,
    isByPart(by)
      ? `the lines of requests say where ${formatShare(exactTokens, countTokens(used))} of the tokens belong; the rest follows from how the context grew`
      : undefined,
    agentTokens > 0 ? `subagents used ${formatShare(agentTokens, countTokens(used))} of the tokens` : undefined,
    cacheSaved !== 0 ? `the cache saved ≈ ${formatDollars(cacheSaved)}, list price` : undefined,
    read ? `${plural(unknownCacheReads, 'token')} were read from the cache; what that saved is not known` : undefined,
    listDollars > 0
      ? `≈ marks tokens that no account of Claude Code includes: ≈ ${formatDollars(listDollars)}, list price`
      : undefined,
    listDollars > 0 || cacheSaved !== 0 ? `prices: ${basis.source}` : undefined,
    unpricedTokens > 0
      ? `+ and ? leave out ${plural(unpricedTokens, 'token')} in no account, of models without a list price: ${[...modelsWithoutPrice].map(toOneLine).toSorted().join(', ')}`
      : undefined,
    basis.isSubscription ? NOT_BILLED : undefined,
    hasDefaultPrice ? 'for a model that it does not know, Claude Code itself takes a default price' : undefined,
  ]
    .filter((line) => line !== undefined)
    .flatMap((line) => wrapToWidth(line))
    .map((line) => style('dim', line));
}
