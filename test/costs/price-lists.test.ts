import { calcPrice } from '@pydantic/genai-prices';
import { describe, expect, test } from 'vitest';
import langfuse from '../../fixtures/prices/langfuse.json' with { type: 'json' };
import { KINDS, readCatalog } from '../../scripts/price-catalog.js';
import { findPrices } from '../../src/costs/list-prices.js';
import table from '../../src/costs/price-table.json' with { type: 'json' };

const AT = Date.parse(table.date);
type Kind = (typeof KINDS)[number];
/** In dollars for a million. A list need not have a price for each kind. */
type Listed = { readonly [kind in Kind]?: number | undefined };

function ours(model: string, isFast: boolean): Listed | undefined {
  const prices = findPrices({ model, isFast, isInUs: false, at: AT });
  return prices && Object.fromEntries(KINDS.map((kind) => [kind, Number((prices[kind] * 1e6).toPrecision(12))]));
}

/** `cache_read_input_tokens 0.1, theirs 0.2` for each kind whose price differs. */
function compare(own: Listed | undefined, theirs: Listed | undefined): string[] {
  if (!own || !theirs) return own ? ['only here'] : theirs ? ['only there'] : [];
  return KINDS.filter((kind) => own[kind] !== theirs[kind]).map(
    (kind) => `${kind} ${own[kind]}, theirs ${theirs[kind] ?? 'none'}`,
  );
}

function listDifferences(names: readonly string[], isFast: boolean, find: (model: string) => Listed | undefined) {
  const different = names.map((model) => [model, compare(ours(model, isFast), find(model))] as const);
  return Object.fromEntries(different.filter(([, differences]) => differences.length > 0));
}

describe("Langfuse's list has the same prices", () => {
  type Facts = {
    readonly [model: string]: { readonly standard: (number | null)[]; readonly fast?: (number | null)[] };
  };
  const facts: Facts = langfuse.models;
  const theirs = (tier: 'standard' | 'fast') => (model: string) => {
    // It names some models twice or with a date; all of them cost the same.
    const spelled = Object.keys(facts).filter((name) => name === model || isSame(name, model));
    const row = facts[spelled[0] ?? '']?.[tier];
    return row && Object.fromEntries(KINDS.map((kind, index) => [kind, row[index] ?? undefined]));
  };
  const isSame = (name: string, model: string) => name.replaceAll('.', '-').replace(/-(\d{8}|latest)$/, '') === model;
  const names = [...new Set([...Object.keys(table.models), ...Object.keys(facts)])];

  test('but for the models that are newer than it, those older than Claude Code, and kinds it does not price', () => {
    expect(listDifferences(names, false, theirs('standard'))).toEqual({
      // The list is of 21 August 2026.
      ...Object.fromEntries(
        ['fable-5-1', 'fable-5-2', 'haiku-5-5', 'mythos-5-1', 'mythos-5-2', 'opus-5-5', 'sonnet-5-5'].map((name) => [
          `claude-${name}`,
          ['only here'],
        ]),
      ),
      // Claude Code never ran them.
      ...Object.fromEntries(
        ['1.1', '1.2', '1.3', '2.0', '2.1', 'instant-1', 'instant-1.2'].map((name) => [
          `claude-${name}`,
          ['only there'],
        ]),
      ),
      // Langfuse has no prices for their cache.
      ...Object.fromEntries(
        ['claude-3-haiku', 'claude-3-haiku-20240307'].map((name) => [
          name,
          [
            'cache_read_input_tokens 0.03, theirs none',
            'input_cache_creation_5m 0.3, theirs none',
            'input_cache_creation_1h 0.5, theirs none',
          ],
        ]),
      ),
      ...Object.fromEntries(
        ['claude-3-opus', 'claude-3-opus-20240229'].map((name) => [
          name,
          [
            'cache_read_input_tokens 1.5, theirs none',
            'input_cache_creation_5m 18.75, theirs none',
            'input_cache_creation_1h 30, theirs none',
          ],
        ]),
      ),
    });
  });

  test('in fast mode, too, but for models whose fast mode it does not have', () => {
    expect(listDifferences(names, true, theirs('fast'))).toEqual({
      // The list is of 21 August 2026.
      'claude-fable-5-2': ['only here'],
      'claude-mythos-5-2': ['only here'],
      'claude-opus-5-5': ['only here'],
      // Langfuse has one price for them.
      'claude-opus-4-6': ['only here'],
      'claude-opus-4-7': ['only here'],
    });
  });
});

describe("Pydantic's list has the same prices", () => {
  const NAMES: { readonly [kind in Kind]: string } = {
    input: 'input_mtok',
    output: 'output_mtok',
    cache_read_input_tokens: 'cache_read_mtok',
    input_cache_creation_5m: 'cache_write_mtok',
    input_cache_creation_1h: 'cache_write_1h_mtok',
  };
  const find = (model: string): Listed | undefined => {
    const options = { providerId: 'anthropic', timestamp: new Date(AT) };
    const found = calcPrice({ input_tokens: 1 }, model, options)?.model_price;
    if (!found) return undefined;
    const entries = KINDS.map((kind) => {
      const price = found[NAMES[kind]];
      // Prompts of more than 200,000 tokens cost more; here they are in `longPrompt`.
      return [kind, typeof price === 'object' ? price.base : price] as const;
    });
    return Object.fromEntries(entries);
  };

  test('but for the models that are newer than it', () => {
    expect(listDifferences(Object.keys(table.models), false, find)).toEqual({
      // The package is of 23 September 2026.
      'claude-fable-5-2': ['only here'],
      'claude-haiku-5-5': ['only here'],
      // With limited availability.
      'claude-mythos-5': ['only here'],
      'claude-mythos-5-1': ['only here'],
      'claude-mythos-5-2': ['only here'],
      // It takes the prices of Claude Sonnet 5, and these are its prices up to 6 October 2026.
      'claude-sonnet-5-5': ['cache_read_input_tokens 0.1, theirs 0.2'],
    });
  });
});

test('the script reads the prices in the program of Claude Code', () => {
  const program = [
    'x={inputTokens:30,outputTokens:150,promptCacheWriteTokens:37.5,promptCacheWrite1hTokens:60,',
    'promptCacheReadTokens:3,webSearchRequests:0.01};',
    'function f(e){if(e==="claude-a-4-0"||e==="claude-a-6")return x;return}',
    'y={pricing_tiers:{one:{input:5,output:25,cache_write_5m:6.25,cache_write_1h:10,cache_read:0.5,web_search:0.01},',
    'two:{input:0.1,output:0.5,cache_write_5m:0.125,cache_write_1h:0.2,cache_read:0.01,web_search:0.01,long_prompt:',
    '{above_prompt_tokens:1e5,input:0.5,output:2.5,cache_write_5m:0.625,cache_write_1h:1,cache_read:0.05}}},',
    'models:[{id:"claude-a-4-0",family:"a",z:[{q:1}],pricing:"one"},{id:"claude-b-5",family:"b",pricing:"two"}],aliases:{}}',
  ].join('');
  expect(readCatalog(program)).toEqual({
    'claude-a-4': { standard: [5, 25, 0.5, 6.25, 10], fast: [30, 150, 3, 37.5, 60] },
    'claude-b-5': {
      standard: [0.1, 0.5, 0.01, 0.125, 0.2],
      longPrompt: { above: 100_000, prices: [0.5, 2.5, 0.05, 0.625, 1] },
    },
  });
  expect(() => readCatalog('nothing')).toThrow('in another form');
});
