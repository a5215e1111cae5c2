import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findPrices, PRICE_TABLE, priceUsed } from '../../src/costs/list-prices.js';
import { readAllUsage } from '../../src/costs/read-usage.js';
import type { Use } from '../../src/costs/session-usage.js';
import { findTurnStart, readTurnSpending } from '../../src/costs/spending.js';
import { readAllTurns } from '../../src/transcript/turns/read-all-turns.js';
import { appendLines, assistant, at, ms, toolResult, user } from '../support/lines.js';
import { recording, recordings, transcriptsOf } from '../support/recording.js';

const pricesOf = (use: Use) => findPrices(use) ?? expect.fail('there is no price');
let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-spending-'));
  path = join(folder, 'a.jsonl');
});

afterEach(() => rmSync(folder, { recursive: true }));

const prompt = (n: number, more: object = {}) => user(`question ${n}`, { uuid: `u${n}`, timestamp: at(n), ...more });
/** What the newest turn has used, from a byte on. */
const spend = (transcript: string, from = 0) => {
  const start = findTurnStart(transcript, from);
  return start && { turn: start.id, ...readTurnSpending(transcript, start, PRICE_TABLE.findPrices) };
};

describe('a session of one turn has used what its own account says', () => {
  test.each(['p-simple', 'p-toolloop', 'p-agentfg', 'p-agentfgnest', 'p-think'])('%s', (name) => {
    const [transcript = ''] = transcriptsOf(recording(name));
    const lines = readFileSync(transcript, 'utf8').split('\n');
    const account = JSON.parse(lines.findLast((line) => line.startsWith('{"type":"cost-state"')) ?? '');
    const { dollars, unpricedTokens } = spend(transcript) ?? {};
    expect({ dollars: dollars?.toFixed(9), unpricedTokens }).toEqual({
      dollars: account.totalCostUSD.toFixed(9),
      unpricedTokens: 0,
    });
  });
});

test.each([
  ['the last prompt with its id, which a fork has copied to all', ['p', 'p', 'p'], 'p', 'u5', undefined],
  ['the prompt with its id, up to the next one', ['p', 'q', 'r'], 'p', 'u1', ms(3)],
  ['the newest prompt, if none has its id', ['p', 'q', 'r'], 's', 'u5', undefined],
])('the turn of a Stop begins at %s', (_, ids, promptId, id, until) => {
  for (const [n, each] of ids.entries())
    appendLines(
      path,
      prompt(2 * n + 1, { promptId: each }),
      assistant(`m${n}`, 'x', { uuid: `a${n}`, timestamp: at(2 * n + 2) }),
    );
  const start = findTurnStart(path, 0, promptId);
  expect([start?.id, start?.until]).toEqual([id, until]);
});

test('each response with a long prompt costs more, but not several that are long together', () => {
  const answer = (id: string, read: number, written: number) => ({
    ...assistant(id, 'x', { timestamp: at(2), uuid: id }),
    message: {
      role: 'assistant',
      id,
      model: 'claude-haiku-5-5',
      usage: { cache_read_input_tokens: read, cache_creation_input_tokens: written },
    },
  });
  const claude = join(folder, 'claude');
  const transcript = join(claude, 'projects', '-work', 'a.jsonl');
  appendLines(transcript, prompt(1), answer('m1', 60_000, 40_000), answer('m2', 60_000, 40_001));
  const dollars = (60_000 * 0.01 + 40_000 * 0.125 + 60_000 * 0.05 + 40_001 * 0.625) / 1e6;
  expect(spend(transcript)?.dollars).toBeCloseTo(dollars, 12);
  const read = () => readAllUsage(claude, join(folder, 'state'), { withCauses: true });
  // The second time it is remembered.
  for (const { uses: all, causes } of [...read(), ...read()]) {
    const sums = [all, causes?.tasks, causes?.parts].map((uses = []) =>
      uses.reduce((sum, use) => sum + priceUsed(use.used, pricesOf(use)), 0),
    );
    expect(sums).toEqual(sums.map(() => expect.closeTo(dollars, 12)));
  }
});

describe('the newest turn', () => {
  test('begins at the last prompt, whatever else users have lines for', () => {
    appendLines(path, prompt(1), assistant('m1', 'x', { timestamp: at(2) }), prompt(3));
    const others = [
      user([toolResult('t1')], { uuid: 'u4', timestamp: at(4) }),
      user('a reminder', { uuid: 'u5', timestamp: at(5), isMeta: true }),
      user('look', { uuid: 'u6', timestamp: at(6), isSidechain: true }),
      user('[Request interrupted by user]', { uuid: 'u7', timestamp: at(7) }),
    ];
    appendLines(path, ...others);
    const from = readFileSync(path, 'utf8').indexOf('{"type":"user","message":{"role":"user","content":"question 3"');
    expect(findTurnStart(path, 0)).toEqual({ id: 'u3', at: ms(3), from });
    expect(findTurnStart(path, from)).toEqual({ id: 'u3', at: ms(3), from });
    expect(findTurnStart(path, from + 1)).toBeUndefined();
  });

  test.each(recordings().flatMap(transcriptsOf))('begins where the last turn of %s does', (transcript) => {
    const last = [...readAllTurns(transcript, 'main', basename(transcript, '.jsonl'))].at(-1);
    expect(findTurnStart(transcript, 0)?.from).toBe(last?.prompts[0].offset);
  });

  test('begins at a command that prints something before the model answers', () => {
    const [transcript = ''] = transcriptsOf(recording('r-goal'));
    const lines = readFileSync(transcript, 'utf8').split('\n');
    const goal = lines.findIndex((line) => line.includes('<command-name>/goal'));
    const later = lines.findIndex((line) => line.includes('"promptSource":"typed"'));
    writeFileSync(path, lines.slice(0, later).join('\n'));
    expect(findTurnStart(path, 0)?.from).toBe(Buffer.byteLength(lines.slice(0, goal).join('\n')) + 1);
  });

  test('begins at a command only if the model answers it', () => {
    const command = (name: string, second: number) =>
      user(`<command-name>/${name}</command-name>`, { uuid: name, timestamp: at(second) });
    appendLines(path, prompt(1), command('clear', 2), user('<local-command-stdout></local-command-stdout>'));
    appendLines(path, assistant('m1', 'x', { timestamp: at(3) }));
    expect(findTurnStart(path, 0)?.id).toBe('u1');
    appendLines(path, command('review', 4));
    expect(findTurnStart(path, 0)?.id).toBe('u1');
    appendLines(path, assistant('m2', 'x', { timestamp: at(5) }));
    expect(findTurnStart(path, 0)?.id).toBe('review');
  });
});
