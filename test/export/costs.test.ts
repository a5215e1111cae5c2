import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { IN_US_TIMES } from '../../src/costs/list-prices.js';
import { addTiersForUs, buildTiers, defineModel, matchName } from '../../src/langfuse/models.js';
import { Exporter } from '../support/exporter.js';
import { langfuseAt } from '../support/langfuse-server.js';
import { appendLines, assistant, at, user } from '../support/lines.js';
import { recording, transcriptsOf } from '../support/recording.js';

let exporter: Exporter;

beforeEach(async () => {
  exporter = await Exporter.open();
});

afterEach(() => exporter.close());

const PRICES = {
  input: 4e-6,
  output: 20e-6,
  cache_read_input_tokens: 0.2e-6,
  input_cache_creation_5m: 5e-6,
  input_cache_creation_1h: 8e-6,
};

/** The model as `prices` defines it. */
const MODEL = {
  modelName: 'claude-opus-5-5',
  matchPattern: matchName('claude-opus-5-5'),
  unit: 'TOKENS',
  pricingTiers: addTiersForUs(buildTiers(PRICES, undefined), IN_US_TIMES),
} as const;

describe("the costs that Langfuse computes equal the dollars of Claude Code's own account", () => {
  // All ran in the US but `p-media`.
  test.each([
    'p-simple',
    'p-toolloop',
    'p-agentfg',
    'p-think',
    'p-streamjson',
    'q-hooks',
    'q-loop',
    'p-agent2',
    'p-wf',
    'p-media',
  ])('of %s', async (name) => {
    await defineModel(MODEL, langfuseAt(exporter.server.url), { deadline: Date.now() + 5_000 });
    const [path = '', ...others] = transcriptsOf(recording(name));
    expect(others).toEqual([]);
    await exporter.export(path);
    const costs = exporter.server.events.events.map(({ totalCost = 0 }) => totalCost);
    const accounts = readFileSync(path, 'utf8').match(/^\{"type":"cost-state".*$/gm) ?? [];
    const { totalCostUSD } = JSON.parse(accounts.at(-1) ?? '');
    expect(totalCostUSD).toBeGreaterThan(0);
    expect(costs.reduce((sum, cost) => sum + cost, 0)).toBeCloseTo(totalCostUSD, 12);
  });
});

describe('the fee for web searches', () => {
  const usage = { input_tokens: 100, output_tokens: 10, server_tool_use: { web_search_requests: 3 } };
  const line = assistant('m1', 'found', { timestamp: at(5) }) as { message: object };
  const write = (path: string, counts: object = usage) =>
    appendLines(path, user('search', { uuid: 'u', timestamp: at(1) }), {
      ...line,
      message: { ...line.message, usage: counts },
    });
  const pathOf = () => join(exporter.folder, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa.jsonl');

  test('is a cost of its own, beside the cost of the tokens', async () => {
    write(pathOf());
    await exporter.export(pathOf());
    const { url } = exporter.server;
    const keys = btoa('pk-lf-embedded:sk-lf-embedded');
    const response = await fetch(`${url}/api/public/v2/observations?type=GENERATION&fields=basic,usage`, {
      headers: { authorization: `Basic ${keys}` },
    });
    const { data } = (await response.json()) as { data: { id: string; name: string; [field: string]: unknown }[] };
    const [generation, fee, ...more] = data.toSorted((a, b) => a.name.localeCompare(b.name));
    expect(more).toEqual([]);
    expect(generation?.costDetails).toEqual({ input: 0.0005, output: 0.00025, total: 0.00075 });
    expect(fee).toMatchObject({
      name: 'web search fee',
      parentObservationId: generation?.id,
      usageDetails: {},
      costDetails: { web_search_requests: 0.03, total: 0.03 },
      totalCost: 0.03,
    });
  });

  test('is accepted by an older server', async () => {
    exporter.server.isOlder = true;
    write(pathOf());
    expect(await exporter.export(pathOf())).toMatchObject({ failure: undefined });
    const fee = exporter.server.observations.find(({ name }) => name === 'web search fee');
    expect(fee).toMatchObject({ model: undefined, metadata: { web_search_requests: 3 } });
  });

  test.each([0, -1, 0.5])('is not there for %d searches', async (count) => {
    write(pathOf(), { ...usage, server_tool_use: { web_search_requests: count } });
    await exporter.export(pathOf());
    expect(exporter.server.observations.filter(({ name }) => name === 'web search fee')).toEqual([]);
  });
});
