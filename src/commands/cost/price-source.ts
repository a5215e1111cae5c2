import { stateFolder } from '../../config/claude-folder.js';
import { hasDestination, type LangfuseConfig, readSettings } from '../../config/settings.js';
import {
  type FindPrices,
  findPriceFactor,
  type KindPrices,
  PRICE_TABLE,
  type Priced,
  type PriceList,
  WEB_SEARCH,
} from '../../costs/list-prices.js';
import { type SessionUsage, USED_KINDS } from '../../costs/session-usage.js';
import { fetchModels, findTierPrices, type Model, parseModels } from '../../langfuse/models.js';
import { findTarget } from '../../langfuse/open-destination.js';
import { memoize } from '../../shared/memoize.js';
import { readAsked, saveAsked } from '../../state/asked-models.js';
import { isForIngestion, isOngoing, readOutage } from '../../state/servers.js';

const DAY_MS = 86_400_000;
/** A server that did not answer is left alone for so long. */
const PAUSE_MS = 3_600_000;
const TIMEOUT_MS = 2_000;

/**
 * Finds the prices for what no account includes: those of the user's Langfuse, which is asked at most once a day, and otherwise
 * those of the table. If the accounts include all, and the list is not to be compared with them, nothing is asked.
 */
export async function choosePrices(
  sessions: readonly SessionUsage[],
  env: NodeJS.ProcessEnv,
  isCheck = false,
): Promise<PriceList> {
  if (!isCheck && sessions.every(({ uses }) => uses.every(({ point }) => point !== undefined))) return PRICE_TABLE;
  if (!hasDestination(env)) return PRICE_TABLE;
  const { destination } = await readSettings(env).catch(() => ({ destination: undefined }));
  const target = destination && findTarget(destination);
  if (!target?.langfuse) return PRICE_TABLE;
  const asked = await askOnceADay(target.langfuse, target.id, stateFolder(env), Date.now());
  return asked ? joinLists(asked.models, asked.at) : PRICE_TABLE;
}

/** Says whose prices these are, for what the sessions have used since a time. */
export function describeSource({ describe }: PriceList, sessions: readonly SessionUsage[], since = 0): string {
  return describe(sessions.flatMap(({ uses }) => uses.filter(({ at }) => at >= since)));
}

interface Answer {
  readonly at: number;
  readonly models: readonly Model[];
}

/** Returns what the server answered, now or in the last day; undefined if it did not. */
async function askOnceADay(
  langfuse: LangfuseConfig,
  destination: string,
  folder: string,
  now: number,
): Promise<Answer | undefined> {
  const known = readAsked(folder, destination);
  const models = parseModels(known?.models);
  const age = now - (known?.at ?? Number.NEGATIVE_INFINITY);
  // The clock may have been set back since.
  if (known && age >= 0 && age < (models ? DAY_MS : PAUSE_MS)) return models && { at: known.at, models };
  if (isForIngestion(folder, destination) || isOngoing(readOutage(folder, destination), now)) return undefined;
  // What cannot be remembered would be asked every time.
  if (!saveAsked(folder, { destination, at: now })) return undefined;
  const all = await fetchModels(langfuse, { deadline: now + TIMEOUT_MS }).catch(() => undefined);
  if (!all) return undefined;
  const relevant = all.filter(
    ({ matchPattern, isLangfuseManaged }) => !isLangfuseManaged || /claude/i.test(matchPattern),
  );
  saveAsked(folder, { destination, at: now, models: relevant });
  return { at: now, models: relevant };
}

/** The prices of Langfuse, and those of the table for what Langfuse does not price. */
function joinLists(models: readonly Model[], at: number): PriceList {
  const findTheirs = findLangfusePrices(models);
  const theirs = `your Langfuse of ${new Date(at).toISOString().slice(0, '2026-11-20'.length)}`;
  return {
    findPrices: (priced) => findTheirs(priced) ?? PRICE_TABLE.findPrices(priced),
    describe: (all) => {
      const others = all.filter((priced) => !findTheirs(priced) && PRICE_TABLE.findPrices(priced));
      const table = PRICE_TABLE.describe(others);
      if (others.length === 0) return theirs;
      if (!all.some(findTheirs)) return table;
      const names = [...new Set(others.map(({ model }) => model))].toSorted();
      return `${theirs}; for ${names.join(', ')} the ${table}`;
    },
  };
}

/** Finds Langfuse's prices; undefined for a model without a price for each kind of token, and for a fast mode without a tier. */
function findLangfusePrices(models: readonly Model[]): FindPrices {
  return memoize(
    (priced: Priced) => readPrices(models, priced),
    ({ model, isFast, isInUs }) => `${model} ${isFast} ${isInUs}`,
  );
}

function readPrices(models: readonly Model[], { model, isFast, isInUs }: Priced): KindPrices | undefined {
  const attributes = { ...(isFast && { speed: 'fast' }), ...(isInUs && { inference_geo: 'us' }) };
  const found = findTierPrices(models, model, attributes);
  if (!found || (isFast && !found.isFor('speed'))) return undefined;
  const isDearer = isInUs && !found.isFor('inference_geo');
  const entries = USED_KINDS.map((kind) => {
    const price = found.prices[kind] ?? (kind === 'web_search_requests' ? WEB_SEARCH : undefined);
    return [kind, price === undefined ? undefined : price * findPriceFactor(kind, isDearer)] as const;
  });
  return entries.every(([, price = -1]) => price >= 0) ? (Object.fromEntries(entries) as KindPrices) : undefined;
}
