import { groupBy } from '../shared/group-by.js';
import { memoize } from '../shared/memoize.js';
import { COUNTED_KINDS } from '../transcript/sessions/cost-account.js';
import { hasDefaultPrice, listOfStep, type PlacedStep } from './account-steps.js';
import { type FindPrices, findLongPromptPrices, findPrices as findTablePrices, priceUsed } from './list-prices.js';
import { PRICE_CHOICES, type PriceChoice, type SessionUsage, STANDARD_PRICES, type Use } from './session-usage.js';

/** The steps of the accounts that cost what the list says, by model. */
export interface Agreement {
  readonly model: string;
  readonly steps: number;
  readonly dollars: number;
}

/** A step of an account that costs something else. */
export interface Difference {
  readonly step: PlacedStep;
  /** Undefined if the list does not have the model. */
  readonly listDollars: number | undefined;
  readonly cause: string;
}

/** The rounding errors in a step grow with the sum of its account. Anything that costs differently differs by far more. */
const TOLERANCE = 1e-9;

/** Compares what the accounts say with what their own counts cost at list prices. */
export function checkAccounts(
  steps: readonly PlacedStep[],
  findPrices: FindPrices,
): { readonly agreements: readonly Agreement[]; readonly differences: readonly Difference[] } {
  const groupUses = memoize(({ uses }: SessionUsage) => groupBy(uses, ({ point }) => point));
  const checked = steps.map((step) => ({
    step,
    ...priceStep(step, findUses(step, groupUses(step.session)), findPrices),
  }));
  const bySame = groupBy(checked, ({ step, listDollars }) => isSame(step, listDollars));
  const agreements = [...groupBy(bySame.get(true) ?? [], ({ step }) => step.model)].map(([model, group]) => ({
    model,
    steps: group.length,
    dollars: group.reduce((sum, { step }) => sum + step.dollars, 0),
  }));
  const differences = (bySame.get(false) ?? []).map(({ step, listDollars, choices }) => ({
    step,
    listDollars,
    cause: explain(step, choices, findPrices),
  }));
  return {
    agreements: agreements.toSorted((a, b) => b.dollars - a.dollars),
    differences: differences.toSorted((a, b) => a.step.at - b.step.at),
  };
}

function isSame({ dollars, sum }: PlacedStep, listDollars: number | undefined): boolean {
  return listDollars !== undefined && Math.abs(listDollars - dollars) <= sum * TOLERANCE;
}

/** What a step costs at list prices, and at which of them its responses were paid. */
function priceStep(step: PlacedStep, uses: readonly Use[], findPrices: FindPrices) {
  const choices = listChoices(uses);
  const [choice, ...others] = choices;
  // Where responses differ, they only tell what all cost if there was nothing but them.
  const each = areAll(uses, step) ? addUp(uses, findPrices) : undefined;
  // For some models the account has no other price for long prompts.
  const alike = each === undefined || others.length === 0 ? price(step, choice, findPrices) : undefined;
  const listDollars = [each, alike].find((dollars) => isSame(step, dollars)) ?? each ?? alike;
  return { listDollars, choices };
}

/** The responses that a step has paid. Claude Code also asks models for itself, as it does for the session's responses. */
function findUses(step: PlacedStep, byPoint: ReadonlyMap<Use['point'], readonly Use[]>): readonly Use[] {
  const isOfModel = ({ model }: Use) => model === step.model;
  const during = listOfStep(byPoint, step).filter(isOfModel);
  if (during.length > 0) return during;
  const counted = step.session.uses.filter(({ point }) => point !== undefined);
  const ofModel = counted.filter(isOfModel);
  return ofModel.length > 0 ? ofModel : counted;
}

type Choices = readonly [PriceChoice, ...PriceChoice[]];

function listChoices(uses: readonly Use[]): Choices {
  const groups = groupBy(uses, ({ isFast, isInUs }) => `${isFast} ${isInUs}`);
  const [first = STANDARD_PRICES, ...others] = [...groups.values()].map(([use]) => use);
  return [first, ...others];
}

function areAll(uses: readonly Use[], { counts, model }: PlacedStep): boolean {
  return COUNTED_KINDS.every((kind) => {
    const used = uses.reduce((sum, use) => sum + (use.model === model ? use.used[kind] : Number.NaN), 0);
    return used === counts[kind];
  });
}

function addUp(uses: readonly Use[], findPrices: FindPrices): number | undefined {
  return uses.reduce<number | undefined>((sum, use) => {
    const prices = findPrices(use);
    return sum === undefined || !prices ? undefined : sum + priceUsed(use.used, prices);
  }, 0);
}

function price({ model, at, counts }: PlacedStep, choice: PriceChoice, findPrices: FindPrices): number | undefined {
  const prices = findPrices({ model, at, isFast: choice.isFast, isInUs: choice.isInUs });
  return prices && priceUsed(counts, prices);
}

/** Says why a step does not cost what the list says, as far as its session tells. */
function explain(step: PlacedStep, choices: Choices, findPrices: FindPrices): string {
  const [choice] = choices;
  const fits = (one: PriceChoice, find: FindPrices = findPrices, at = step.at) =>
    isSame(step, price({ ...step, at }, one, find));
  if (hasDefaultPrice(step.session)) return 'Claude Code took a default price for a model that it did not know';
  const listed = choices.map((each) => price(step, each, findPrices));
  if (listed.includes(undefined))
    return `the list does not have ${price(step, STANDARD_PRICES, findPrices) === undefined ? 'the model' : 'its fast mode'}`;
  if (!step.isSplit) return 'the account does not say how long cache writes live';
  if (fits(choice, findTablePrices)) return 'your Langfuse has another price';
  if (choices.length > 1 && isBetween(step.dollars, listed)) return describeMixture(choices);
  const other = ALL_CHOICES.find((each) => fits(each));
  if (other) return `it fits the price ${describeChoice(other)}, which no response names`;
  if ([0, Number.MAX_SAFE_INTEGER].some((at) => fits(choice, findPrices, at)))
    return 'it fits the price of another day';
  const long = findLongPromptPrices({ ...choice, model: step.model, at: step.at });
  if (long && isBetween(step.dollars, [listed[0], priceUsed(step.counts, long.prices)]))
    return `prompts of more than ${long.above.toLocaleString('en')} tokens cost more`;
  return 'not known';
}

function isBetween(dollars: number, prices: readonly (number | undefined)[]): boolean {
  const bounds = prices.filter((each) => each !== undefined);
  return dollars >= Math.min(...bounds) && dollars <= Math.max(...bounds);
}

const ALL_CHOICES = [false, true].flatMap((isInUs) => [false, true].map((isFast) => ({ isFast, isInUs })));

function describeChoice(choice: PriceChoice): string {
  return nameChoices((name) => choice[name]) || 'outside fast mode and the US';
}

function describeMixture(choices: readonly PriceChoice[]): string {
  const isMixed = (name: keyof PriceChoice) =>
    choices.some((each) => each[name]) && !choices.every((each) => each[name]);
  return `only a part of it ran ${nameChoices(isMixed)}`;
}

const WORDS = { isFast: 'in fast mode', isInUs: 'in the US' } satisfies {
  readonly [name in keyof PriceChoice]: string;
};

function nameChoices(isMade: (name: keyof PriceChoice) => boolean): string {
  return PRICE_CHOICES.filter(isMade)
    .map((name) => WORDS[name])
    .join(' and ');
}
