import { UsageError } from '../../cli/command-line.js';
import { formatMoment } from '../../cli/format.js';
import { addUpCosts, type Costs, type Entry } from '../../costs/cost-book.js';
import { originName, readRepositoryConfig } from '../../git/repository.js';
import { groupBy } from '../../shared/group-by.js';

/** A row of the table. */
export interface Row {
  readonly key: string;
  readonly costs: Costs;
  /** Of its first session. */
  readonly startedAt: number;
  readonly folder: string;
}

type FindKey = (entry: Entry) => string;

/** By what the costs can be added up. Each returns a function, so that it can remember what it has found. */
const GROUPINGS = {
  day: () => findDay,
  project: () => findProject,
  session:
    () =>
    ({ session }: Entry) =>
      session.sessionId,
  model:
    () =>
    ({ model }: Entry) =>
      model,
  repository: createRepositoryFinder,
  branch: () => {
    const findRepository = createRepositoryFinder();
    return (entry: Entry) => `${findRepository(entry)} ${entry.branch || '(no branch)'}`;
  },
} satisfies { [name: string]: () => FindKey };
export type GroupName = keyof typeof GROUPINGS;

export function parseGrouping(text: string): GroupName {
  const names = Object.keys(GROUPINGS) as GroupName[];
  const name = names.find((each) => each === text);
  if (!name) throw new UsageError(`--by ${text}: expected ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`);
  return name;
}

/** Days in their order; everything else by what it cost, the most expensive first. */
export function groupEntries(entries: readonly Entry[], by: GroupName): Row[] {
  const rows = [...groupBy(entries, GROUPINGS[by]())].map(([key, group]) => ({
    key,
    costs: addUpCosts(group),
    startedAt: group[0].session.startedAt,
    folder: group[0].session.folder ?? '',
  }));
  return rows.toSorted((a, b) => (by === 'day' ? a.key.localeCompare(b.key) : compareCosts(a.costs, b.costs)));
}

export function findDay({ at }: Pick<Entry, 'at'>): string {
  return formatMoment(at).slice(0, '2026-11-01'.length);
}

function findProject({ session: { folder } }: Entry): string {
  return folder || '(no folder)';
}

/** The name of the repository that the folder belongs to today; the folder itself if there is none, or the folder is gone. */
function createRepositoryFinder(): FindKey {
  const known = new Map<string, string>();
  return (entry) => {
    const folder = findProject(entry);
    const name = known.get(folder) ?? originName(readRepositoryConfig(folder)) ?? folder;
    known.set(folder, name);
    return name;
  };
}

function compareCosts(a: Costs, b: Costs): number {
  return b.dollars + b.listDollars - (a.dollars + a.listDollars) || b.unpricedTokens - a.unpricedTokens;
}
