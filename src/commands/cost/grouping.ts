import { UsageError } from '../../cli/command-line.js';
import { formatDay } from '../../cli/format.js';
import { findMcpServer } from '../../costs/causes/parts.js';
import {
  addUpCosts,
  CLAUDE_CODE,
  type Costs,
  countTokens,
  type Entry,
  listEntries,
  sumDollars,
} from '../../costs/cost-book.js';
import type { FindPrices } from '../../costs/list-prices.js';
import type { PartUse, SessionUsage, TaskUse, Use } from '../../costs/session-usage.js';
import { originName, readRepositoryConfig } from '../../git/repository.js';
import { groupBy } from '../../shared/group-by.js';

/** A row of the table. */
export interface Row {
  readonly key: string;
  readonly costs: Costs;
  /** Its first session. */
  readonly session: SessionUsage;
  /** The number of its turn, if it is a prompt. */
  readonly turn: number | undefined;
}

export interface Grouped {
  readonly entries: readonly Entry[];
  readonly rows: readonly Row[];
}

type Group = (sessions: readonly SessionUsage[], findPrices: FindPrices, since?: number) => Grouped;
type FindKey<T extends Use> = (entry: Entry<T>) => string;

/** By what the costs can be added up. Some finders remember what they have found. */
const GROUPINGS = {
  day: byUse(() => findDay),
  project: byUse(() => findProject),
  session: byUse(
    () =>
      ({ session }) =>
        session.sessionId,
  ),
  model: byUse(
    () =>
      ({ model }) =>
        model,
  ),
  repository: byUse(createRepositoryFinder),
  branch: byUse(() => {
    const findRepository = createRepositoryFinder();
    return (entry) => `${findRepository(entry)} ${entry.branch || '(no branch)'}`;
  }),
  agent: byTask(({ agent }) => agent || '(main thread)'),
  skill: byTask(({ skill }) => skill || '(no skill)'),
  command: byTask(({ command }) => (command ? `/${command}` : '(no command)')),
  prompt: byTask(({ turn }, { sessionId }) => `${sessionId} turn ${turn || '?'}`),
  tool: byPart(({ part }) => part),
  mcp: byPart(({ part }) => findMcpServer(part) ?? '(no MCP server)'),
} satisfies { [name: string]: Group };
export type GroupName = keyof typeof GROUPINGS;

/** Those for which it has to be known what the uses were for. */
const CAUSES: ReadonlySet<GroupName> = new Set<GroupName>(['agent', 'skill', 'command', 'prompt', 'tool', 'mcp']);

export function parseGrouping(text: string): GroupName {
  const names = Object.keys(GROUPINGS) as GroupName[];
  const name = names.find((each) => each === text);
  if (!name) throw new UsageError(`--by ${text}: expected ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`);
  return name;
}

export function needsCauses(by: GroupName): boolean {
  return CAUSES.has(by);
}

export function isByPart(by: GroupName): boolean {
  return by === 'tool' || by === 'mcp';
}

/** How many tokens are attributed by what the lines of requests say. */
export function countExact(entries: readonly Entry[]): number {
  const exact = entries.filter(({ use }) => use && 'isExact' in use && use.isExact);
  return exact.reduce((sum, { used }) => sum + countTokens(used), 0);
}

/** Days in their order; everything else by what it cost, the most expensive first. */
export function groupCosts(by: GroupName, ...args: Parameters<Group>): Grouped {
  const { entries, rows } = GROUPINGS[by](...args);
  const compare = (a: Row, b: Row) => (by === 'day' ? a.key.localeCompare(b.key) : compareCosts(a.costs, b.costs));
  return { entries, rows: rows.toSorted(compare) };
}

function byUse(createFinder: () => FindKey<Use>): Group {
  return (...args) => group(({ uses }) => uses, createFinder(), ...args);
}

function byTask(find: (task: TaskUse, session: SessionUsage) => string): Group {
  const findKey: FindKey<TaskUse> = ({ use, session }) => (use ? find(use, session) : CLAUDE_CODE);
  return (...args) => group(({ causes }) => causes?.tasks ?? [], findKey, ...args);
}

function byPart(find: (part: PartUse) => string): Group {
  const findKey: FindKey<PartUse> = ({ use }) => (use ? find(use) : CLAUDE_CODE);
  return (...args) => group(({ causes }) => causes?.parts ?? [], findKey, ...args);
}

function group<T extends Use>(
  listUses: (session: SessionUsage) => readonly T[],
  findKey: FindKey<T>,
  ...[sessions, findPrices, since = 0]: Parameters<Group>
): Grouped {
  const entries = listEntries(sessions, findPrices, listUses).filter(({ at }) => at >= since);
  const rows = [...groupBy(entries, findKey)].map(([key, [first, ...others]]) => ({
    key,
    costs: addUpCosts([first, ...others]),
    session: first.session,
    turn: first.use && 'turn' in first.use ? Number(first.use.turn) : undefined,
  }));
  return { entries, rows };
}

function findDay({ at }: Entry): string {
  return formatDay(at);
}

function findProject({ session: { folder } }: Entry): string {
  return folder || '(no folder)';
}

/** The name of the repository that the folder belongs to today; the folder itself if there is none, or the folder is gone. */
function createRepositoryFinder(): FindKey<Use> {
  const known = new Map<string, string>();
  return (entry) => {
    const folder = findProject(entry);
    const name = known.get(folder) ?? originName(readRepositoryConfig(folder)) ?? folder;
    known.set(folder, name);
    return name;
  };
}

function compareCosts(a: Costs, b: Costs): number {
  return sumDollars(b) - sumDollars(a) || b.unpricedTokens - a.unpricedTokens;
}
