import { ownValue } from '../../shared/json.js';
import type { ModelAccount, TokenCounts } from '../file/schema.js';
import { listAdvisorUses, sortTokens, type TokenFields } from '../file/token-kinds.js';
import type { ExactTokens, Response, SessionFacts, TokensByModel } from './turn.js';

type Account = SessionFacts['account'];

/** What a compaction used, and the model that was asked for it. */
export interface CompactionUsage {
  readonly model: string;
  readonly usage: TokenCounts;
}

/** These let Claude Code ask a model without writing a line about it. */
const MAY_ASK_MODELS = new Set(['WebSearch', 'WebFetch', 'Skill', 'Agent', 'Task', 'Workflow', 'SendMessage']);

/**
 * Returns what the only compaction since the account's last line used, if the account says so for sure: one model's part of it has
 * grown by more than the responses used, and nothing else can have contributed.
 */
export function findCompactionUsage(
  { models, usedByModel = {}, geo, isUnclear = false, compactions }: Account,
  now: { readonly [model: string]: ModelAccount },
): CompactionUsage | undefined {
  const told = readModels(now);
  if (!told || !models || isUnclear || compactions !== 1) return undefined;
  const left = subtractModels(subtractModels(told, models), usedByModel);
  const [[model, tokens] = [], ...others] = Object.entries(left).filter(([, used]) => used.some((n) => n !== 0));
  if (model === undefined || !tokens || others.length > 0 || tokens.some((count) => count < 0)) return undefined;
  if (!Object.hasOwn(usedByModel, model)) return undefined;
  const [input, output, read, for5m, for1h] = tokens;
  const usage = {
    input_tokens: input,
    output_tokens: output,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: for5m + for1h,
    cache_creation: { ephemeral_5m_input_tokens: for5m, ephemeral_1h_input_tokens: for1h },
  } satisfies TokenFields;
  return output > 0 ? { model, usage: { ...usage, inference_geo: geo } } : undefined;
}

/** Adds to an account that has a part for each model what responses have used, and whether something else may have. */
export function addExactUsage(account: Account, responses: readonly Response[]): Partial<Account> {
  if (!account.models || responses.length === 0) return {};
  const geo = responses.at(-1)?.usage?.inference_geo ?? account.geo;
  const isUnclear = responses.some(
    ({ aborted, calls }) => aborted || calls.some(({ name }) => MAY_ASK_MODELS.has(name)),
  );
  return {
    usedByModel: responses.flatMap(listUses).reduce(addUse, account.usedByModel ?? {}),
    ...(geo !== undefined && { geo }),
    ...((isUnclear || account.isUnclear) && { isUnclear: true }),
  };
}

/** Reads what an account says of each model; undefined if it does not say how long cache writes live. */
export function readModels(account: { readonly [model: string]: ModelAccount }): TokensByModel | undefined {
  const models: [model: string, tokens: ExactTokens][] = [];
  for (const [name, used] of Object.entries(account)) {
    const { cacheCreationEphemeral5mInputTokens: for5m, cacheCreationEphemeral1hInputTokens: for1h } = used;
    if (for5m === undefined || for1h === undefined || for5m + for1h !== used.cacheCreationInputTokens) return undefined;
    const { inputTokens = 0, outputTokens = 0, cacheReadInputTokens = 0 } = used;
    models.push([nameInAccount(name), [inputTokens, outputTokens, cacheReadInputTokens, for5m, for1h]]);
  }
  return Object.fromEntries(models);
}

function nameInAccount(model = ''): string {
  return model.replace(/\[1m\]$/, '');
}

type Use = Pick<Response, 'model' | 'usage'>;

/** What the account counts for a response: its own tokens, and those of the advisors that it asked. */
export function listUses({ model, usage }: Use): Use[] {
  return [{ model, usage }, ...listAdvisorUses(usage)];
}

function addUse(models: TokensByModel, { model, usage = {} }: Use): TokensByModel {
  const { input = 0, output = 0, cache_read_input_tokens: read = 0, ...writes } = sortTokens(usage);
  const { input_cache_creation_5m: for5m = 0, input_cache_creation_1h: for1h = 0, ...unsplit } = writes;
  const { cache_creation_input_tokens: _, ...others } = unsplit;
  others satisfies Readonly<Record<string, never>>;
  return addTokens(models, nameInAccount(model), [input, output, read, for5m, for1h]);
}

function subtractModels(models: TokensByModel, others: TokensByModel): TokensByModel {
  return Object.entries(others).reduce(
    (left, [model, [a, b, c, d, e]]) => addTokens(left, model, [-a, -b, -c, -d, -e]),
    models,
  );
}

function addTokens(models: TokensByModel, model: string, [a, b, c, d, e]: ExactTokens): TokensByModel {
  const [input, output, read, for5m, for1h] = ownValue(models, model) ?? [0, 0, 0, 0, 0];
  return { ...models, [model]: [input + a, output + b, read + c, for5m + d, for1h + e] };
}
