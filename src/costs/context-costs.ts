import { basename } from 'node:path';
import { groupBy } from '../shared/group-by.js';
import { GROUP_OF_KIND, type TokenGroup } from '../transcript/file/token-kinds.js';
import type { SessionCauses } from './causes/read-causes.js';
import { addUpCosts, CLAUDE_CODE, type Costs, type Entry, findRatios, listEntries, sumDollars } from './cost-book.js';
import { type FindPrices, priceUsed } from './list-prices.js';
import { readCausesWithRelatives } from './read-usage.js';
import { type PartUse, USED_KINDS, type Use, type UsedKind } from './session-usage.js';

/** What a part of a session cost, in dollars of the account or of the price list. */
export interface PartCosts {
  readonly name: string;
  readonly costs: Costs;
  /** Tokens of it in the last request of the main thread. */
  readonly inContext: number;
  /** To send it for the first time, or again if the cache was lost. */
  readonly sent: number;
  /** To read it from the cache with each later request. */
  readonly readAgain: number;
  /** For the model to write it. */
  readonly written: number;
}

/** A request that had to send again what the cache had before. */
export interface CacheLoss {
  readonly at: number;
  /** The number of the turn. */
  readonly turn: number;
  readonly agent: string;
  readonly tokens: number;
  /** What that cost more than reading it from the cache; undefined if the price is not known. */
  readonly dollars: number | undefined;
  readonly pause: number;
  readonly isOtherModel: boolean;
}

export interface ContextCosts {
  readonly sessionId: string;
  readonly costs: Costs;
  readonly parts: readonly PartCosts[];
  readonly losses: readonly CacheLoss[];
}

/** Fewer tokens than this can be missing because of where a request marks what is to be cached. */
const LEAST_LOSS = 1_000;

/** Finds what filled the context of a session, and what that cost. Undefined if the transcript cannot be read. */
export function readContextCosts(path: string, findPrices: FindPrices): ContextCosts | undefined {
  const read = readCausesWithRelatives(path);
  if (!read) return undefined;
  const { sessions, causes, responses } = read;
  const entries = [...listEntries(sessions, findPrices, (session) => session.causes?.parts ?? [])];
  const own = entries.filter(({ session }) => session.path === path);
  const byPart = groupBy(own, ({ use }) => use?.part ?? CLAUDE_CODE);
  const parts = [...byPart].map(([name, group]) => {
    const inContext = causes.context.reduce((sum, part) => sum + (part.name === name ? part.tokens : 0), 0);
    return { name, costs: addUpCosts(group), inContext: Math.round(inContext), ...splitDollars(group, findPrices) };
  });
  return {
    sessionId: basename(path, '.jsonl'),
    costs: addUpCosts(own),
    parts: parts.toSorted((a, b) => sumDollars(b.costs) - sumDollars(a.costs)),
    losses: listLosses(causes, responses, findPrices),
  };
}

type Spent = Pick<PartCosts, 'sent' | 'readAgain' | 'written'>;

const PURPOSES = {
  input: 'sent',
  cacheWritten: 'sent',
  cacheRead: 'readAgain',
  output: 'written',
} as const satisfies { readonly [group in TokenGroup]: keyof Spent };

function findPurpose(kind: UsedKind): keyof Spent {
  return kind === 'web_search_requests' ? 'written' : PURPOSES[GROUP_OF_KIND[kind]];
}

/** Splits what a part cost by what its tokens were used for. */
function splitDollars(entries: readonly Entry<PartUse>[], findPrices: FindPrices): Spent {
  const spent = { sent: 0, readAgain: 0, written: 0 };
  for (const { use, ...costs } of entries) {
    if (!use) continue;
    const prices = findRatios(findPrices(use));
    const times = sumDollars(costs) / priceUsed(use.used, prices);
    for (const kind of USED_KINDS) spent[findPurpose(kind)] += use.used[kind] * prices[kind] * times;
  }
  return spent;
}

function listLosses({ responses }: SessionCauses, uses: ReadonlyMap<string, Use>, findPrices: FindPrices): CacheLoss[] {
  return [...responses].flatMap(([id, { lost, turn, agent }]) => {
    const use = uses.get(id);
    if (!lost || !use || lost.tokens < LEAST_LOSS) return [];
    const { tokens, kind, pause, isOtherModel } = lost;
    const prices = findPrices(use);
    const dollars = prices && tokens * (prices[kind] - prices.cache_read_input_tokens);
    return [{ at: use.at, turn, agent, tokens, dollars, pause, isOtherModel }];
  });
}
