import { groupBy } from '../shared/group-by.js';
import { TOKEN_KINDS } from '../transcript/file/token-kinds.js';
import { listAllSteps } from './account-steps.js';
import { type FindPrices, findSaving, priceUsed } from './list-prices.js';
import { addUsed, mapUsed, type SessionUsage, type Use, type Used } from './session-usage.js';

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

export interface Entry extends Costs {
  readonly session: SessionUsage;
  /** When it was used; of a step of the account, when the last of it was. */
  readonly at: number;
  /** When the first of it was used. */
  readonly from: number;
  readonly model: string;
  readonly branch: string;
}

const NOTHING: Costs = {
  dollars: 0,
  listDollars: 0,
  unpricedTokens: 0,
  used: mapUsed(() => 0),
  agentTokens: 0,
  cacheSaved: 0,
  unknownCacheReads: 0,
};

/** Lists what the sessions used and what it cost, in the smallest units that are known. */
export function listEntries(sessions: readonly SessionUsage[], findPrices: FindPrices): Entry[] {
  const paid = listAllSteps(sessions).map(({ session, at, from, branch, model, dollars }) => {
    return { ...NOTHING, session, at, from, branch, model, dollars };
  });
  const used = sessions.flatMap((session) =>
    session.uses.map((use) => ({
      ...priceUse(use, findPrices),
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
export function findSessionCosts(sessions: readonly SessionUsage[], findPrices: FindPrices): Map<string, Costs> {
  const bySession = groupBy(listEntries(sessions, findPrices), ({ session }) => session.sessionId);
  return new Map([...bySession].map(([id, entries]) => [id, addUpCosts(entries)]));
}

export function addUpCosts(entries: readonly Costs[]): Costs {
  return entries.reduce(
    (sum, entry) => ({
      dollars: sum.dollars + entry.dollars,
      listDollars: sum.listDollars + entry.listDollars,
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

function priceUse(use: Use, findPrices: FindPrices): Costs {
  const { used, isAgent, isInAccount } = use;
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
