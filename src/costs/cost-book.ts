import { groupBy } from '../shared/group-by.js';
import { TOKEN_KINDS } from '../transcript/file/token-kinds.js';
import { listAllSteps, listOfStep, type PlacedStep } from './account-steps.js';
import { type FindPrices, findSaving, type KindPrices, type Priced, priceUsed } from './list-prices.js';
import { mapUsed, type SessionUsage, STANDARD_PRICES, USED_KINDS, type Use, type Used } from './session-usage.js';

/** What something cost, or a sum of that. */
export interface Costs {
  /** From Claude Code's own accounts. */
  readonly dollars: number;
  /** For what no account includes: its tokens at list prices. */
  readonly listDollars: number;
  /** Tokens that are in no account, of models that have no list price. */
  readonly unpricedTokens: number;
  readonly used: Used;
  readonly agentTokens: number;
  /** At list prices: what the cached tokens would have cost as input, minus what they cost. */
  readonly cacheSaved: number;
  /** Cache reads whose saving is unknown. */
  readonly unknownCacheReads: number;
}

/** The name of what an account has beyond all responses: titles, compactions, side queries. */
export const CLAUDE_CODE = '(Claude Code itself)';

export interface Entry<T extends Use = Use> extends Costs {
  readonly session: SessionUsage;
  readonly at: number;
  readonly model: string;
  readonly branch: string;
  /** Undefined for what Claude Code asked for itself, such as titles and compactions: only the account says that. */
  readonly use: T | undefined;
}

const NOTHING = {
  dollars: 0,
  listDollars: 0,
  unpricedTokens: 0,
  used: mapUsed(() => 0),
  agentTokens: 0,
  cacheSaved: 0,
  unknownCacheReads: 0,
} satisfies Costs;

/** Lists what the sessions used and what it cost, in the units of one of their lists: one session after the other, to save memory. */
export function* listEntries<T extends Use>(
  sessions: readonly SessionUsage[],
  findPrices: FindPrices,
  listUses: (session: SessionUsage) => readonly T[],
): Generator<Entry<T>, void, undefined> {
  const steps = groupBy(listAllSteps(sessions), ({ session }) => session);
  for (const session of sessions) {
    const uses = listUses(session);
    const byPoint = groupBy(uses, ({ point }) => point);
    const dollarsOf = new Map<Use, number>();
    for (const step of steps.get(session) ?? []) {
      const { at, branch, model } = step;
      const own = listOfStep(byPoint, step).filter((use) => use.model === model);
      for (const { use, dollars } of shareDollars(step, own, findPrices))
        if (use) dollarsOf.set(use, dollars + (dollarsOf.get(use) ?? 0));
        else yield { ...NOTHING, session, at, branch, model, dollars, use };
    }
    for (const use of uses) {
      const { at, branch, model } = use;
      yield { ...priceUse(use, findPrices), dollars: dollarsOf.get(use) ?? 0, session, at, branch, model, use };
    }
  }
}

/** Shares the dollars of a step of the account by list prices. What no response has used, Claude Code has asked for itself. */
function shareDollars<T extends Use>(step: PlacedStep, uses: readonly T[], findPrices: FindPrices) {
  const { model, at, counts } = step;
  const rest = mapUsed((kind) => {
    const counted = kind === 'cache_creation_input_tokens' ? 0 : counts[kind];
    const left = uses.reduce((sum, { used }) => sum - used[kind], counted);
    return Math.max(0, left);
  });
  const weigh = (used: Used, priced: Priced) => priceUsed(used, findRatios(findPrices(priced)));
  const [{ isFast, isInUs } = STANDARD_PRICES] = uses;
  const own = { use: undefined, weight: weigh(rest, { model, at, isFast, isInUs }) };
  const weighed = [...uses.map((use) => ({ use, weight: weigh(use.used, use) })), own];
  const total = weighed.reduce((sum, { weight }) => sum + weight, 0);
  if (total === 0) return [{ use: undefined, dollars: step.dollars }];
  return weighed
    .filter(({ weight }) => weight > 0)
    .map(({ use, weight }) => ({ use, dollars: (step.dollars * weight) / total }));
}

/** A user's Langfuse can say that a model costs nothing, but Claude Code's account does not. */
export function findRatios(prices: KindPrices = USUAL_RATIOS): KindPrices {
  return TOKEN_KINDS.some((kind) => prices[kind] > 0) ? prices : USUAL_RATIOS;
}

/** How the prices of most models relate to each other. */
const USUAL_RATIOS: KindPrices = {
  input: 1,
  output: 5,
  cache_read_input_tokens: 0.1,
  cache_creation_input_tokens: 1.25,
  input_cache_creation_5m: 1.25,
  input_cache_creation_1h: 2,
  web_search_requests: 2_000,
};

/** What each session cost, by its id. */
export function findSessionCosts(sessions: readonly SessionUsage[], findPrices: FindPrices): Map<string, Costs> {
  const sums = new Map<string, CostSum>();
  for (const entry of listEntries(sessions, findPrices, ({ uses }) => uses)) {
    const { sessionId } = entry.session;
    sums.set(sessionId, (sums.get(sessionId) ?? new CostSum()).add(entry));
  }
  return new Map([...sums].map(([id, { costs }]) => [id, costs]));
}

/** Costs that are added up one after the other. */
export class CostSum {
  readonly #sum = { ...NOTHING, used: { ...NOTHING.used } };

  get costs(): Costs {
    return this.#sum;
  }

  add({ used, ...costs }: Costs): this {
    for (const kind of USED_KINDS) this.#sum.used[kind] += used[kind];
    for (const name of FIGURES) this.#sum[name] += costs[name];
    return this;
  }
}

const { used: _, ...NO_FIGURES } = NOTHING;
const FIGURES = Object.keys(NO_FIGURES) as (keyof typeof NO_FIGURES)[];

export function addUpCosts(entries: Iterable<Costs>): Costs {
  const sum = new CostSum();
  for (const entry of entries) sum.add(entry);
  return sum.costs;
}

/** The dollars of the accounts and of the list prices together: to compare, not to show. */
export function sumDollars({ dollars, listDollars }: Costs): number {
  return dollars + listDollars;
}

export function countTokens(used: Used): number {
  return TOKEN_KINDS.reduce((sum, kind) => sum + used[kind], 0);
}

function priceUse(use: Use, findPrices: FindPrices): Costs {
  const { used, isAgent, point } = use;
  const isInAccount = point !== undefined;
  const tokens = countTokens(used);
  const prices = findPrices(use);
  return {
    ...NOTHING,
    listDollars: prices && !isInAccount ? priceUsed(used, prices) : 0,
    unpricedTokens: prices || isInAccount ? 0 : tokens,
    used,
    agentTokens: isAgent ? tokens : 0,
    cacheSaved: prices ? findSaving(used, prices) : 0,
    unknownCacheReads: prices ? 0 : used.cache_read_input_tokens,
  };
}
