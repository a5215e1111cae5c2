import { groupBy } from '../shared/group-by.js';
import { COUNTED_KINDS, type CountedKind } from '../transcript/sessions/cost-account.js';
import type { PricedStep } from './account-steps.js';
import { type Equation, type Solution, solve } from './linear-system.js';
import { findPriceFactor, MILLION } from './list-prices.js';

/** What the accounts of some sessions say about the prices of a model, in fast mode or not. */
export interface LearnedPrices {
  readonly model: string;
  readonly isFast: boolean;
  readonly steps: number;
  /** Whether the model ran in the US in some of them, and elsewhere in others. */
  readonly isSeenInUs: boolean;
  readonly isSeenElsewhere: boolean;
  /** Steps that do not fit the others: they cost more, or less, than their counts say. */
  readonly misfits: number;
  /** By how much of its dollars the worst of the steps that fit differs. */
  readonly deviation: number;
  /** Outside the US. Undefined if too many steps do not fit: then the cost does not follow from the counts. */
  readonly prices: { readonly [kind in CountedKind]: LearnedPrice } | undefined;
}

export type LearnedPrice =
  /** In dollars for one. */
  | { readonly state: 'known'; readonly price: number }
  | { readonly state: 'unknown'; readonly reason: string }
  | { readonly state: 'unused' };

/** Rounding in Claude Code's sums. Anything that costs differently differs by far more. */
const TOLERANCE = 1e-9;
const ROUNDING = 1e-15;
/** More misfits than this part of all steps, and none of the prices can be trusted. */
const MOST_MISFITS = 0.1;
/** One at a time would take too long with thousands of steps. */
const REMOVED_AT_ONCE = 0.0025;
/** A price that may be off by more than this part of it is not known. */
const LARGEST_ERROR = 1e-6;

/** So that all counts are whole numbers. */
const SCALE = 10;

/** Learns the prices of each model, in fast mode and outside of it. */
export function learnPrices(steps: readonly PricedStep[]): LearnedPrices[] {
  const groups = groupBy(steps, ({ model, isFast }) => `${model} ${isFast}`);
  return [...groups].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => learnGroup(group));
}

function learnGroup(steps: readonly [PricedStep, ...PricedStep[]]): LearnedPrices {
  const [{ model, isFast }] = steps;
  const isSeenInUs = steps.some(({ isInUs }) => isInUs);
  const isSeenElsewhere = steps.some(({ isInUs }) => !isInUs);
  const equations = removeRepeated(steps);
  const all = equations.length;
  const { solution, fitting } = removeMisfits(equations);
  const misfits = all - fitting.length;
  const deviation = fitting.reduce(
    (most, { value }, i) => Math.max(most, Math.abs((solution.residuals[i] ?? 0) / (value || 1))),
    0,
  );
  const learned = { model, isFast, steps: all, isSeenInUs, isSeenElsewhere, misfits, deviation };
  if (misfits > all * MOST_MISFITS) return { ...learned, prices: undefined };
  const prices = Object.fromEntries(COUNTED_KINDS.map((kind, index) => [kind, describeUnknown(solution, index)]));
  return { ...learned, prices: prices as LearnedPrices['prices'] };
}

/** What a fork repeats of its parent's account would seem to confirm itself. */
function removeRepeated(steps: readonly PricedStep[]): Equation[] {
  const equations = new Map<string, Equation>();
  const points = new Set<string>();
  for (const step of steps) {
    if (points.has(step.point)) continue;
    points.add(step.point);
    const equation = toEquation(step);
    const key = equation.counts.join(' ');
    const known = equations.get(key);
    if (!known || !isWithinTolerance(known.value - equation.value, equation))
      equations.set(known ? `${key} ${equation.value}` : key, equation);
  }
  return [...equations.values()];
}

/** What ran in the US counts as so many more tokens: then all steps have the same prices. */
function toEquation({ counts, dollars, sum, isInUs }: PricedStep): Equation {
  const times = (kind: CountedKind) => Math.round(SCALE * findPriceFactor(kind, isInUs));
  return {
    counts: COUNTED_KINDS.map((kind) => counts[kind] * times(kind)),
    value: dollars * SCALE,
    error: sum * SCALE * ROUNDING,
  };
}

/** Leaves out the steps that fit worst, a few at a time, until the others fit, or too many are left out. */
function removeMisfits(all: readonly Equation[]): { solution: Solution; fitting: readonly Equation[] } {
  const atOnce = Math.ceil(all.length * REMOVED_AT_ONCE);
  let fitting = all;
  for (;;) {
    const solution = solve(fitting, COUNTED_KINDS.length);
    const worst = findMisfits(fitting, solution.residuals).slice(0, atOnce);
    if (worst.length === 0 || all.length - fitting.length > all.length * MOST_MISFITS) return { solution, fitting };
    fitting = fitting.filter((equation) => !worst.includes(equation));
  }
}

/** Finds the equations that do not fit, the worst first. */
function findMisfits(equations: readonly Equation[], residuals: readonly number[]): Equation[] {
  return equations
    .map((equation, index) => ({ equation, residual: Math.abs(residuals[index] ?? 0) }))
    .filter(({ equation, residual }) => !isWithinTolerance(residual, equation))
    .toSorted((a, b) => b.residual - a.residual)
    .map(({ equation }) => equation);
}

function isWithinTolerance(difference: number, { value, error }: Equation): boolean {
  return Math.abs(difference) <= Math.max(value * TOLERANCE, error * 100);
}

function describeUnknown({ unknowns }: Solution, index: number): LearnedPrice {
  const unknown = unknowns[index];
  if (!unknown || unknown.state === 'absent') return { state: 'unused' };
  if (unknown.state === 'unchecked') return { state: 'unknown', reason: 'nothing confirms it yet' };
  if (unknown.state === 'entangled') {
    const others = unknown.others.map((other) => KIND_NAMES[COUNTED_KINDS[other] ?? 'input']);
    return { state: 'unknown', reason: `the sessions cannot separate it from ${others.join('; ')}` };
  }
  const { value, error } = unknown;
  if (value < 0 || error > value * LARGEST_ERROR) return { state: 'unknown', reason: 'not exact enough' };
  return { state: 'known', price: roundWithin(value * MILLION, error * MILLION) / MILLION };
}

/** Lists the kinds whose price is known, with it. */
export function listKnownPrices({ prices }: Pick<LearnedPrices, 'prices'>): (readonly [CountedKind, number])[] {
  return COUNTED_KINDS.flatMap((kind) => {
    const price = prices?.[kind];
    return price?.state === 'known' ? [[kind, price.price] as const] : [];
  });
}

export const KIND_NAMES: { readonly [kind in CountedKind]: string } = {
  input: 'input',
  output: 'output',
  cache_read_input_tokens: 'cache read',
  input_cache_creation_5m: 'cache write, 5 minutes',
  input_cache_creation_1h: 'cache write, 1 hour',
  web_search_requests: 'web search',
};

/** Returns the shortest decimal number that may be the value. */
function roundWithin(value: number, error: number): number {
  const margin = Math.max(error, value * ROUNDING);
  for (let digits = 0; digits <= 9; digits += 1) {
    const rounded = Number(value.toFixed(digits));
    if (Math.abs(rounded - value) <= margin) return rounded;
  }
  return value;
}
