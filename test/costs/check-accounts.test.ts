import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listAllSteps } from '../../src/costs/account-steps.js';
import { checkAccounts } from '../../src/costs/check-accounts.js';
import { type FindPrices, findPrices } from '../../src/costs/list-prices.js';
import { readAllUsage } from '../../src/costs/read-usage.js';
import { accountLine } from '../support/cost-account.js';
import { appendLines, assistant, SESSION } from '../support/lines.js';
import { removeFolder } from '../support/remove-folder.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-check-'));
});

afterEach(() => removeFolder(folder));

const MODEL = 'claude-opus-5-5';
const AT = '2026-11-01T12:00:00.000Z';

interface Case {
  readonly model?: string;
  readonly timestamp?: string;
  /** The usage of each response besides 1,000 tokens of output. */
  readonly responses?: readonly object[];
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly costUSD: number;
  readonly cacheCreationInputTokens?: number;
  readonly hasUnknownModelCost?: boolean;
  readonly find?: FindPrices;
}

function check({ model = MODEL, timestamp = AT, responses = [{}], find = findPrices, ...account }: Case) {
  const { hasUnknownModelCost, ...counts } = account;
  const tokens = { inputTokens: 0, outputTokens: 1_000 * responses.length, cacheReadInputTokens: 0 };
  const lines = responses.map((usage, n) => {
    const { message, ...rest } = assistant(`m${n}`, 'a', { timestamp }) as { message: object };
    return { ...rest, message: { ...message, model, usage: { output_tokens: 1_000, ...usage } } };
  });
  const last = accountLine({ [model]: { ...tokens, cacheCreationInputTokens: 0, ...counts } }, { hasUnknownModelCost });
  appendLines(join(folder, 'projects', '-work', `${SESSION}.jsonl`), ...lines, last);
  const { agreements, differences } = checkAccounts(listAllSteps(readAllUsage(folder, folder)), find);
  return {
    agreements,
    differences: differences.map(({ step, listDollars, cause }) => [
      Number(step.dollars.toFixed(6)),
      listDollars === undefined ? undefined : Number(listDollars.toFixed(6)),
      cause,
    ]),
  };
}

test.each<[string, Case]>([
  [
    'has no other price for long prompts',
    { model: 'claude-sonnet-4-5', costUSD: 0.765, responses: [{ input_tokens: 250_000 }], inputTokens: 250_000 },
  ],
  [
    'had long prompts in part, and all its responses are there',
    {
      model: 'claude-haiku-5-5',
      // 0.5 and 0.1 dollars for a million tokens of input, 2.5 and 0.5 for output.
      costUSD: 0.075_05 + 0.0025 + 0.01 + 0.0005,
      responses: [{ input_tokens: 150_100 }, { input_tokens: 100_000 }],
      inputTokens: 250_100,
    },
  ],
  ['costs what the list says', { costUSD: 0.02 }],
  ['ran in fast mode', { costUSD: 0.04, responses: [{ speed: 'fast' }] }],
  ['ran in the US', { costUSD: 0.022, responses: [{ inference_geo: 'us' }] }],
  ['ran in fast mode in part, and all its responses are there', { costUSD: 0.06, responses: [{ speed: 'fast' }, {}] }],
  ['has a rounding error', { costUSD: 0.020000000000000004 }],
])('an account agrees with the list if it %s', (_, given) => {
  const agreements = [{ model: given.model ?? MODEL, steps: 1, dollars: given.costUSD }];
  expect(check(given)).toEqual({ agreements, differences: [] });
});

test.each<[string, number | undefined, Case]>([
  [
    'the list does not have its fast mode',
    undefined,
    { model: 'claude-sonnet-5', costUSD: 1, responses: [{ speed: 'fast' }] },
  ],
  ['the list does not have the model', undefined, { model: 'claude-new-9', costUSD: 0.02 }],
  [
    'Claude Code took a default price for a model that it did not know',
    0.02,
    { costUSD: 0.03, hasUnknownModelCost: true },
  ],
  ['the account does not say how long cache writes live', 0.02, { costUSD: 0.03, cacheCreationInputTokens: 2_000 }],
  [
    'your Langfuse has another price',
    0.04,
    {
      costUSD: 0.02,
      find: (priced) => {
        const prices = findPrices(priced);
        return prices && { ...prices, output: prices.output * 2 };
      },
    },
  ],
  [
    'only a part of it ran in fast mode',
    0.12,
    { costUSD: 0.09, responses: [{ speed: 'fast' }, {}], outputTokens: 3_000 },
  ],
  [
    'only a part of it ran in the US',
    0.066,
    { costUSD: 0.061, responses: [{ inference_geo: 'us' }, {}], outputTokens: 3_000 },
  ],
  ['it fits the price in fast mode, which no response names', 0.02, { costUSD: 0.04 }],
  ['it fits the price in the US, which no response names', 0.02, { costUSD: 0.022 }],
  [
    'it fits the price of another day',
    0.0102,
    {
      model: 'claude-sonnet-5-5',
      costUSD: 0.0104,
      ...{ responses: [{ cache_read_input_tokens: 2_000 }], cacheReadInputTokens: 2_000 },
    },
  ],
  ['prompts of more than 100,000 tokens cost more', 0.0005, { model: 'claude-haiku-5-5', costUSD: 0.002 }],
  ['not known', 0.0005, { model: 'claude-haiku-5-5', costUSD: 0.003 }],
  ['not known', 0.02, { costUSD: 0.03 }],
  ['not known', 0.12, { costUSD: 0.13, responses: [{ speed: 'fast' }, {}], outputTokens: 3_000 }],
])('a difference is explained: %s', (cause, listDollars, given) => {
  expect(check(given)).toEqual({ agreements: [], differences: [[given.costUSD, listDollars, cause]] });
});

test('of an account that grows, each step is compared by itself', () => {
  expect(check({ costUSD: 0.02 }).differences).toEqual([]);
  expect(check({ costUSD: 0.05, outputTokens: 2_000 })).toEqual({
    agreements: [{ model: MODEL, steps: 1, dollars: 0.02 }],
    differences: [[0.03, 0.02, 'not known']],
  });
});
