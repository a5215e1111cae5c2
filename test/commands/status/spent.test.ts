import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { buildJsonStatus, formatStatus } from '../../../src/commands/status/report.js';
import { readSpent, type Spent } from '../../../src/commands/status/spent.js';
import { SessionIndex } from '../../../src/transcript/sessions/session-index.js';
import { account, accountLine } from '../../support/cost-account.js';
import { appendLines, user } from '../../support/lines.js';
import { removeFolder } from '../../support/remove-folder.js';

let claude: string;

beforeEach(() => {
  claude = mkdtempSync(join(tmpdir(), 'cc-langfuse-spent-'));
});

afterEach(() => removeFolder(claude));

const pathOf = (name: string) => join(claude, 'projects', '-work', `${name}.jsonl`);
/** Local noon of a day in November 2026, of which the 16th is a Monday. */
const november = (day: number, hour = 12) => new Date(2026, 10, day, hour);

/** A response of Opus 5 that cost so many dollars at list prices. */
function use(name: string, id: string, at: Date, dollars: number, model = 'claude-opus-5'): void {
  const message = {
    role: 'assistant',
    model,
    id,
    content: 'x',
    usage: { input_tokens: 0, output_tokens: dollars * 40_000 },
  };
  appendLines(pathOf(name), { type: 'assistant', uuid: id, timestamp: at.toISOString(), message });
}

const spend = (now: Date, sessions: { [name: string]: Date }) => {
  const changed = Object.entries(sessions).map(([name, at]) => ({ path: pathOf(name), changedAt: at.getTime() }));
  const folders = { claude, state: join(claude, 'state') };
  return readSpent(changed, folders, new SessionIndex(folders.state), now);
};

const pick = (spent: Spent | undefined) =>
  spent &&
  [spent.today, spent.week].map(({ dollars, listDollars, unpricedTokens }) => ({
    dollars,
    listDollars,
    unpricedTokens,
  }));
const listed = (listDollars: number) => ({ dollars: 0, listDollars, unpricedTokens: 0 });

test('a day begins at midnight and a week on Monday', () => {
  for (const [id, at, dollars] of [
    ['sunday', new Date(november(16, 0).getTime() - 1), 1],
    ['monday', november(16, 0), 2],
    ['yesterday', new Date(november(18, 0).getTime() - 1), 4],
    ['today', november(18, 0), 8],
  ] as const)
    use('a', id, at, dollars);
  expect(pick(spend(november(18), { a: november(18) }))).toEqual([listed(8), listed(14)]);
  expect(pick(spend(november(16), { a: november(18) }))).toEqual([listed(14), listed(14)]);
  expect(pick(spend(november(15), { a: november(18) }))).toEqual([listed(15), listed(15)]);
  expect(pick(spend(november(22), { a: november(18) }))).toEqual([listed(0), listed(14)]);
  expect(pick(spend(november(23), { a: november(18) }))).toBeUndefined();
});

test('a session that has not changed since Monday is not read', () => {
  use('old', 'm1', november(15), 1);
  use('new', 'm2', november(18), 2);
  const index = new SessionIndex(join(claude, 'state'));
  expect(pick(spend(november(18), { old: november(15), new: november(18) }))).toEqual([listed(2), listed(2)]);
  expect([...index.readAll('relations')].map(([path]) => path)).not.toContain(pathOf('old'));
});

test('is shown with what is in an account, at list price, and without a price, and has the same in JSON', () => {
  appendLines(pathOf('a'), user('question', { uuid: 'u1', timestamp: november(17).toISOString() }));
  use('a', 'm1', november(17), 3);
  const counts = { inputTokens: 0, outputTokens: 120_000 };
  appendLines(pathOf('a'), accountLine({ 'claude-opus-5': { ...account([counts as never]), costUSD: 3 } }));
  use('a', 'm2', november(18), 1.1);
  use('a', 'm3', november(18), 1, 'claude-secret-9');
  const spent = spend(november(18), { a: november(18) });
  const others = { version: '', tracing: { isOn: true, message: '', problems: [] }, pending: [], unsent: undefined };
  const status = {
    ...others,
    destination: undefined,
    sendsTo: '',
    here: undefined,
    newest: undefined,
    spent,
    isSubscription: false,
  };
  const lines = formatStatus(status, claude, november(18).getTime()).map(stripVTControlCharacters);
  expect(lines.slice(-2)).toEqual([
    'cost            today: ≈ $1.10, list price; 40,000 tokens without a list price',
    '                since Monday: $3.00 and ≈ $1.10, list price; 40,000 tokens without a list price',
  ]);
  expect(buildJsonStatus(status).cost).toEqual({
    today: { dollars: 0, listPriceDollars: 1.1, tokensWithoutPrice: 40_000 },
    week: { dollars: 3, listPriceDollars: 1.1, tokensWithoutPrice: 40_000 },
    subscription: false,
  });
});
