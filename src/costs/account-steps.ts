import { nameModel } from '../observations/build/model-name.js';
import { memoize } from '../shared/memoize.js';
import { type AccountStep, findBase, followsFromCounts, listSteps } from '../transcript/sessions/cost-account.js';
import {
  type PlacedPoint,
  PRICE_CHOICES,
  type PriceChoice,
  type SessionUsage,
  STANDARD_PRICES,
  type Use,
} from './session-usage.js';

/** A step of a session's account. */
export interface PlacedStep extends AccountStep {
  readonly session: SessionUsage;
  /** It lasted from after this moment up to `at`. */
  readonly after: number;
  readonly at: number;
  readonly branch: string;
  /** The first and the last line of the account whose uses it paid for. */
  readonly firstPoint: number;
  readonly lastPoint: number;
}

/** A step in which everything was paid for at the same prices. */
export interface PricedStep extends PlacedStep, PriceChoice {}

/** Lists the steps of a session's account that are its own; a fork goes on with the account of its parent. */
export function listAccountSteps(session: SessionUsage, byId: ReadonlyMap<string, SessionUsage>): PlacedStep[] {
  const inherited = listInherited(session, byId);
  const earlier = inherited.map(({ point }) => point);
  return session.points.flatMap(({ point, at, branch }, index) => {
    const base = findBase(point, earlier);
    const steps = listSteps(point, earlier[base]);
    earlier.push(point);
    const firstPoint = base < inherited.length ? index : base - inherited.length + 1;
    const after = session.points[firstPoint - 1]?.at ?? Number.NEGATIVE_INFINITY;
    const place = { session, after, at, branch, firstPoint, lastPoint: index };
    return steps.map((step) => ({ ...step, ...place, model: nameModel(step.model) }));
  });
}

/** Lists what belongs to a step, of what belongs to each line of the account. */
export function listOfStep<T>(
  byPoint: ReadonlyMap<Use['point'], readonly T[]>,
  { firstPoint, lastPoint }: Pick<PlacedStep, 'firstPoint' | 'lastPoint'>,
): T[] {
  return Array.from({ length: lastPoint - firstPoint + 1 }, (_, index) => byPoint.get(firstPoint + index) ?? []).flat();
}

/** What the accounts of the sessions from which one was forked said until then, the oldest first. */
function listInherited(session: SessionUsage, byId: ReadonlyMap<string, SessionUsage>): PlacedPoint[] {
  const points: PlacedPoint[] = [];
  const visited = new Set([session.sessionId]);
  let { parent, ownFrom } = session;
  while (parent !== undefined && !visited.has(parent)) {
    visited.add(parent);
    const until = ownFrom;
    const above = byId.get(parent);
    points.unshift(...(above?.points ?? []).filter(({ at }) => at <= until));
    parent = above?.parent;
    ownFrom = above?.ownFrom ?? ownFrom;
  }
  return points;
}

/** Lists the steps of all sessions' accounts. */
export function listAllSteps(sessions: readonly SessionUsage[]): PlacedStep[] {
  const byId = new Map(sessions.map((session) => [session.sessionId, session]));
  return sessions.flatMap((session) => listAccountSteps(session, byId));
}

/** Selects the steps whose cost follows from their counts, and adds at which prices. */
export function selectPricedSteps(steps: readonly PlacedStep[]): PricedStep[] {
  const findChoice = memoize(findPriceChoice, ({ session, model }) => `${session.path} ${model}`);
  return steps.flatMap((step) => {
    const choice = followsFromCounts(step) ? findChoice(step) : undefined;
    return choice ? [{ ...step, ...choice }] : [];
  });
}

/** Whether Claude Code took a default price for a model that it does not know. */
export function hasDefaultPrice({ points }: SessionUsage): boolean {
  return points.some(({ point }) => point.hasDefaultPrice);
}

/**
 * Finds the prices of a step: those of the model's responses in its session. Undefined if they had different ones, and for a model
 * without a response, which Claude Code asked for itself, unless all others had the standard prices.
 */
function findPriceChoice({ model, session }: PlacedStep): PriceChoice | undefined {
  if (hasDefaultPrice(session)) return undefined;
  const counted = session.uses.filter(({ point }) => point !== undefined);
  const own = counted.filter((use) => use.model === model);
  const [choice = STANDARD_PRICES, ...others] = own.length > 0 ? own : counted;
  const isSame = others.every((use) => PRICE_CHOICES.every((name) => use[name] === choice[name]));
  const isKnown = own.length > 0 || PRICE_CHOICES.every((name) => !choice[name]);
  return isSame && isKnown ? { isFast: choice.isFast, isInUs: choice.isInUs } : undefined;
}
