import { KIND_NAMES, type LearnedPrices, listKnownPrices } from '../../costs/learn-prices.js';
import { IN_US_TIMES, MILLION } from '../../costs/list-prices.js';
import {
  addTiersForUs,
  buildTiers,
  findModel,
  hasPrice,
  hasTierForUs,
  type Model,
  type ModelDefinition,
  matchName,
} from '../../langfuse/models.js';
import { COUNTED_KINDS, type CountedKind } from '../../transcript/sessions/cost-account.js';

/** What to do about a model, and the reason in words. */
export interface Plan {
  readonly model: string;
  /** Undefined if nothing can or has to be defined. */
  readonly definition?: ModelDefinition;
  readonly words: string;
}

/** Decides what to do about a model, from what sessions say of its prices and which models the server has. */
export function planModel(model: string, learned: readonly LearnedPrices[], models: readonly Model[]): Plan {
  const standard = learned.find(({ isFast }) => !isFast);
  const fast = learned.find(({ isFast }) => isFast);
  const isInUs = learned.some(({ isSeenInUs }) => isSeenInUs);
  const applied = findModel(models, model);
  if (applied && hasPrice(models, model)) return { model, ...planPriced(applied, standard, isInUs, models) };
  if (findOwn(models, model))
    return { model, words: `your project defines it without prices for input and output: ${DELETE_IT}` };
  const missing = explainMissing(model, standard);
  if (missing !== undefined || !standard) return { model, words: missing ?? '' };
  const tiers = buildTiers(listKnown(standard), fast && listAll(fast, standard));
  const definition = {
    modelName: model,
    matchPattern: matchName(model),
    unit: 'TOKENS' as const,
    pricingTiers: isInUs ? addTiersForUs(tiers, IN_US_TIMES) : tiers,
  };
  const unused = PRICED_KINDS.filter((kind) => standard.prices?.[kind].state === 'unused').map(nameKind);
  const left = [
    ...(fast && tiers.length === 1 ? ['fast mode, which needs more sessions'] : []),
    ...(unused.length > 0 ? [`what was never used: ${unused.join('; ')}`] : []),
  ];
  return {
    model,
    definition,
    words: `${nameTiers(definition)}${left.length > 0 ? `, without a price for ${left.join(', and for ')}` : ''}`,
  };
}

const DELETE_IT = 'delete the model in Langfuse, and run prices again';

/** Decides about a model that has prices: they can differ from those of the sessions, or leave out that it ran in the US. */
function planPriced(
  applied: Model,
  standard: LearnedPrices | undefined,
  isInUs: boolean,
  models: readonly Model[],
): Omit<Plan, 'model'> {
  const { isLangfuseManaged: isManaged, modelName, matchPattern, pricingTiers } = applied;
  const whose = isManaged ? 'Langfuse' : 'your project';
  const different = listDifferent(applied, standard);
  if (different.length > 0) {
    const advice = isManaged ? 'define it in Langfuse by hand, if the sessions are right' : DELETE_IT;
    return { words: `${whose} has other prices (${different.join('; ')}): ${advice}` };
  }
  if (!isInUs || hasTierForUs(applied)) return { words: `${whose} has prices for it` };
  const lacks = `${whose} has prices for it, but not that it costs ${IN_US_TIMES} times as much in the US`;
  if (pricingTiers.length === 0) return { words: `${lacks}: that needs Langfuse 4.13` };
  if (!isManaged || findOwn(models, modelName)) return { words: `${lacks}: ${DELETE_IT}` };
  const definition = {
    modelName,
    matchPattern,
    unit: 'TOKENS' as const,
    pricingTiers: addTiersForUs(pricingTiers, IN_US_TIMES),
  };
  return { definition, words: `with the prices that Langfuse has, ${nameTiers(definition)}` };
}

function nameTiers({ pricingTiers }: ModelDefinition): string {
  const [, ...others] = pricingTiers.map(({ name }) => name);
  return others.length === 0 ? 'with one price for each kind of token' : `with prices for ${others.join('; ')}`;
}

/** The project's own model of that name, whatever it matches: Langfuse accepts no second one. */
function findOwn(models: readonly Model[], name: string): Model | undefined {
  return models.find(({ modelName, isLangfuseManaged }) => modelName === name && !isLangfuseManaged);
}

/** More is not a difference of rounding. */
const SAME_WITHIN = 1e-6;

function listDifferent({ prices: there }: Model, standard: LearnedPrices | undefined): string[] {
  return PRICED_KINDS.flatMap((kind) => {
    const here = standard?.prices?.[kind];
    const price = there[kind]?.price;
    if (here?.state !== 'known' || price === undefined) return [];
    if (Math.abs(price - here.price) <= here.price * SAME_WITHIN) return [];
    return [`${nameKind(kind)} ${formatPrice(price)}, ${formatPrice(here.price)} in the sessions`];
  });
}

/** A model of which some prices are missing would seem to cost less than it does. */
function explainMissing(model: string, learned: LearnedPrices | undefined): string | undefined {
  if (!/^claude-[\w.-]+$/.test(model)) return 'its name does not say which model it is: define it in Langfuse by hand';
  if (!learned)
    return 'needs sessions in which all of it ran in one way: not partly in fast mode, and not partly in the US';
  const { prices } = learned;
  if (!prices) return 'its cost does not follow from its tokens: define it in Langfuse by hand';
  const isMissing = PRICED_KINDS.some(
    (kind) => prices[kind].state === 'unknown' || (NEEDED.has(kind) && prices[kind].state === 'unused'),
  );
  return isMissing ? 'needs more varied sessions, short and long ones: run prices again some days later' : undefined;
}

const PRICED_KINDS = COUNTED_KINDS.filter((kind) => kind !== 'web_search_requests');
const NEEDED: ReadonlySet<CountedKind> = new Set<CountedKind>(['input', 'output']);

/** A web search has a fee of its own. */
function listKnown(learned: LearnedPrices): { [kind: string]: number } {
  return Object.fromEntries(listKnownPrices(learned).filter(([kind]) => kind !== 'web_search_requests'));
}

/** The prices of the kinds that have a standard price; undefined if one of them is not known. */
function listAll(learned: LearnedPrices, standard: LearnedPrices): { [kind: string]: number } | undefined {
  const prices = listKnown(learned);
  const kinds = Object.keys(listKnown(standard));
  if (kinds.some((kind) => prices[kind] === undefined)) return undefined;
  return Object.fromEntries(kinds.map((kind) => [kind, prices[kind] ?? 0]));
}

function nameKind(kind: CountedKind): string {
  return KIND_NAMES[kind];
}

/** In dollars per million. */
export function formatPrice(price: number): string {
  return formatDollars(price * MILLION);
}

export function formatDollars(dollars: number): string {
  const rounded = Number(dollars.toPrecision(12));
  return `$${Number(rounded.toFixed(2)) === rounded ? rounded.toFixed(2) : rounded}`;
}
