import type { ModelAccount, TokenCounts } from '../file/schema.js';
import type { Note, Response, SessionFacts } from './turn.js';

type Account = SessionFacts['account'];
type ExactTokens = NonNullable<Account['models']>[string];

/** What a compaction used, and the model that was asked for it. */
export interface CompactionUsage {
  readonly model: string;
  readonly usage: TokenCounts;
}

/** These let Claude Code ask a model without writing a line about it. */
const MAY_ASK_MODELS = new Set(['WebSearch', 'WebFetch', 'Skill', 'Agent', 'Task', 'Workflow', 'SendMessage']);
const MAY_LEAVE_NO_LINE = new Set<Note['kind']>(['interrupt', 'nudge', 'api-error', 'retry', 'model-fallback']);

interface Since {
  /** The account when the turn began. */
  readonly before: Account;
  readonly now: { readonly [model: string]: ModelAccount };
  readonly responses: readonly Response[];
  readonly notes: readonly Note[];
  readonly entrypoint: string | undefined;
}

/**
 * Returns what a turn's compaction used, if the account says so for sure: one model's part of it has grown by more than the turn's
 * responses used, and nothing else can have contributed. In the terminal Claude Code also asks models for its own purposes.
 */
export function findCompactionUsage({ before, now, responses, notes, entrypoint }: Since): CompactionUsage | undefined {
  const isOnlyTurn = before.models && before.compactions === 0 && Object.values(before.since).every((n) => n === 0);
  const isHeadless = entrypoint?.startsWith('sdk');
  const isClear =
    notes.filter(({ kind }) => kind === 'compaction').length === 1 &&
    !notes.some(({ kind }) => MAY_LEAVE_NO_LINE.has(kind)) &&
    responses.every(({ aborted, calls }) => !aborted && !calls.some(({ name }) => MAY_ASK_MODELS.has(name)));
  const told = readModels(now);
  if (!isOnlyTurn || !isHeadless || !isClear || !told || !before.models) return undefined;
  const left = responses.reduce(subtractResponse, subtractModels(told, before.models));
  const [[model, tokens] = [], ...others] = Object.entries(left).filter(([, used]) => used.some((n) => n !== 0));
  if (model === undefined || !tokens || others.length > 0 || tokens.some((count) => count < 0)) return undefined;
  if (!responses.some((response) => nameInAccount(response.model) === model)) return undefined;
  const [input, output, read, for5m, for1h] = tokens;
  const usage = {
    input_tokens: input,
    output_tokens: output,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: for5m + for1h,
    cache_creation: { ephemeral_5m_input_tokens: for5m, ephemeral_1h_input_tokens: for1h },
  };
  return output > 0 ? { model, usage } : undefined;
}

/** Reads what an account says of each model; undefined if it does not say how long cache writes live. */
export function readModels(account: { readonly [model: string]: ModelAccount }): Account['models'] {
  const models: { [model: string]: ExactTokens } = {};
  for (const [name, used] of Object.entries(account)) {
    const { cacheCreationEphemeral5mInputTokens: for5m, cacheCreationEphemeral1hInputTokens: for1h } = used;
    if (for5m === undefined || for1h === undefined || for5m + for1h !== used.cacheCreationInputTokens) return undefined;
    const { inputTokens = 0, outputTokens = 0, cacheReadInputTokens = 0 } = used;
    models[nameInAccount(name)] = [inputTokens, outputTokens, cacheReadInputTokens, for5m, for1h];
  }
  return models;
}

function nameInAccount(model = ''): string {
  return model.replace(/\[1m\]$/, '');
}

type Models = NonNullable<Account['models']>;

function subtractModels(models: Models, others: Models): Models {
  return Object.entries(others).reduce((left, [model, tokens]) => subtract(left, model, tokens), models);
}

function subtractResponse(models: Models, { model, usage }: Response): Models {
  const { ephemeral_5m_input_tokens: for5m = 0, ephemeral_1h_input_tokens: for1h = 0 } = usage?.cache_creation ?? {};
  const { input_tokens: input = 0, output_tokens: output = 0, cache_read_input_tokens: read = 0 } = usage ?? {};
  return subtract(models, nameInAccount(model), [input, output, read, for5m, for1h]);
}

function subtract(models: Models, model: string, [a, b, c, d, e]: ExactTokens): Models {
  const [input, output, read, for5m, for1h] = models[model] ?? [0, 0, 0, 0, 0];
  return { ...models, [model]: [input - a, output - b, read - c, for5m - d, for1h - e] };
}
