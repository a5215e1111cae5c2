import type { ReadObservation } from '../../langfuse/observation-reader.js';
import { groupBy } from '../../shared/group-by.js';
import type { Expected } from './expected.js';

/** What can differ. */
type Difference = 'type' | 'start time' | 'trace' | 'tokens' | 'model' | 'level';

/** An observation that is there more than once. */
export interface Twice {
  readonly expected: Expected;
  /**
   * `unmerged`: Langfuse will merge the rows. `apart`: rows with the same id stay apart, since their times or traces differ. `other id`:
   * the same response is also there under another id.
   */
  readonly how: 'unmerged' | 'apart' | 'other id';
  readonly traceIds: readonly string[];
}

export interface Different {
  readonly expected: Expected;
  readonly fields: readonly Difference[];
  /** Where it is. */
  readonly traceId: string;
}

/** How what Langfuse has compares with what it has to have. */
export interface Comparison {
  /** Those that are there, changed or not. */
  readonly found: readonly Expected[];
  readonly missing: readonly Expected[];
  readonly different: readonly Different[];
  readonly twice: readonly Twice[];
  /** How many more are there. */
  readonly others: number;
  /** Of what is there, in dollars; undefined if Langfuse knows no cost. */
  readonly cost: number | undefined;
  /** The models of responses that have tokens, but no cost. */
  readonly modelsWithoutPrice: readonly string[];
}

/** Compares by the ids of observations. What began at `openSince` or later may belong to a turn that is not over. */
export function compare(
  expected: readonly Expected[],
  rows: readonly ReadObservation[],
  openSince = Number.POSITIVE_INFINITY,
): Comparison {
  const rowsById = groupBy(rows, ({ id }) => id);
  const there = expected.flatMap((each) => {
    const own = rowsById.get(each.id);
    return own ? [{ expected: each, rows: own, row: findClosest(each, own) }] : [];
  });
  const ids = new Set(expected.map(({ id }) => id));
  const byMessage = new Map(expected.flatMap((each) => (each.messageId ? [[each.messageId, each]] : [])));
  const others = rows.filter(({ id, startTime }) => !ids.has(id) && startTime < openSince);
  const again = others.flatMap((row): Twice[] => {
    const same = row.type === 'GENERATION' ? byMessage.get(row.messageId ?? '') : undefined;
    return same ? [{ expected: same, how: 'other id', traceIds: [row.traceId] }] : [];
  });
  const costs = there.flatMap(({ row }) => row.cost ?? []);
  return {
    found: there.map((each) => each.expected),
    missing: expected.filter(({ id }) => !rowsById.has(id)),
    different: there.flatMap(({ expected: own, row }) => {
      const fields = listDifferences(own, row);
      return fields.length > 0 ? [{ expected: own, fields, traceId: row.traceId }] : [];
    }),
    twice: [
      ...there.flatMap(({ expected: own, rows: all }) => (all.length > 1 ? describeRows(own, all) : [])),
      ...again,
    ],
    others: others.length - again.length,
    cost: costs.length > 0 ? costs.reduce((sum, cost) => sum + cost, 0) : undefined,
    modelsWithoutPrice: [
      ...new Set(
        there.flatMap(({ row }) => (row.cost === undefined && countTokens(row.usage) > 0 ? (row.model ?? []) : [])),
      ),
    ],
  };
}

/** Of several rows, which of them is the last is not known. */
function findClosest(expected: Expected, rows: readonly [ReadObservation, ...ReadObservation[]]): ReadObservation {
  const count = (row: ReadObservation) => listDifferences(expected, row).length;
  return rows.reduce((closest, row) => (count(row) < count(closest) ? row : closest));
}

function describeRows(expected: Expected, rows: readonly ReadObservation[]): Twice {
  const how = rows.every((row) => isAtSamePlace(expected, row)) ? 'unmerged' : 'apart';
  return { expected, how, traceIds: [...new Set(rows.map(({ traceId }) => traceId))] };
}

/** Whether a row is one that the observation replaces if it is sent again. */
function isAtSamePlace({ traceId, startTime }: Expected, row: ReadObservation): boolean {
  return row.traceId === traceId && row.startTime === startTime;
}

function listDifferences(expected: Expected, row: ReadObservation): Difference[] {
  const { traceId, startTime, level, model } = expected;
  const checks: readonly [Difference, boolean][] = [
    ['type', isSameType(expected, row)],
    ['start time', row.startTime === startTime],
    ['trace', row.traceId === traceId],
    ['tokens', areSameTokens(expected.usage ?? {}, row.usage)],
    ['model', row.model === model],
    ['level', row.level === undefined || row.level === level],
  ];
  return checks.flatMap(([name, isSame]) => (isSame ? [] : [name]));
}

/** Before August 2025, and by its ingestion API, Langfuse knows agents and tools only as spans. */
function isSameType({ type }: Expected, row: ReadObservation): boolean {
  const isSpan = row.type === 'SPAN' && (type === 'agent' || type === 'tool');
  return isSpan || row.type === type.toUpperCase();
}

function areSameTokens(expected: { readonly [kind: string]: number }, there: ReadObservation['usage']): boolean {
  const hasOnlyTotal = Object.keys(there).every((kind) => kind === 'total');
  const kinds = hasOnlyTotal ? ['total'] : new Set([...Object.keys(expected), ...Object.keys(there)]);
  return [...kinds].every((kind) => (expected[kind] ?? 0) === (there[kind] ?? 0));
}

export function countTokens(usage: { readonly [kind: string]: number } | undefined): number {
  return usage?.total ?? 0;
}
