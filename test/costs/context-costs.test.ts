import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readContextCosts } from '../../src/costs/context-costs.js';
import { addUpCosts, listEntries, sumDollars } from '../../src/costs/cost-book.js';
import { findPrices } from '../../src/costs/list-prices.js';
import { readAllUsage } from '../../src/costs/read-usage.js';
import { appendLines, assistant, at, ms, SESSION, text, toolResult, toolUse, user } from '../support/lines.js';
import { recordings, transcriptsOf } from '../support/recording.js';
import { removeFolder } from '../support/remove-folder.js';

let root: string;
let path: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cc-langfuse-context-'));
  path = join(root, 'projects', '-work', `${SESSION}.jsonl`);
});

afterEach(() => removeFolder(root));

/** Opus 4.5: 5, 25, 0.5, and 6.25 or 10 dollars for a million tokens. */
const PRICES = { input: 5e-6, output: 25e-6, read: 0.5e-6, for5m: 6.25e-6, for1h: 10e-6 };

interface Counts {
  readonly read?: number;
  readonly for5m?: number;
  readonly for1h?: number;
  readonly input?: number;
  readonly output?: number;
}

function answer(id: string, content: unknown, seconds: number, counts: Counts, model = 'claude-opus-4-5'): object {
  const { read = 0, for5m = 0, for1h = 0, input = 0, output = 0 } = counts;
  const usage = {
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: for5m, ephemeral_1h_input_tokens: for1h },
    input_tokens: input,
    output_tokens: output,
  };
  const message = { id, role: 'assistant', model, content: [content], usage };
  return { ...assistant(id, content, { uuid: id, timestamp: at(seconds) }), message };
}

const words = (tokens: number) => 'word'.repeat(tokens);
const prompt = (n: number, seconds: number) =>
  user(words(10), { uuid: `u${n}`, promptId: `p${n}`, timestamp: at(seconds) });
const result = (id: string, tokens: number, seconds: number) =>
  user([toolResult(id, words(tokens))], { uuid: `r${id}`, timestamp: at(seconds) });

test('a result costs what it was sent for, and what each later request has read it for', () => {
  appendLines(
    path,
    prompt(1, 0),
    answer('m1', toolUse('t1', 'Bash'), 1, { for5m: 1_000, output: 100 }),
    result('t1', 900, 2),
    answer('m2', toolUse('t2', 'Read'), 3, { read: 1_000, for5m: 1_000, output: 50 }),
    result('t2', 450, 4),
    answer('m3', text('done'), 5, { read: 2_000, for5m: 500, output: 10 }),
  );
  const found = readContextCosts(path, findPrices);
  const shown = found?.parts.map(({ name, inContext, sent, readAgain, written }) => [
    name,
    inContext,
    ...[sent, readAgain, written].map((dollars) => Number(dollars.toFixed(9))),
  ]);
  const dollars = (value: number) => Number(value.toFixed(9));
  expect(shown).toEqual([
    // The call has 100 tokens and its result 900. Both were sent once and read once.
    ['Bash', 1_000, dollars(1_000 * PRICES.for5m), dollars(1_000 * PRICES.read), dollars(100 * PRICES.output)],
    ['(system prompt, tools, memory)', 990, dollars(990 * PRICES.for5m), dollars(2 * 990 * PRICES.read), 0],
    ['Read', 500, dollars(500 * PRICES.for5m), 0, dollars(50 * PRICES.output)],
    ['(answers)', 0, 0, 0, dollars(10 * PRICES.output)],
    ['(prompts)', 10, dollars(10 * PRICES.for5m), dollars(2 * 10 * PRICES.read), 0],
  ]);
  expect(found?.losses).toEqual([]);
});

test('where the cache was lost, it says how much was sent again, what that cost more, and what may have caused it', () => {
  appendLines(
    path,
    prompt(1, 0),
    answer('m1', text('one'), 1, { for5m: 10_000 }),
    prompt(2, 601),
    answer('m2', text('two'), 602, { read: 4_000, for5m: 7_000 }),
    prompt(3, 610),
    answer('m3', text('three'), 611, { for1h: 12_000 }, 'claude-sonnet-4-5'),
    prompt(4, 620),
    // A few tokens less are no loss.
    answer('m4', text('four'), 621, { read: 11_500, for1h: 1_000 }, 'claude-sonnet-4-5'),
  );
  expect(readContextCosts(path, findPrices)?.losses).toEqual([
    {
      at: ms(602),
      turn: 2,
      agent: '',
      tokens: 6_000,
      dollars: expect.closeTo(6_000 * (PRICES.for5m - PRICES.read), 9),
      pause: 600_000,
      isOtherModel: false,
    },
    {
      at: ms(611),
      turn: 3,
      agent: '',
      tokens: 11_000,
      dollars: expect.closeTo((11_000 * (6 - 0.3)) / 1e6, 9),
      pause: 8_000,
      isOtherModel: true,
    },
  ]);
});

test.each(recordings())('in $name the parts add up to what each session cost', (each) => {
  const entries = [...listEntries(readAllUsage(each.folder, join(root, 'state')), findPrices, ({ uses }) => uses)];
  for (const transcript of transcriptsOf(each)) {
    const own = entries.filter(({ session }) => session.sessionId === basename(transcript, '.jsonl'));
    const found = readContextCosts(transcript, findPrices);
    const parts = found?.parts.reduce((sum, { costs }) => sum + sumDollars(costs), 0);
    expect(parts).toBeCloseTo(sumDollars(addUpCosts(own)), 10);
    expect(sumDollars(found?.costs ?? addUpCosts([]))).toBeCloseTo(sumDollars(addUpCosts(own)), 10);
    for (const { name, costs, sent, readAgain, written } of found?.parts ?? [])
      if (name !== '(Claude Code itself)') expect(sent + readAgain + written).toBeCloseTo(sumDollars(costs), 10);
  }
});
