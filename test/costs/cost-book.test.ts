import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listAllSteps } from '../../src/costs/account-steps.js';
import { addUpCosts, countTokens, listEntries } from '../../src/costs/cost-book.js';
import { findPrices } from '../../src/costs/list-prices.js';
import { readAllUsage } from '../../src/costs/read-usage.js';
import { mapUsed } from '../../src/costs/session-usage.js';
import { COUNTED_KINDS, type CountedKind } from '../../src/transcript/sessions/cost-account.js';
import { Exporter } from '../support/exporter.js';
import { appendLines, assistant, at, SESSION, user } from '../support/lines.js';
import { type Recording, recording, recordings, transcriptsOf } from '../support/recording.js';
import { removeFolder } from '../support/remove-folder.js';

let state: string;

beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'cc-langfuse-costs-'));
});

afterEach(() => removeFolder(state));

/** The sums of Claude Code's accounts, as the last line of each transcript has them. */
function sumAccounts(each: Recording): number {
  return transcriptsOf(each)
    .map((path) => /.*"cost-state".*"totalCostUSD":([\d.e-]+)/s.exec(readFileSync(path, 'utf8'))?.[1] ?? '0')
    .reduce((sum, dollars) => sum + Number(dollars), 0);
}

/** Where the last lines of the accounts are not what was spent, and why. */
const BESIDE_THE_LAST_LINES: { readonly [name: string]: { readonly dollars: number; readonly cause: string } } = {
  'p-resume': { dollars: -0.01567148, cause: 'the fork goes on with the account of its parent' },
  'q-twop': { dollars: 0.0134299, cause: 'the account of the other process ends on an earlier line' },
  'q-twoterm': { dollars: 0.01743786, cause: 'the account of the other process ends on an earlier line' },
};

const costsOf = ({ folder }: Recording) => [
  ...listEntries(readAllUsage(folder, state), findPrices, ({ uses }) => uses),
];

describe('the dollars of all sessions add up to the accounts of Claude Code', () => {
  test.each(recordings())('in $name', (each) => {
    const { dollars = 0 } = BESIDE_THE_LAST_LINES[each.name] ?? {};
    expect(addUpCosts(costsOf(each)).dollars).toBeCloseTo(sumAccounts(each) + dollars, 12);
  });

  test('of which 63 sessions have one', () => {
    const paid = recordings().flatMap((each) =>
      readAllUsage(each.folder, state).filter(({ points }) => points.length > 0),
    );
    expect(paid).toHaveLength(63);
  });
});

/** A compaction writes no line; the export finds its tokens in the account. */
const BEYOND_THE_LINES: { readonly [name: string]: number } = { 'p-bigusage': 12_336 };

describe('each response is counted once, as in the export', () => {
  test.each(recordings())('in $name', async (each) => {
    const exporter = await Exporter.open();
    try {
      for (const path of transcriptsOf(each)) await exporter.export(path);
      const exported = exporter.server.observations.reduce((sum, { usage }) => sum + (usage?.total ?? 0), 0);
      const counted = countTokens(addUpCosts(costsOf(each)).used);
      expect(counted + (BEYOND_THE_LINES[each.name] ?? 0)).toBe(exported);
    } finally {
      await exporter.close();
    }
  });
});

test('what an advisor used counts once, as that of its own model, as in the export', async () => {
  const path = join(state, 'projects', '-work', `${SESSION}.jsonl`);
  const iterations = [
    { type: 'message', input_tokens: 100, output_tokens: 60 },
    { type: 'advisor_message', model: 'claude-opus-4-7', input_tokens: 5_000, output_tokens: 700 },
    { type: 'advisor_message', model: 'claude-opus-4-7', input_tokens: 6_000, output_tokens: 800 },
  ];
  const block = (words: string) => {
    const line = assistant('m1', words, { timestamp: at(2) }) as { message: object };
    const usage = { input_tokens: 100, output_tokens: 60, iterations };
    return { ...line, message: { ...line.message, usage } };
  };
  appendLines(path, user('go', { uuid: 'u1', timestamp: at(1) }), block('asking'), block('advised'));
  const entries = [...listEntries(readAllUsage(state, state), findPrices, ({ uses }) => uses)];
  const tokens = entries.map(({ model, used }) => [model, countTokens(used)]);
  expect(tokens.toSorted()).toEqual([
    ['claude-opus-4-7', 12_500],
    ['claude-opus-5', 160],
  ]);
  const exporter = await Exporter.open();
  try {
    await exporter.export(path);
    const exported = exporter.server.observations.flatMap(({ model, usage }) => (usage ? [[model, usage.total]] : []));
    expect(exported.toSorted()).toEqual([
      ['claude-opus-4-7', 5_700],
      ['claude-opus-4-7', 6_800],
      ['claude-opus-5', 160],
    ]);
  } finally {
    await exporter.close();
  }
});

test('what a subagent used whose file is gone counts by what the main thread repeats of it, and otherwise by its file', () => {
  const path = join(state, 'projects', '-work', `${SESSION}.jsonl`);
  const usage = (output: number) => ({ input_tokens: 100, output_tokens: output });
  const answer = (id: string, output: number) => {
    const line = assistant(id, 'working', { timestamp: at(2) }) as { message: object };
    return { ...line, message: { ...line.message, usage: usage(output) } };
  };
  const progress = (id: string, output: number) => ({
    type: 'progress',
    data: { type: 'agent_progress', agentId: 'a1', message: answer(id, output) },
    timestamp: at(2),
  });
  appendLines(
    path,
    user('go', { uuid: 'u1', timestamp: at(1) }),
    progress('m1', 1),
    progress('m1', 5),
    progress('m2', 1),
  );
  appendLines(join(path.replace(/\.jsonl$/, ''), 'subagents', 'agent-a2.jsonl'), answer('m2', 50));
  const { used, agentTokens } = addUpCosts(listEntries(readAllUsage(state, state), findPrices, ({ uses }) => uses));
  expect({ used, agentTokens }).toMatchObject({ used: { input: 200, output: 55 }, agentTokens: 255 });
  const [session] = readAllUsage(state, state, { withCauses: true });
  expect(session?.causes?.tasks.map(({ agent }) => agent)).toEqual(['(agent)']);
});

test.each(['q-twop', 'q-twoterm'])(
  'of two processes in the session of %s, the accounts add up to its tokens',
  (name) => {
    const sessions = readAllUsage(recording(name).folder, state);
    const steps = listAllSteps(sessions);
    const sum = (kind: CountedKind) => steps.reduce((total, { counts }) => total + counts[kind], 0);
    const { used } = addUpCosts(listEntries(sessions, findPrices, ({ uses }) => uses));
    expect(Object.fromEntries(COUNTED_KINDS.map((kind) => [kind, sum(kind)]))).toEqual(
      Object.fromEntries(COUNTED_KINDS.map((kind) => [kind, used[kind]])),
    );
  },
);

test('a fork costs what it used itself, and its parent what that used', () => {
  const sessions = readAllUsage(recording('p-resume').folder, state);
  const entries = [...listEntries(sessions, findPrices, ({ uses }) => uses)];
  const dollars = sessions.map(({ sessionId }) => [
    basename(sessionId).slice(0, 8),
    addUpCosts(entries.filter(({ session }) => session.sessionId === sessionId)).dollars.toFixed(9),
  ]);
  expect(Object.fromEntries(dollars)).toEqual({ df9bf151: '0.015869491', '7cbf1538': '0.005218400' });
});

test('the dollars of an account are shared by the usual ratios if the list says that a model costs nothing', () => {
  const sessions = readAllUsage(recording('p-simple').folder, state);
  const share = (find: typeof findPrices) =>
    [...listEntries(sessions, find, ({ uses }) => uses)].map(({ dollars }) => dollars);
  expect(share(() => mapUsed(() => 0))).toEqual(share(() => undefined));
});
