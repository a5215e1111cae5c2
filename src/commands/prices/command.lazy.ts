import { parseOptions, UsageError } from '../../cli/command-line.js';
import { plural, toOneLine } from '../../cli/format.js';
import { ownCommand } from '../../cli/own-command.js';
import { canAsk, confirm, noTerminal } from '../../cli/questions.js';
import { listSessions } from '../../cli/session-selection.js';
import { formatJson, printStderr, printStdout, style } from '../../cli/terminal.js';
import { claudeFolder } from '../../config/claude-folder.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { adviseOnKeys } from '../../config/missing-keys.js';
import { type LangfuseConfig, readSettings } from '../../config/settings.js';
import { KIND_NAMES, type LearnedModel, type LearnedPrice, learnPrices, MILLION } from '../../costs/learn-prices.js';
import {
  buildModelDefinition,
  defineModel,
  fetchModels,
  findModel,
  hasPrice,
  type Model,
  type ModelDefinition,
} from '../../langfuse/models.js';
import { findTarget } from '../../langfuse/open-destination.js';
import { nameModel } from '../../observations/build/model-name.js';
import { attempt } from '../../shared/attempt.js';
import { COUNTED_KINDS, type CountedKind, readAccountSteps } from '../../transcript/sessions/cost-account.js';

export const HELP = `usage: cc-langfuse prices [options]

Shows what each model costs. Claude Code writes to each session's transcript how
many tokens it used and what they cost. The prices follow from all sessions on
disk. A price is known only if the sessions determine it and confirm it; nothing
is guessed. If Langfuse has no price for some models, it asks whether to define
them in your project. Only names and prices are sent. They apply to what arrives
afterwards.

  --dry-run   show what would be sent, and send nothing
  --yes       do not ask
  --help

Exit code: 0, 1 if something failed, 2 for a usage error.
`;

const OPTIONS = { 'dry-run': { type: 'boolean' }, yes: { type: 'boolean' } } as const;
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
  const isDryRun = values['dry-run'] ?? false;
  if (!isDryRun && !values.yes && !canAsk()) throw noTerminal();
  const sessions = listSessions(claudeFolder(env));
  const learned = learnPrices(
    sessions.flatMap(({ path }) => attempt(() => readAccountSteps(path)) ?? []),
    nameModel,
  );
  if (learned.length === 0) {
    printStderr('no session on disk has an account of its costs, which Claude Code writes when it ends');
    return 0;
  }
  const models = await fetchModels(langfuse, { deadline: Date.now() + TIMEOUT_MS });
  for (const model of learned) await printStdout(describeModel(model, models).join('\n'));
  const definitions = learned.flatMap((model) => (hasPrice(models, model.model) ? [] : (planDefinition(model) ?? [])));
  const wanted = definitions.filter(({ modelName }) => !findOwn(models, modelName));
  if (isDryRun) for (const definition of wanted) await printStdout(`POST /api/public/models ${formatJson(definition)}`);
  if (isDryRun || wanted.length === 0) return 0;
  const names = wanted.map(({ modelName }) => modelName).join(', ');
  if (!values.yes && !(await confirm(`Define ${names} with these prices at ${langfuse.baseUrl.host}?`))) {
    printStderr('nothing was sent');
    return 0;
  }
  return defineAll(wanted, langfuse);
}

async function defineAll(definitions: readonly ModelDefinition[], langfuse: LangfuseConfig): Promise<number> {
  let exitCode = 0;
  for (const definition of definitions) {
    try {
      await defineModel(definition, langfuse, { deadline: Date.now() + TIMEOUT_MS });
      await printStdout(`defined ${definition.modelName}`);
    } catch (error) {
      printStderr(`cc-langfuse: ${toOneLine((error as Error).message)}`);
      exitCode = 1;
    }
  }
  return exitCode;
}

/** The project's own model of that name, whatever it matches: Langfuse accepts no second one. */
function findOwn(models: readonly Model[], name: string): Model | undefined {
  return models.find(({ modelName, isLangfuseManaged }) => modelName === name && !isLangfuseManaged);
}

/** A model of which some prices are missing would seem to cost less than it does. */
function planDefinition(learned: LearnedModel): ModelDefinition | undefined {
  return explainMissing(learned) === undefined ? buildModelDefinition(learned.model, listKnown(learned)) : undefined;
}

function explainMissing({ model, prices }: LearnedModel): string | undefined {
  if (!/^claude-[\w.-]+$/.test(model)) return 'its name does not say which model it is; define it in Langfuse by hand';
  if (!prices) return 'its cost does not follow from its tokens';
  const missing = PRICED_KINDS.filter(
    (kind) => prices[kind].state === 'unknown' || (NEEDED.has(kind) && prices[kind].state === 'unused'),
  );
  return missing.length === 0 ? undefined : `not known: ${missing.map((kind) => KIND_NAMES[kind]).join('; ')}`;
}

const PRICED_KINDS = COUNTED_KINDS.filter((kind) => kind !== 'web_search_requests');
const NEEDED: ReadonlySet<CountedKind> = new Set<CountedKind>(['input', 'output']);

function listKnown({ prices }: LearnedModel): { [kind: string]: number } {
  return Object.fromEntries(
    PRICED_KINDS.flatMap((kind) => {
      const price = prices?.[kind];
      return price?.state === 'known' ? [[kind, price.price]] : [];
    }),
  );
}

function describeModel(learned: LearnedModel, models: readonly Model[]): string[] {
  const { model, steps, misfits, deviation, prices } = learned;
  const misfitting =
    misfits === 0 ? '' : `; ${plural(misfits, 'other')} left out, because these prices do not explain the cost`;
  const exact = prices ? `, exact to ${Math.max(deviation, Number.EPSILON).toExponential(0)}` : '';
  const heading = `${style('bold', toOneLine(model))}  ${plural(steps - misfits, 'account line')}${exact}${misfitting}`;
  const lines = COUNTED_KINDS.flatMap((kind) => {
    const price = prices?.[kind];
    return price && price.state !== 'unused' ? [`  ${KIND_NAMES[kind].padEnd(24)} ${formatPrice(kind, price)}`] : [];
  });
  return [heading, ...lines, `  → ${describeState(learned, models)}`];
}

function describeState(learned: LearnedModel, models: readonly Model[]): string {
  const { model } = learned;
  const own = findOwn(models, model);
  const applied = findModel(models, model);
  if (hasPrice(models, model))
    return `Langfuse has prices for it (${applied?.isLangfuseManaged ? 'its own' : 'your own'}): ${formatPrices(applied)}`;
  if (own)
    return `your project has a model of that name, without these prices (${formatPrices(own)}): change it in Langfuse`;
  const missing = explainMissing(learned);
  if (missing !== undefined) return `cannot be defined: ${missing}`;
  const unused = PRICED_KINDS.filter((kind) => learned.prices?.[kind].state === 'unused').map(
    (kind) => KIND_NAMES[kind],
  );
  return `can be defined${unused.length === 0 ? '' : `, without a price for kinds that were never used: ${unused.join('; ')}`}`;
}

function formatPrices(model: Model | undefined): string {
  const priced = COUNTED_KINDS.flatMap((kind) => {
    const price = model?.prices[kind]?.price;
    return price === undefined ? [] : [`${KIND_NAMES[kind]} ${formatDollars(price * MILLION)}`];
  });
  return priced.length === 0 ? 'no prices' : `${priced.join('; ')} per million`;
}

function formatPrice(kind: CountedKind, price: LearnedPrice): string {
  if (price.state === 'unknown') return price.reason;
  if (price.state === 'unused') return '';
  if (kind === 'web_search_requests') return `${formatDollars(price.price)} each`;
  return `${formatDollars(price.price * MILLION)} per million tokens`;
}

function formatDollars(dollars: number): string {
  const rounded = Number(dollars.toPrecision(12));
  return `$${Number(rounded.toFixed(2)) === rounded ? rounded.toFixed(2) : rounded}`;
}
