import { UsageError } from '../../cli/command-line.js';
import { formatDay } from '../../cli/format.js';
import { hasDefaultPrice } from '../../costs/account-steps.js';
import { findMcpServer } from '../../costs/causes/parts.js';
import {
  CLAUDE_CODE,
  CostSum,
  type Costs,
  countTokens,
  type Entry,
  listEntries,
  sumDollars,
} from '../../costs/cost-book.js';
import type { FindPrices } from '../../costs/list-prices.js';
import type { PartUse, SessionUsage, TaskUse, Use } from '../../costs/session-usage.js';
import { originName, readRepositoryConfig } from '../../git/repository.js';
import { memoize } from '../../shared/memoize.js';

/** A row of the table. */
export interface Row {
  readonly key: string;
  readonly costs: Costs;
  /** Its first session. */
  readonly session: SessionUsage;
  /** The number of its turn, if it is a prompt. */
  readonly turn: number | undefined;
  /** The byte of the transcript at which it begins. */
  readonly promptAt: number | undefined;
}

export interface Grouped {
  readonly rows: readonly Row[];
  readonly total: Costs;
  /** How many tokens the lines of requests attribute to a part. */
  readonly exactTokens: number;
  readonly modelsWithoutPrice: ReadonlySet<string>;
  /** Whether Claude Code took a default price for a model that it did not know. */
  readonly hasDefaultPrice: boolean;
}

type Group = (sessions: readonly SessionUsage[], findPrices: FindPrices, since?: number) => Grouped;
type FindKey<T extends Use> = (entry: Entry<T>) => string;

/** A way to add up the costs, and which list of a session it adds up: uses, or what caused them. */
interface Grouping {
  readonly of: 'uses' | 'tasks' | 'parts';
  readonly group: Group;
}

/** The name of the repository that a folder belongs to today; the folder itself if there is none, or the folder is gone. */
const nameRepository = memoize((folder: string) => originName(readRepositoryConfig(folder)) ?? folder);

/** By what the costs can be added up. */
const GROUPINGS = {
  day: byUse(({ at }) => formatDay(at)),
  project: byUse(({ session }) => nameFolder(session)),
  session: byUse(({ session }) => session.sessionId),
  model: byUse(({ model }) => model),
  repository: byUse(({ session }) => nameRepository(nameFolder(session))),
  branch: byUse(({ session, branch }) => `${nameRepository(nameFolder(session))} ${branch || '(no branch)'}`),
  agent: byTask(({ agent }) => agent || '(main thread)'),
  skill: byTask(({ skill }) => skill || '(no skill)'),
  command: byTask(({ command }) => (command ? `/${command}` : '(no command)')),
  prompt: byTask(({ turn }, { sessionId }) => `${sessionId} turn ${turn || '?'}`),
  tool: byPart(({ part }) => part),
  mcp: byPart(({ part }) => findMcpServer(part) ?? '(no MCP server)'),
} satisfies { [name: string]: Grouping };
export type GroupName = keyof typeof GROUPINGS;

export function parseGrouping(text: string): GroupName {
  const names = Object.keys(GROUPINGS) as GroupName[];
  const name = names.find((each) => each === text);
  if (!name) throw new UsageError(`--by ${text}: expected ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`);
  return name;
}

export function needsCauses(by: GroupName): boolean {
  return GROUPINGS[by].of !== 'uses';
}

export function isByPart(by: GroupName): boolean {
  return GROUPINGS[by].of === 'parts';
}

/** Days in their order; everything else by what it cost, the most expensive first. */
export function groupCosts(by: GroupName, ...args: Parameters<Group>): Grouped {
  const grouped = GROUPINGS[by].group(...args);
  const compare = (a: Row, b: Row) => (by === 'day' ? a.key.localeCompare(b.key) : compareCosts(a.costs, b.costs));
  return { ...grouped, rows: grouped.rows.toSorted(compare) };
}

function byUse(findKey: FindKey<Use>): Grouping {
  return { of: 'uses', group: (...args) => group(({ uses }) => uses, findKey, ...args) };
}

function byTask(find: (task: TaskUse, session: SessionUsage) => string): Grouping {
  const findKey: FindKey<TaskUse> = ({ use, session }) => (use ? find(use, session) : CLAUDE_CODE);
  return { of: 'tasks', group: (...args) => group(({ causes }) => causes?.tasks ?? [], findKey, ...args) };
}

function byPart(find: (part: PartUse) => string): Grouping {
  const findKey: FindKey<PartUse> = ({ use }) => (use ? find(use) : CLAUDE_CODE);
  return { of: 'parts', group: (...args) => group(({ causes }) => causes?.parts ?? [], findKey, ...args) };
}

function group<T extends Use>(
  listUses: (session: SessionUsage) => readonly T[],
  findKey: FindKey<T>,
  ...[sessions, findPrices, since = 0]: Parameters<Group>
): Grouped {
  const rows = new Map<string, Omit<Row, 'costs'> & { readonly sum: CostSum }>();
  const total = new CostSum();
  const modelsWithoutPrice = new Set<string>();
  const counted = new Set<SessionUsage>();
  let exactTokens = 0;
  for (const entry of listEntries(sessions, findPrices, listUses)) {
    const { session, use, used, model, unpricedTokens, at } = entry;
    if (at < since) continue;
    const key = findKey(entry);
    const { turn, promptAt, isExact = false }: Partial<TaskUse & PartUse> = use ?? {};
    const row = rows.get(key) ?? { key, session, turn, promptAt, sum: new CostSum() };
    rows.set(key, row);
    row.sum.add(entry);
    total.add(entry);
    if (unpricedTokens > 0) modelsWithoutPrice.add(model);
    if (isExact) exactTokens += countTokens(used);
    counted.add(session);
  }
  return {
    rows: [...rows.values()].map(({ sum, ...row }) => ({ ...row, costs: sum.costs })),
    total: total.costs,
    exactTokens,
    modelsWithoutPrice,
    hasDefaultPrice: [...counted].some(hasDefaultPrice),
  };
}

function nameFolder({ folder }: SessionUsage): string {
  return folder || '(no folder)';
}

function compareCosts(a: Costs, b: Costs): number {
  return sumDollars(b) - sumDollars(a) || b.unpricedTokens - a.unpricedTokens;
}
