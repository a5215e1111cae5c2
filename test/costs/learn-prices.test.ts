import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listAllSteps, selectPricedSteps } from '../../src/costs/account-steps.js';
import { type LearnedPrices, learnPrices } from '../../src/costs/learn-prices.js';
import { readAllUsage } from '../../src/costs/read-usage.js';
import { type AccountCounts, account, accountLine, variedCounts } from '../support/cost-account.js';
import { assistant, at } from '../support/lines.js';
import { recordings } from '../support/recording.js';
import { removeFolder } from '../support/remove-folder.js';

let folder: string;
let count: number;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-prices-'));
  mkdirSync(join(folder, 'projects', '-work'), { recursive: true });
  count = 0;
});

afterEach(() => removeFolder(folder));

function writeLines(...lines: string[]): void {
  count += 1;
  const name = `${String(count).padStart(8, '0')}-0000-4000-8000-000000000000.jsonl`;
  writeFileSync(join(folder, 'projects', '-work', name), `${lines.join('\n')}\n`);
}

/** A response of a model, with more about what it used. */
function response(usage: object, model = 'claude-new-9'): string {
  const { message, ...rest } = assistant(`${count} ${model}`, 'done', { timestamp: at(1) }) as { message: object };
  return JSON.stringify({ ...rest, message: { ...message, model, usage: { output_tokens: 1, ...usage } } });
}

/** A session of one response, which costs so many times what it should. */
const writeSession = (counts: AccountCounts, costsTimes = 1) =>
  writeLines(accountLine({ 'claude-new-9': account([counts], costsTimes) }));

const learnAll = (claudeFolder: string) =>
  learnPrices(selectPricedSteps(listAllSteps(readAllUsage(claudeFolder, folder))));

function learn(): LearnedPrices | undefined {
  const [learned, ...others] = learnAll(folder);
  expect(others).toEqual([]);
  return learned;
}

const known = (price: number) => ({ state: 'known', price });
const unknown = (reason: string) => ({ state: 'unknown', reason });
const PRICES = {
  input: known(0.0000044),
  output: known(0.000022),
  cache_read_input_tokens: known(0.00000022),
  input_cache_creation_5m: known(0.0000055),
  input_cache_creation_1h: known(0.0000088),
  web_search_requests: { state: 'unused' },
};
const UNCONFIRMED = unknown('nothing confirms it yet');

describe('prices are learned', () => {
  test('from sessions in which every kind of token varies', () => {
    for (let n = 1; n <= 8; n += 1) writeSession(variedCounts(n));
    expect(learn()).toMatchObject({ model: 'claude-new-9', steps: 8, misfits: 0, prices: PRICES });
    expect(learn()?.deviation).toBeLessThan(1e-13);
  });

  test('from the steps within one session', () => {
    const lines = Array.from({ length: 8 }, (_, index) => {
      const responses = Array.from({ length: index + 1 }, (_each, n) => variedCounts(n + 1));
      return accountLine({ 'claude-new-9': account(responses) });
    });
    writeLines(...lines);
    expect(learn()).toMatchObject({ steps: 8, prices: PRICES });
  });

  test('for each web search, too', () => {
    for (let n = 1; n <= 9; n += 1) writeSession({ ...variedCounts(n), webSearchRequests: n % 4 });
    expect(learn()?.prices).toEqual({ ...PRICES, web_search_requests: known(0.01) });
  });

  test('although a few steps cost more, such as long prompts', () => {
    for (let n = 1; n <= 40; n += 1) writeSession(variedCounts(n), n === 7 || n === 23 ? 1.5 : 1);
    expect(learn()).toMatchObject({ steps: 40, misfits: 2, prices: PRICES });
  });
});

describe('nothing is guessed', () => {
  test('if no session confirms what the others say', () => {
    for (let n = 1; n <= 5; n += 1) writeSession(variedCounts(n));
    expect(learn()?.prices).toEqual({
      input: UNCONFIRMED,
      output: UNCONFIRMED,
      cache_read_input_tokens: UNCONFIRMED,
      input_cache_creation_5m: UNCONFIRMED,
      input_cache_creation_1h: UNCONFIRMED,
      web_search_requests: { state: 'unused' },
    });
  });

  test('about a kind that only one session has', () => {
    for (let n = 1; n <= 8; n += 1) writeSession({ ...variedCounts(n), webSearchRequests: n === 3 ? 2 : 0 });
    expect(learn()?.prices).toEqual({ ...PRICES, web_search_requests: UNCONFIRMED });
  });

  test('about kinds that never vary apart', () => {
    for (let n = 1; n <= 9; n += 1) {
      const for1h = (n * 59) % 211;
      writeSession({
        ...variedCounts(n),
        cacheCreationEphemeral5mInputTokens: 2 * for1h,
        cacheCreationEphemeral1hInputTokens: for1h,
      });
    }
    expect(learn()?.prices).toEqual({
      ...PRICES,
      input_cache_creation_5m: unknown('the sessions cannot separate it from cache write, 1 hour'),
      input_cache_creation_1h: unknown('the sessions cannot separate it from cache write, 5 minutes'),
    });
  });

  test('if the cost does not follow from the tokens', () => {
    for (let n = 1; n <= 40; n += 1) writeSession(variedCounts(n), n % 4 === 0 ? 1 + n / 10 : 1);
    expect(learn()).toMatchObject({ steps: 40, prices: undefined });
  });

  test('because a fork repeats what its parent says', () => {
    for (let n = 1; n <= 5; n += 1) for (let copy = 0; copy < 3; copy += 1) writeSession(variedCounts(n));
    expect(learn()).toMatchObject({ steps: 5, prices: { output: UNCONFIRMED } });
  });

  test('because a fork that did nothing repeats the sum of what its parent says', () => {
    const upTo = (n: number) => Array.from({ length: n }, (_, index) => variedCounts(index + 1));
    const line = (n: number) => accountLine({ 'claude-new-9': account(upTo(n)) }, { startTime: 7 });
    writeLines(...[1, 2, 3, 4, 5].map(line));
    writeLines(line(5));
    expect(learn()).toMatchObject({ steps: 5, prices: { output: UNCONFIRMED } });
    writeLines(line(6));
    expect(learn()).toMatchObject({ steps: 6, prices: PRICES });
  });

  test.each<[string, () => string[], object]>([
    ['was partly in fast mode', () => [response({ speed: 'fast' }), response({}, 'claude-new-9[1m]')], {}],
    ['was partly in the US', () => [response({ inference_geo: 'us' }), response({}, 'claude-new-9[1m]')], {}],
    ['was in the US, without a response of the model', () => [response({ inference_geo: 'us' }, 'claude-other-9')], {}],
    ['had a model that Claude Code has no price for', () => [response({})], { hasUnknownModelCost: true }],
  ])('from a session that %s', (_, responses, more) => {
    for (let n = 1; n <= 8; n += 1)
      writeLines(...responses(), accountLine({ 'claude-new-9': account([variedCounts(n)]) }, more));
    expect(learn()).toBeUndefined();
  });

  test('from an account that does not say how long cache writes live', () => {
    const { cacheCreationEphemeral5mInputTokens: _, ...older } = account([variedCounts(1)]);
    writeLines(accountLine({ 'claude-new-9': older }));
    expect(learn()).toBeUndefined();
  });
});

/** A session of one response, which ran in one way and costs so many times what it should. */
function writeRun(n: number, usage: object, costsTimes: number, more: AccountCounts = {}): void {
  const { webSearchRequests = 0 } = more;
  const counted = account([variedCounts(n)], costsTimes);
  const costUSD = counted.costUSD + webSearchRequests * 0.01;
  writeLines(response(usage), accountLine({ 'claude-new-9': { ...counted, ...more, costUSD } }));
}

const IN_US = { inference_geo: 'us' };

describe('what had to run in the US costs 1.1 times as much', () => {
  test('so the price is that of the others if all did', () => {
    for (let n = 1; n <= 8; n += 1) writeRun(n, IN_US, 1.1);
    expect(learn()).toMatchObject({ steps: 8, misfits: 0, isSeenInUs: true, isSeenElsewhere: false, prices: PRICES });
  });

  test('and those that did confirm the price of those that did not', () => {
    for (let n = 1; n <= 8; n += 1)
      writeRun(n, n % 2 === 0 ? IN_US : { inference_geo: 'global' }, n % 2 === 0 ? 1.1 : 1);
    expect(learn()).toMatchObject({ steps: 8, misfits: 0, isSeenInUs: true, isSeenElsewhere: true, prices: PRICES });
  });

  test('but not what its web searches cost', () => {
    for (let n = 1; n <= 9; n += 1) writeRun(n, IN_US, 1.1, { webSearchRequests: n % 4 });
    expect(learn()?.prices).toEqual({ ...PRICES, web_search_requests: known(0.01) });
  });
});

test('fast mode has prices of its own', () => {
  for (let n = 1; n <= 8; n += 1) writeRun(n, {}, 1);
  for (let n = 1; n <= 8; n += 1) writeRun(n, { ...IN_US, speed: 'fast' }, 2.2);
  const doubled = (price: { state: string; price?: number }) =>
    price.price === undefined ? price : { ...price, price: Number((price.price * 2).toPrecision(12)) };
  const fast = Object.fromEntries(Object.entries(PRICES).map(([kind, price]) => [kind, doubled(price)]));
  expect(learnAll(folder)).toMatchObject([
    { isFast: false, steps: 8, isSeenInUs: false, prices: PRICES },
    { isFast: true, steps: 8, isSeenInUs: true, prices: fast },
  ]);
});

test('the recordings tell the price of output to the last digit, and no other: the other kinds do not vary apart', () => {
  const sessions = recordings().flatMap((recording) => readAllUsage(recording.folder, join(folder, recording.name)));
  const learned = learnPrices(selectPricedSteps(listAllSteps(sessions)));
  const opus = learned.find(({ model }) => model === 'claude-opus-5-5');
  // All but `p-media` ran in the US.
  expect(opus).toMatchObject({
    misfits: 0,
    isSeenInUs: true,
    isSeenElsewhere: true,
    prices: { output: known(0.00002) },
  });
  expect(opus?.deviation).toBeLessThan(1e-14);
  expect(Object.values(opus?.prices ?? {}).filter(({ state }) => state === 'known')).toHaveLength(1);
});
