/** An equation: the sum of `counts[i] * x[i]` is `value`, which is wrong by at most `error`. */
export interface Equation {
  readonly counts: readonly number[];
  readonly value: number;
  readonly error: number;
}

export interface Solution {
  /** For each unknown: its value and how far it may be off, if the equations determine it. */
  readonly unknowns: readonly Unknown[];
  /** By how much the value of each equation differs from what the unknowns say. */
  readonly residuals: readonly number[];
}

type Unknown =
  | { readonly state: 'determined'; readonly value: number; readonly error: number }
  /** Only one equation decides about it, so nothing checks it. */
  | { readonly state: 'unchecked' }
  /** It cannot be told apart from these other unknowns. */
  | { readonly state: 'entangled'; readonly others: readonly number[] }
  /** It is in no equation. */
  | { readonly state: 'absent' };

/** Values are counted in units of 1e-18: a double that is not far from 1 has no finer digits. */
const UNITS = 1e18;
const RATIO_DIGITS = 40n;

/**
 * Solves a system of equations by least squares. The counts are whole numbers, so what is determined, and what is not, is found
 * exactly: with rounded numbers two columns that differ by one count in a million would look the same, or would not.
 */
export function solve(equations: readonly Equation[], size: number): Solution {
  const rows = equations.map(({ counts, value }) => ({
    counts: counts.map((count) => BigInt(count)),
    value: BigInt(Math.round(value * UNITS)),
  }));
  const { pivots, matrix } = eliminate(normalEquations(rows, size), size);
  const free = indices(size).filter((column) => !pivots.has(column));
  const solved = indices(size).map((column) => solvedRow(pivots.get(column), matrix, column, size));
  const residuals = equations.map(
    ({ counts, value }) => value - counts.reduce((sum, count, i) => sum + count * (solved[i]?.value ?? 0), 0),
  );
  const noise = Math.sqrt(equations.reduce((sum, { error }, i) => sum + (Math.abs(residuals[i] ?? 0) + error) ** 2, 0));
  const forced = rows.filter(({ counts }) => isForced(counts, solved));
  const unknowns = indices(size).map((column): Unknown => {
    const others = findEntangled(column, pivots, matrix, free);
    if (others.length > 0) return { state: 'entangled', others };
    const row = solved[column];
    if (!row) return { state: 'absent' };
    if (forced.some(({ counts }) => weigh(row, counts) !== 0n)) return { state: 'unchecked' };
    return { state: 'determined', value: row.value, error: Math.sqrt(row.variance) * noise };
  });
  return { unknowns, residuals };
}

type Matrix = bigint[][];

/** The normal equations, with their right side and, to see what each step did, the identity. */
function normalEquations(rows: readonly { counts: readonly bigint[]; value: bigint }[], size: number): Matrix {
  const matrix = indices(size).map((i) => [
    ...indices(size + 1).map(() => 0n),
    ...indices(size).map((j) => (i === j ? 1n : 0n)),
  ]);
  for (const { counts, value } of rows)
    for (const [i, row] of matrix.entries()) {
      const count = counts[i] ?? 0n;
      if (count === 0n) continue;
      for (let j = 0; j < size; j += 1) row[j] = (row[j] ?? 0n) + count * (counts[j] ?? 0n);
      row[size] = (row[size] ?? 0n) + count * value;
    }
  return matrix;
}

/** Brings the matrix to reduced row echelon form, up to a factor for each row. Returns the row of each pivot's column. */
function eliminate(matrix: Matrix, size: number): { pivots: Map<number, number>; matrix: Matrix } {
  const pivots = new Map<number, number>();
  let rows = matrix;
  for (let column = 0; column < size; column += 1) {
    const at = rows.findIndex((row, index) => row[column] !== 0n && ![...pivots.values()].includes(index));
    const pivot = rows[at];
    if (!pivot) continue;
    pivots.set(column, at);
    rows = rows.map((row, index) => (index === at ? row : subtractMultiple(row, pivot, column)));
  }
  return { pivots, matrix: rows };
}

function subtractMultiple(row: readonly bigint[], pivot: readonly bigint[], column: number): bigint[] {
  const [own, other] = [row[column] ?? 0n, pivot[column] ?? 0n];
  if (own === 0n) return [...row];
  const combined = row.map((value, j) => value * other - (pivot[j] ?? 0n) * own);
  const divisor = combined.reduce(findDivisor, 0n);
  return divisor > 1n ? combined.map((value) => value / divisor) : combined;
}

function findDivisor(a: bigint, b: bigint): bigint {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y > 0n) [x, y] = [y, x % y];
  return x;
}

interface SolvedRow {
  readonly pivot: bigint;
  readonly value: number;
  /** The unknown is this combination of the normal equations, divided by `pivot`. */
  readonly combination: readonly bigint[];
  readonly variance: number;
  readonly column: number;
}

/** The value of an unknown if all free ones are 0. */
function solvedRow(index: number | undefined, matrix: Matrix, column: number, size: number): SolvedRow | undefined {
  const row = index === undefined ? undefined : matrix[index];
  if (!row) return undefined;
  const pivot = row[column] ?? 1n;
  const combination = row.slice(size + 1);
  const value = divide(row[size] ?? 0n, pivot) / UNITS;
  return { pivot, value, combination, variance: divide(combination[column] ?? 0n, pivot), column };
}

function divide(a: bigint, b: bigint): number {
  return Number((a * 10n ** RATIO_DIGITS) / b) / 10 ** Number(RATIO_DIGITS);
}

/** How much an equation contributes to an unknown, up to a factor. */
function weigh({ combination }: SolvedRow, counts: readonly bigint[]): bigint {
  return combination.reduce((sum, factor, j) => sum + factor * (counts[j] ?? 0n), 0n);
}

/** Whether the solution fits this equation whatever its value is: its leverage is 1. */
function isForced(counts: readonly bigint[], solved: readonly (SolvedRow | undefined)[]): boolean {
  let [numerator, denominator] = [0n, 1n];
  for (const row of solved) {
    if (!row) continue;
    numerator = numerator * row.pivot + (counts[row.column] ?? 0n) * weigh(row, counts) * denominator;
    denominator *= row.pivot;
  }
  return numerator === denominator;
}

/** The unknowns that can change together with this one without changing any equation. */
function findEntangled(column: number, pivots: Map<number, number>, matrix: Matrix, free: readonly number[]): number[] {
  const moves = free.map((at) => [at, ...[...pivots].flatMap(([of, row]) => (matrix[row]?.[at] === 0n ? [] : [of]))]);
  const together = new Set([column]);
  for (let before = 0; before < together.size; ) {
    before = together.size;
    for (const move of moves) if (move.some((at) => together.has(at))) for (const at of move) together.add(at);
  }
  return [...together].filter((at) => at !== column).toSorted((a, b) => a - b);
}

function indices(size: number): number[] {
  return Array.from({ length: size }, (_, index) => index);
}
