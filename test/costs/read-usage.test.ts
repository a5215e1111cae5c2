import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listAllSteps } from '../../src/costs/account-steps.js';
import { readContextCosts } from '../../src/costs/context-costs.js';
import { findPrices } from '../../src/costs/list-prices.js';
import { readAllUsage } from '../../src/costs/read-usage.js';
import { findTranscripts } from '../../src/transcript/sessions/find-transcripts.js';
import { recallOverview } from '../../src/transcript/sessions/overview.js';
import { SessionIndex } from '../../src/transcript/sessions/session-index.js';
import { sessionIdOf } from '../support/generated.js';
import { appendLines, assistant, at, SESSION, user } from '../support/lines.js';
import { recording, recordings, transcriptsOf } from '../support/recording.js';
import { removeFolder } from '../support/remove-folder.js';

let root: string;
let state: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cc-langfuse-costs-'));
  state = join(root, 'state');
});

afterEach(() => removeFolder(root));

const rememberedIn = (folder: string) => readFileSync(join(folder, 'cc-langfuse_index'), 'utf8');

const several = recordings().filter((each) => transcriptsOf(each).length > 1);

test('some recordings have several sessions', () => {
  expect(several.length).toBeGreaterThan(5);
});

test.each(several)('what one session of $name used is the same if the others are not asked for', (each) => {
  const whole = readAllUsage(each.folder, state);
  const remembered = rememberedIn(state);
  for (const path of transcriptsOf(each)) {
    const sessionId = basename(path, '.jsonl');
    const find = (sessions: typeof whole) => sessions.find((session) => session.sessionId === sessionId);
    expect(find(whole)).toBeDefined();
    expect(find(readAllUsage(each.folder, state, { wanted: [path] }))).toEqual(find(whole));
    expect(rememberedIn(state)).toBe(remembered);
  }
});

test('a session that has moved to another project is counted once, also if the others are not asked for', () => {
  const [from = ''] = transcriptsOf(recording('i-simple'));
  const [before, after] = [join(root, 'projects', '-before'), join(root, 'projects', '-after')];
  cpSync(from, join(before, basename(from)));
  const [whole] = readAllUsage(root, state);
  renameSync(before, after);
  const path = join(after, basename(from));
  expect(readAllUsage(root, state, { wanted: [path] })).toEqual([{ ...whole, path }]);
  expect(rememberedIn(state)).not.toContain('-before');
});

test.each(['account', 'answer'])('of copies of a session, the one that has its last %s counts', (last) => {
  const [from = ''] = transcriptsOf(recording('i-simple'));
  const path = join(root, 'projects', '-whole', basename(from));
  cpSync(from, path);
  const whole = readAllUsage(root, state);
  const lines = readFileSync(from, 'utf8').split('\n');
  const isAccount = (line: string) => line.includes('"cost-state"');
  const isAnswer = (line: string) => line.includes('"type":"assistant"');
  const cut = last === 'account' ? lines.findIndex(isAccount) : lines.findLastIndex(isAnswer);
  for (const folder of ['-before', '-later']) {
    mkdirSync(join(root, 'projects', folder));
    writeFileSync(join(root, 'projects', folder, basename(from)), lines.slice(0, cut).join('\n'));
  }
  expect(whole).toMatchObject([{ path, points: [{}, {}] }]);
  expect(readAllUsage(root, state)).toEqual(whole);
});

/** The fork has the parent's answer, and a longer one of its own. */
function writeUnmarkedFork() {
  const answer = (id: string, seconds: number, tokens: number) => ({
    ...assistant(id, 'yes', { timestamp: at(seconds) }),
    message: { id, model: 'claude-opus-4-5', content: [], usage: { input_tokens: tokens } },
  });
  const copied = [
    user('<command-name>/cost</command-name>', { uuid: 'u0' }),
    user('question', { uuid: 'u1' }),
    answer('m1', 1, 1_000),
  ];
  const pathOf = (n: number) => join(root, 'projects', '-work', `${sessionIdOf(n)}.jsonl`);
  appendLines(pathOf(1), ...copied);
  appendLines(pathOf(2), ...copied, answer('m2', 2, 100_000));
  return pathOf(2);
}

test('of a fork without a mark only its own responses count, also if nothing but the list of sessions is remembered', () => {
  const fork = writeUnmarkedFork();
  const index = new SessionIndex(state);
  for (const path of findTranscripts(join(root, 'projects'), () => {})) recallOverview(path, index);
  const sessions = readAllUsage(root, state, { wanted: [fork], index });
  const own = sessions.find(({ path }) => path === fork);
  expect(own?.uses.map(({ used }) => used.input)).toEqual([100_000]);
});

test('of a fork without a mark only its own responses count if it is looked at alone', () => {
  const costs = readContextCosts(writeUnmarkedFork(), findPrices)?.costs;
  expect([costs?.used.input, costs?.listDollars]).toEqual([100_000, expect.closeTo(0.5, 9)]);
});

test('models may have names that all objects inherit', () => {
  const account = (n: number, ...models: string[]) => ({
    type: 'cost-state',
    modelUsage: Object.fromEntries(
      models.map((model) => [
        model,
        {
          inputTokens: n,
          outputTokens: 0,
          cacheReadInputTokens: 0,
          cacheCreationInputTokens: 0,
          cacheCreationEphemeral5mInputTokens: 0,
          cacheCreationEphemeral1hInputTokens: 0,
          costUSD: n,
        },
      ]),
    ),
    startTime: 1,
  });
  const answer = (model: string) => ({
    ...assistant(model, 'yes'),
    message: { id: model, model, usage: { input_tokens: 1, output_tokens: 1 } },
  });
  appendLines(
    join(root, 'projects', '-project', `${SESSION}.jsonl`),
    account(1, 'claude-opus-5'),
    user('question'),
    answer('constructor'),
    answer('toString'),
    account(2, 'claude-opus-5', 'constructor', 'toString'),
  );
  const sessions = readAllUsage(root, state, { withCauses: true });
  const [{ causes } = {}] = sessions;
  expect(causes?.tasks.map(({ model, used }) => [model, used.input])).toEqual([
    ['constructor', 1],
    ['toString', 1],
  ]);
  expect(listAllSteps(sessions).map(({ model, dollars }) => [model, dollars])).toEqual([
    ['claude-opus-5', 1],
    ['claude-opus-5', 1],
    ['constructor', 2],
    ['toString', 2],
  ]);
});

test('a count of web searches that is no count is none', () => {
  const searches = [2, -900, 0.5, 2 ** 60];
  const answers = searches.map((count) => ({
    ...assistant(`m${count}`, 'yes'),
    message: {
      id: `m${count}`,
      model: 'claude-opus-5',
      usage: { input_tokens: 1, server_tool_use: { web_search_requests: count } },
    },
  }));
  appendLines(join(root, 'projects', '-project', `${SESSION}.jsonl`), user('question'), ...answers);
  const [{ uses, causes } = { uses: [] }] = readAllUsage(root, state, { withCauses: true });
  const count = (list: typeof uses = []) => list.reduce((sum, { used }) => sum + used.web_search_requests, 0);
  expect([count(uses), count(causes?.tasks), count(causes?.parts)]).toEqual([2, 2, 2]);
});

test('the type of an agent that is known later is not the remembered one', () => {
  const transcript = join(root, 'projects', '-project', `${SESSION}.jsonl`);
  const answer = (id: string) => ({
    ...assistant(id, 'yes'),
    message: { id, model: 'claude-opus-5', usage: { input_tokens: 1 } },
  });
  appendLines(transcript, user('question'), answer('m1'));
  const agent = join(root, 'projects', '-project', SESSION, 'subagents', 'agent-a1');
  appendLines(`${agent}.jsonl`, user('look'), answer('s1'));
  const agents = () =>
    readAllUsage(root, state, { withCauses: true }).flatMap(({ causes }) => causes?.tasks.map((task) => task.agent));
  expect(agents()).toEqual(['', '(agent)']);
  writeFileSync(`${agent}.meta.json`, JSON.stringify({ agentType: 'Explore' }));
  expect(agents()).toEqual(['', 'Explore']);
});

test('a transcript that Claude Code deletes meanwhile is left out, and its fork counts all', () => {
  const folder = join(root, 'projects', '-project');
  const answer = (id: string) => ({
    ...assistant(id, 'yes'),
    message: { id, model: 'claude-opus-5', usage: { input_tokens: 1 } },
  });
  const question = user('question', { uuid: 'u1' });
  const [parent, fork] = [join(folder, `${sessionIdOf(1)}.jsonl`), join(folder, `${sessionIdOf(2)}.jsonl`)];
  appendLines(parent, question, answer('m1'));
  appendLines(fork, question, answer('m1'), answer('m2'));
  const onRead = (done: number) => done === 1 && rmSync(parent);
  const read = (how: Parameters<typeof readAllUsage>[2] = {}) =>
    readAllUsage(root, state, how).map(({ path, uses }) => [path, ...uses.map(({ used }) => used.input)]);
  expect(read({ onRead })).toEqual([[fork, 2]]);
  expect(read()).toEqual([[fork, 2]]);
});

test('a fork that begins with another prompt is read with its parent, also if only that is asked for', () => {
  const folder = join(root, 'projects', '-project');
  const answer = (id: string, more: object = {}) => ({
    ...assistant(id, 'yes', more),
    message: { id, model: 'claude-opus-5', usage: { input_tokens: 1 } },
  });
  const [parent, fork] = [join(folder, `${sessionIdOf(1)}.jsonl`), join(folder, `${sessionIdOf(2)}.jsonl`)];
  appendLines(parent, user('question', { uuid: 'u1' }), answer('m1', { timestamp: at(2) }));
  const copied = { timestamp: at(1), forkedFrom: { sessionId: sessionIdOf(1) } };
  appendLines(fork, user('another', { uuid: 'u2' }), answer('m0', { timestamp: at(1) }), answer('m1', copied));
  const whole = readAllUsage(root, state).find(({ path }) => path === parent);
  const remembered = rememberedIn(state);
  expect(readAllUsage(root, state, { wanted: [parent] }).find(({ path }) => path === parent)).toEqual(whole);
  expect(rememberedIn(state)).toBe(remembered);
});
