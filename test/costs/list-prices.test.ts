import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listAllSteps, selectPricedSteps } from '../../src/costs/account-steps.js';
import { findLongPromptPrices, findPrices, PRICE_TABLE, priceUsed } from '../../src/costs/list-prices.js';
import { readAllUsage } from '../../src/costs/read-usage.js';
import { mapUsed } from '../../src/costs/session-usage.js';
import { recordings } from '../support/recording.js';
import { removeFolder } from '../support/remove-folder.js';

const NOW = Date.parse('2026-11-20');
const OLD = Date.parse('2026-10-06T23:59:59Z');
const plain = (model: string, at = NOW) => findPrices({ model, isFast: false, isInUs: false, at });
const perMillion = (prices: ReturnType<typeof findPrices>) =>
  prices && Object.fromEntries(Object.entries(prices).map(([kind, price]) => [kind, Number((price * 1e6).toFixed(6))]));

describe('a list price', () => {
  test('has every kind, in dollars for one; unsplit cache writes cost as those for 5 minutes', () => {
    expect(perMillion(plain('claude-opus-5-5'))).toEqual({
      input: 4,
      output: 20,
      cache_read_input_tokens: 0.2,
      cache_creation_input_tokens: 5,
      input_cache_creation_5m: 5,
      input_cache_creation_1h: 8,
      web_search_requests: 10_000,
    });
  });

  test('is 1.1 times as much for tokens in the US, but not for web searches', () => {
    const prices = findPrices({ model: 'claude-opus-5-5', isFast: true, isInUs: true, at: NOW });
    expect(perMillion(prices)).toMatchObject({ input: 8.8, output: 44, web_search_requests: 10_000 });
  });

  test.each([
    ['claude-opus-4-6', 30],
    ['claude-opus-5', 10],
    ['claude-opus-5-5', 8],
  ])('of %s in fast mode is another one', (model, input) => {
    expect(perMillion(findPrices({ model, isFast: true, isInUs: false, at: NOW }))).toMatchObject({ input });
  });

  test('is not known for a fast mode that the list does not have', () => {
    expect(findPrices({ model: 'claude-sonnet-5', isFast: true, isInUs: false, at: NOW })).toBeUndefined();
  });

  test('is that of its day', () => {
    expect(perMillion(plain('claude-sonnet-5-5', OLD))).toMatchObject({ input: 2, cache_read_input_tokens: 0.2 });
    expect(perMillion(plain('claude-sonnet-5-5'))).toMatchObject({ input: 2, cache_read_input_tokens: 0.1 });
  });

  test('is another one for long prompts, where the model has one', () => {
    const priced = { isFast: false, isInUs: false, at: NOW };
    const long = findLongPromptPrices({ model: 'claude-haiku-5-5', ...priced });
    expect(long?.above).toBe(100_000);
    expect(perMillion(long?.prices)).toMatchObject({ input: 0.5, output: 2.5, cache_read_input_tokens: 0.05 });
    expect(findLongPromptPrices({ model: 'claude-opus-5-5', ...priced })).toBeUndefined();
  });

  test('says of when it is and from whom', () => {
    expect(PRICE_TABLE.describe([])).toMatch(/^list of 202\d-\d\d-\d\d \(Anthropic\)$/);
  });
});

describe('a model is found', () => {
  test.each([
    ['claude-opus-5-5[1m]', 'claude-opus-5-5'],
    ['us.anthropic.claude-opus-4-5-20251101-v1:0', 'claude-opus-4-5'],
    ['arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-haiku-5-5', 'claude-haiku-5-5'],
    ['claude-3-5-sonnet-v2@20241022', 'claude-3-5-sonnet'],
    ['claude-opus-4-8@20260528', 'claude-opus-4-8'],
    ['claude-haiku-4-5-20251001', 'claude-haiku-4-5'],
    ['claude-sonnet-4-20250514', 'claude-sonnet-4'],
    ['claude-sonnet-4-0', 'claude-sonnet-4'],
    ['claude-3-7-sonnet-latest', 'claude-3-7-sonnet'],
    ['anthropic/claude-opus-4.5', 'claude-opus-4-5'],
    ['Claude-Opus-5', 'claude-opus-5'],
  ])('as %s', (spelling, model) => {
    expect(plain(spelling)).toBeDefined();
    expect(plain(spelling)).toEqual(plain(model));
  });

  test.each([
    ...['claude-opus-6', 'claude-opus-5-55', 'claude-opus-5-fast', 'opus', 'claude-opus', 'minimax-m2.7', ''],
    ...['constructor', '__proto__', 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc'],
  ])('not as %j: nothing is guessed', (model) => {
    expect(plain(model)).toBeUndefined();
  });
});

test('the price of what was used is the sum over its kinds', () => {
  const used = { ...mapUsed(() => 0), input: 1_000_000, output: 100_000, web_search_requests: 3 };
  const prices = plain('claude-opus-5-5');
  expect(prices && priceUsed(used, prices)).toBeCloseTo(4 + 2 + 0.03, 12);
});

describe("the list has Claude Code's own prices", () => {
  let state: string;

  beforeEach(() => {
    state = mkdtempSync(join(tmpdir(), 'cc-langfuse-prices-'));
  });

  afterEach(() => removeFolder(state));

  test('in every step of every recorded account, to a billionth', () => {
    const steps = recordings().flatMap(({ folder }) => selectPricedSteps(listAllSteps(readAllUsage(folder, state))));
    const different = steps.filter((step) => {
      const prices = findPrices(step);
      return !prices || Math.abs(priceUsed(step.counts, prices) - step.dollars) > step.sum * 1e-9;
    });
    expect(different).toEqual([]);
    expect(steps).toHaveLength(90);
  });
});
