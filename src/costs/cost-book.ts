import { groupBy } from '../shared/group-by.js';
import { GROUP_OF_KIND, TOKEN_KINDS, type TokenGroup } from '../transcript/file/token-kinds.js';
import { listAllSteps, type PlacedStep, selectPricedSteps } from './account-steps.js';
import { findPriceFactor, learnPrices, listKnownPrices, priceGroup } from './learn-prices.js';
import { addUsed, mapUsed, type SessionUsage, USED_KINDS, type Use, type Used } from './session-usage.js';

/** What something cost, or a sum of that. */
export interface Costs {
  /** From Claude Code's own accounts. */
  readonly dollars: number;
  /** For what no account includes: its tokens at the prices that the accounts of other sessions confirm. */
  readonly learntDollars: number;
  /** Tokens that are in no account and have no known price. */
  readonly unpricedTokens: number;
  readonly used: Used;
  readonly agentTokens: number;
  /** At learnt prices: what the cached tokens would have cost as input, minus what they cost. */
  readonly cacheSaved: number;
  /** Cache reads whose saving is unknown. */
  readonly unknownCacheReads: number;
}

export interface Entry extends Costs {
  readonly session: SessionUsage;
  /** When it was used; of a step of the account, when the last of it was. */
  readonly at: number;
  /** When the first of it was used. */
  readonly from: number;
  readonly model: string;
  readonly branch: string;
}

type Prices = ReadonlyMap<string, ReadonlyMap<string, number>>;

const NOTHING: Costs = {
  dollars: 0,
  learntDollars: 0,
  unpricedTokens: 0,
  used: mapUsed(() => 0),
  agentTokens: 0,
  cacheSaved: 0,
  unknownCacheReads: 0,
};

/** Lists what the sessions used and what it cost, in the smallest units that are known. */
export function listEntries(sessions: readonly SessionUsage[]): Entry[] {
  const steps = listAllSteps(sessions);
  const prices = learnKnownPrices(steps);
  const paid = steps.map(({ session, at, from, branch, model, dollars }) => {
    return { ...NOTHING, session, at, from, branch, model, dollars };
  });
  const used = sessions.flatMap((session) =>
    session.uses.map((use) => ({
      ...priceUse(use, prices),
      session,
      at: use.at,
      from: use.at,
      branch: use.branch,
      model: use.model,
    })),
  );
  return [...paid, ...used];
}

/** What each session cost, by its id. */
export function findSessionCosts(sessions: readonly SessionUsage[]): Map<string, Costs> {
  const bySession = groupBy(listEntries(sessions), ({ session }) => session.sessionId);
  return new Map([...bySession].map(([id, entries]) => [id, addUpCosts(entries)]));
}

export function addUpCosts(entries: readonly Costs[]): Costs {
  return entries.reduce(
    (sum, entry) => ({
      dollars: sum.dollars + entry.dollars,
      learntDollars: sum.learntDollars + entry.learntDollars,
      unpricedTokens: sum.unpricedTokens + entry.unpricedTokens,
      used: addUsed(sum.used, entry.used),
      agentTokens: sum.agentTokens + entry.agentTokens,
      cacheSaved: sum.cacheSaved + entry.cacheSaved,
      unknownCacheReads: sum.unknownCacheReads + entry.unknownCacheReads,
    }),
    NOTHING,
  );
}

export function countTokens(used: Used): number {
  return TOKEN_KINDS.reduce((sum, kind) => sum + used[kind], 0);
}

/** Of each model. To find those that do not fit among thousands of steps takes seconds. */
const STEPS_TO_LEARN_FROM = 500;

/** As in `prices`, but from the newest steps. */
function learnKnownPrices(steps: readonly PlacedStep[]): Prices {
  const counts = new Map<string, number>();
  const newest = selectPricedSteps(steps)
    .toSorted((a, b) => b.at - a.at)
    .filter((step) => {
      const count = (counts.get(priceGroup(step)) ?? 0) + 1;
      counts.set(priceGroup(step), count);
      return count <= STEPS_TO_LEARN_FROM;
    });
  return new Map(learnPrices(newest).map((learned) => [priceGroup(learned), new Map(listKnownPrices(learned))]));
}

function priceUse(use: Use, prices: Prices): Costs {
  const { used, isAgent, isInAccount } = use;
  const tokens = countTokens(used);
  const known = prices.get(priceGroup(use));
  const learnt = isInAccount ? 0 : findPrice(use, known);
  const saved = findSaving(use, known);
  return {
    ...NOTHING,
    learntDollars: learnt ?? 0,
    unpricedTokens: learnt === undefined ? tokens : 0,
    used,
    agentTokens: isAgent ? tokens : 0,
    cacheSaved: saved ?? 0,
    unknownCacheReads: saved === undefined ? used.cache_read_input_tokens : 0,
  };
}

/** Undefined if the price of anything that was used is not known. */
function findPrice({ used, isInUs }: Use, prices: ReadonlyMap<string, number> | undefined): number | undefined {
  let dollars = 0;
  for (const kind of USED_KINDS.filter((each) => used[each] > 0)) {
    const price = prices?.get(kind);
    if (price === undefined) return undefined;
    dollars += used[kind] * price * findPriceFactor(kind, isInUs);
  }
  return dollars;
}

const IS_CACHED = { input: false, output: false, cacheRead: true, cacheWritten: true } satisfies {
  readonly [group in TokenGroup]: boolean;
};
const CACHED_KINDS = TOKEN_KINDS.filter((kind) => IS_CACHED[GROUP_OF_KIND[kind]]);

function findSaving({ used, isInUs }: Use, prices: ReadonlyMap<string, number> | undefined): number | undefined {
  const input = prices?.get('input');
  let saved = 0;
  for (const kind of CACHED_KINDS.filter((each) => used[each] > 0)) {
    const price = prices?.get(kind);
    if (input === undefined || price === undefined) return undefined;
    saved += used[kind] * (input - price) * findPriceFactor(kind, isInUs);
  }
  return saved;
}
