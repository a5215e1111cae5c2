import { nameModel } from '../observations/build/model-name.js';
import { ownValue } from '../shared/json.js';
import { GROUP_OF_KIND, TOKEN_KINDS, type TokenGroup, type TokenKind } from '../transcript/file/token-kinds.js';
import table from './price-table.json' with { type: 'json' };
import { mapUsed, type PriceChoice, USED_KINDS, type Use, type Used, type UsedKind } from './session-usage.js';

/** What decides about the price of one of each kind. */
export interface Priced extends PriceChoice {
  readonly model: string;
  /** In ms since 1970. */
  readonly at: number;
  readonly isLong?: boolean;
}

/** In dollars for one of each kind. */
export type KindPrices = { readonly [kind in UsedKind]: number };

/** Finds what a model costs; undefined if that is not known. */
export type FindPrices = (priced: Priced) => KindPrices | undefined;

/** A price list, and where it comes from. */
export interface PriceList {
  readonly findPrices: FindPrices;
  /** Says where the prices of these come from: `list of 2026-11-20 (Anthropic)`. */
  readonly describe: (priced: readonly Priced[]) => string;
}

/** Dollars for a million of each of the table's kinds, in their order. */
type Row = readonly number[];

interface TableModel {
  readonly standard: Row;
  readonly fast?: Row;
  /** For requests whose prompt has more tokens. */
  readonly longPrompt?: { readonly above: number; readonly prices: Row };
  /** What it cost before some days, the earliest first. */
  readonly earlier?: readonly { readonly until: string; readonly standard: Row }[];
}

const MODELS: { readonly [model: string]: TableModel } = table.models;
export const MILLION = 1_000_000;
/** For one. */
export const WEB_SEARCH = 10 / 1_000;

/** Tokens cost this many times as much if the model must run in the US; a web search does not (documented, and in all recordings). */
export const IN_US_TIMES = 1.1;

/** The prices that come with the program. */
export const PRICE_TABLE: PriceList = { findPrices, describe: () => `list of ${table.date} (${table.source})` };

/** Finds a model's list prices; undefined for a model, or a fast mode, that the list does not have. */
export function findPrices({ model, isFast, isInUs, isLong = false, at }: Priced): KindPrices | undefined {
  const known = findModel(model);
  const standard = known?.earlier?.find(({ until }) => at < Date.parse(until))?.standard ?? known?.standard;
  const row = isFast ? known?.fast : ((isLong ? known?.longPrompt?.prices : undefined) ?? standard);
  return row && toKindPrices(row, isInUs);
}

/** Finds the prices for requests with a long prompt, and how long that is; undefined if the model has none. */
export function findLongPromptPrices({ model, isInUs }: Priced): { above: number; prices: KindPrices } | undefined {
  const long = findModel(model)?.longPrompt;
  return long && { above: long.above, prices: toKindPrices(long.prices, isInUs) };
}

/** Says of what one response used whether its prompt was so long that the model costs more. */
export function markLongPrompt<T extends Use>(use: T): T {
  const above = findModel(use.model)?.longPrompt?.above ?? Number.POSITIVE_INFINITY;
  const isPrompt = (kind: TokenKind) => GROUP_OF_KIND[kind] !== 'output';
  const tokens = TOKEN_KINDS.reduce((sum, kind) => sum + (isPrompt(kind) ? use.used[kind] : 0), 0);
  return tokens > above ? { ...use, isLong: true } : use;
}

function findModel(model: string): TableModel | undefined {
  return ownValue(MODELS, listedName(model));
}

/**
 * The name by which the table has a model: without what platforms and gateways add (`anthropic/claude-opus-4.5`), and without the
 * date of a snapshot, since all snapshots of a model cost the same.
 */
function listedName(model: string): string {
  const name = nameModel(model.toLowerCase().replace(/^anthropic\//, '')).replaceAll('.', '-');
  const undated = name.replace(/-(?:\d{8}|latest)$/, '');
  // Claude 4 is also called 4.0.
  return undated.replace(/^(claude-(?:opus|sonnet)-4)-0$/, '$1');
}

function toKindPrices(row: Row, isInUs: boolean): KindPrices {
  return mapUsed((kind) => {
    if (kind === 'web_search_requests') return WEB_SEARCH;
    // Where a transcript does not say how long cache writes live, they live for 5 minutes, as was usual then.
    const listed = kind === 'cache_creation_input_tokens' ? 'input_cache_creation_5m' : kind;
    return ((row[table.kinds.indexOf(listed)] ?? Number.NaN) / MILLION) * findPriceFactor(kind, isInUs);
  });
}

/** How many times its price one of a kind costs. */
export function findPriceFactor(kind: UsedKind, isInUs: boolean): number {
  return isInUs && kind !== 'web_search_requests' ? IN_US_TIMES : 1;
}

/** What something costs at these prices. */
export function priceUsed(used: Partial<Used>, prices: KindPrices): number {
  return USED_KINDS.reduce((dollars, kind) => dollars + (used[kind] ?? 0) * prices[kind], 0);
}

const IS_CACHED = { input: false, output: false, cacheRead: true, cacheWritten: true } satisfies {
  readonly [group in TokenGroup]: boolean;
};
const CACHED_KINDS = TOKEN_KINDS.filter((kind) => IS_CACHED[GROUP_OF_KIND[kind]]);

/** What the cached tokens would have cost as input, minus what they cost. */
export function findSaving(used: Used, prices: KindPrices): number {
  return CACHED_KINDS.reduce((saved, kind) => saved + used[kind] * (prices.input - prices[kind]), 0);
}
