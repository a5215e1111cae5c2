import { parseOptions, UsageError } from '../../cli/command-line.js';
import { plural, toOneLine } from '../../cli/format.js';
import { ownCommand } from '../../cli/own-command.js';
import { ProgressLine } from '../../cli/progress-line.js';
import { canAsk, confirm, noTerminal } from '../../cli/questions.js';
import { formatJson, printJson, printStderr, printStdout, style } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { adviseOnKeys } from '../../config/missing-keys.js';
import { type LangfuseConfig, readSettings } from '../../config/settings.js';
import { listAllSteps, selectPricedSteps } from '../../costs/account-steps.js';
import {
  KIND_NAMES,
  type LearnedPrice,
  type LearnedPrices,
  learnPrices,
  listKnownPrices,
} from '../../costs/learn-prices.js';
import { IN_US_TIMES } from '../../costs/list-prices.js';
import { readAllUsage } from '../../costs/read-usage.js';
import { defineModel, fetchModels, type Model, type ModelDefinition } from '../../langfuse/models.js';
import { findTarget } from '../../langfuse/open-destination.js';
import { explainRefusedReading } from '../../langfuse/server.js';
import { ReadingRefused } from '../../langfuse/words.js';
import { groupBy } from '../../shared/group-by.js';
import { COUNTED_KINDS, type CountedKind } from '../../transcript/sessions/cost-account.js';
import { formatDollars, formatPrice, type Plan, planModel } from './plan.js';

export const HELP = `usage: cc-langfuse prices [options]

Shows what each model costs. Claude Code writes to each session's transcript how
many tokens it used and what they cost. The prices follow from all sessions on
disk. A price is known only if the sessions determine it and confirm it; nothing
is guessed. Fast mode has prices of its own. If a model had to run in the US
(inference_geo), it costs 1.1 times as much, as Anthropic documents.
If Langfuse lacks prices, it shows them and asks whether to define them in your
project. Only names and prices are sent. They apply to what arrives afterwards.
One line for each model says what has become of it, or what to do.

  --details   show first what the sessions say of each price, and why one is
              not known
  --dry-run   show what would be sent, and send nothing
  --yes       do not ask
  --json      send nothing, and print one JSON document, and nothing else:
              {models: [{model, conclusion, definition?, learned: [{fast,
              accountLines, prices: {<kind of token>: <dollars for one>}}]}]}
  --help

Exit code: 0, 1 if something failed, 2 for a usage error.
`;

const OPTIONS = {
  details: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  yes: { type: 'boolean' },
  json: { type: 'boolean' },
} as const;
const TIMEOUT_MS = 30_000;

export async function run(args: readonly string[], shell: NodeJS.ProcessEnv): Promise<number> {
  const values = parseOptions('prices', args, OPTIONS);
  const { env } = await readCommandSettings(shell, process.cwd());
  const { destination } = await readSettings(env);
  const langfuse = destination && findTarget(destination).langfuse;
  if (!langfuse)
    throw new UsageError(
      `prices needs a Langfuse server and its keys: ${adviseOnKeys(shell, `run ${ownCommand()} install, or set them in the shell`)}`,
    );
  if (values.json && values.yes) throw new UsageError('--json and --yes: choose one of them');
  const isDryRun = values['dry-run'] || values.json || false;
  if (!isDryRun && !values.yes && !canAsk()) throw noTerminal();
  const progress = new ProgressLine();
  const steps = listAllSteps(readAllUsage(claudeFolder(env), stateFolder(env), { onRead: progress.showRead }));
  progress.clear();
  if (steps.length === 0) {
    if (values.json) await printJson({ models: [] });
    else printStderr('no session on disk has an account of its costs, which Claude Code writes when it ends');
    return 0;
  }
  const learned = groupBy(learnPrices(selectPricedSteps(steps)), ({ model }) => model);
  if (values.details && !values.json) {
    const details = [...learned.values()].flat().flatMap(describePrices);
    await printStdout([...details, ''].join('\n'));
  }
  const models = await readModels(langfuse);
  const names = [...new Set(steps.map(({ model }) => model))].toSorted();
  const plans = names.map((model) => planModel(model, learned.get(model) ?? [], models));
  if (values.json) {
    await printJson({ models: plans.map((plan) => toRecord(plan, learned.get(plan.model) ?? [], langfuse)) });
    return 0;
  }
  const definitions = [
    ...new Map(plans.flatMap(({ definition }) => (definition ? [[definition.modelName, definition]] : []))).values(),
  ];
  if (isDryRun)
    for (const definition of definitions) await printStdout(`POST /api/public/models ${formatJson(definition)}\n`);
  const isWanted = !isDryRun && definitions.length > 0 && (values.yes || (await askFor(definitions, langfuse)));
  const outcomes = isWanted ? await defineAll(definitions, langfuse) : new Map<string, Outcome>();
  const width = Math.max(...names.map((name) => toOneLine(name).length));
  const lines = plans.map((plan) => `${toOneLine(plan.model).padEnd(width)}  ${conclude(plan, outcomes, langfuse)}`);
  await printStdout([...lines, ...adviseNext(definitions, outcomes)].join('\n'));
  return [...outcomes.values()].includes('refused') ? 1 : 0;
}

async function readModels(langfuse: LangfuseConfig): Promise<readonly Model[]> {
  try {
    return await fetchModels(langfuse, { deadline: Date.now() + TIMEOUT_MS });
  } catch (error) {
    if (!(error instanceof ReadingRefused)) throw error;
    const need = { keys: 'keys with full access', command: `${ownCommand()} prices` } as const;
    throw new Error(await explainRefusedReading(error.refusal, langfuse, need));
  }
}

type Outcome = 'defined' | 'refused';

function toRecord(plan: Plan, learned: readonly LearnedPrices[], langfuse: LangfuseConfig) {
  return {
    model: plan.model,
    conclusion: conclude(plan, new Map(), langfuse),
    definition: plan.definition,
    learned: learned.map((each) => ({
      fast: each.isFast,
      accountLines: each.steps - each.misfits,
      prices: Object.fromEntries(listKnownPrices(each)),
    })),
  };
}

async function askFor(definitions: readonly ModelDefinition[], { baseUrl }: LangfuseConfig): Promise<boolean> {
  const names = definitions.map(({ modelName }) => modelName).join(', ');
  await printStdout([...definitions.flatMap(listPrices), 'Dollars for a million tokens.', ''].join('\n'));
  return confirm(`Define ${names} with these prices at ${baseUrl.host}?`);
}

/** A line for each tier of prices. */
function listPrices({ modelName, pricingTiers }: ModelDefinition): string[] {
  return pricingTiers.map(({ name, isDefault, prices }) => {
    const kinds = COUNTED_KINDS.filter((kind) => prices[kind] !== undefined);
    const list = kinds.map((kind) => `${KIND_NAMES[kind]} ${formatPrice(prices[kind] ?? 0)}`).join('; ');
    return `${toOneLine(modelName)}${isDefault ? '' : ` (${name})`}  ${list}`;
  });
}

async function defineAll(
  definitions: readonly ModelDefinition[],
  langfuse: LangfuseConfig,
): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  for (const definition of definitions) {
    try {
      await defineModel(definition, langfuse, { deadline: Date.now() + TIMEOUT_MS });
      outcomes.set(definition.modelName, 'defined');
    } catch (error) {
      printStderr(`cc-langfuse: ${toOneLine((error as Error).message)}`);
      outcomes.set(definition.modelName, 'refused');
    }
  }
  return outcomes;
}

/** Says in one line what has become of a model, or what to do about it. */
function conclude(
  { definition, words }: Plan,
  outcomes: ReadonlyMap<string, Outcome>,
  { baseUrl }: LangfuseConfig,
): string {
  if (!definition) return words;
  const outcome = outcomes.get(definition.modelName);
  if (!outcome) return `can be defined, ${words}`;
  if (outcome === 'defined') return `defined at ${baseUrl.host}, ${words}`;
  const hint = definition.pricingTiers.length > 1 ? ' Prices by speed or inference_geo need Langfuse 4.13.' : '';
  return `not defined: ${baseUrl.host} refuses it.${hint}`;
}

function adviseNext(definitions: readonly ModelDefinition[], outcomes: ReadonlyMap<string, Outcome>): string[] {
  const own = ownCommand();
  if ([...outcomes.values()].includes('defined'))
    return [`Costs appear on what arrives from now on. "${own} backfill --force" sends the rest again.`];
  return definitions.length > 0 && outcomes.size === 0
    ? [`Nothing was sent. "${own} prices" asks, and defines what it can.`]
    : [];
}

function describePrices(learned: LearnedPrices): string[] {
  const { model, isFast, steps, misfits, deviation, prices } = learned;
  const misfitting =
    misfits === 0 ? '' : `; ${plural(misfits, 'other')} left out, because these prices do not explain the cost`;
  const exact = prices ? `, exact to ${Math.max(deviation, Number.EPSILON).toExponential(0)}` : '';
  const name = `${toOneLine(model)}${isFast ? ', fast mode' : ''}`;
  const heading = `${style('bold', name)}  ${plural(steps - misfits, 'account line')}${exact}${misfitting}`;
  const lines = COUNTED_KINDS.flatMap((kind) => {
    const price = prices?.[kind];
    return price && price.state !== 'unused' ? [`  ${KIND_NAMES[kind].padEnd(24)} ${describePrice(kind, price)}`] : [];
  });
  return [heading, ...lines, ...describeUs(learned)];
}

/** What is derived is said: the factor is documented, and no session may have the price without it. */
function describeUs({ isSeenInUs, isSeenElsewhere, prices }: LearnedPrices): string[] {
  if (!isSeenInUs) return [];
  const isKnown = COUNTED_KINDS.some((kind) => prices?.[kind].state === 'known');
  const derived = isSeenElsewhere || !isKnown ? '' : '. All sessions ran there: the prices above are derived by it';
  return [`  in the US (inference_geo)  ${IN_US_TIMES} times as much, as Anthropic documents${derived}`];
}

function describePrice(kind: CountedKind, price: LearnedPrice): string {
  if (price.state === 'unknown') return price.reason;
  if (price.state === 'unused') return '';
  if (kind === 'web_search_requests') return `${formatDollars(price.price)} each`;
  return `${formatPrice(price.price)} per million tokens`;
}
