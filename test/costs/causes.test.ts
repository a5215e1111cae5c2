import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Context } from '../../src/costs/causes/context.js';
import { readAllUsage } from '../../src/costs/read-usage.js';
import { mapUsed, type Use, type Used } from '../../src/costs/session-usage.js';
import { appendLines, assistant, at, SESSION, text, toolResult, toolUse, user } from '../support/lines.js';
import { type Recording, recording, recordings } from '../support/recording.js';
import { removeFolder } from '../support/remove-folder.js';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cc-langfuse-causes-'));
});

afterEach(() => removeFolder(root));

const addUp = (uses: readonly Use[]) => mapUsed((kind) => uses.reduce((sum, { used }) => sum + used[kind], 0));

const readCauses = (folder: string) =>
  readAllUsage(folder, join(root, 'state'), { withCauses: true }).map(({ causes, ...session }) => {
    if (!causes) throw new Error('there are no causes');
    return { ...session, causes };
  });

const causesOf = ({ folder }: Recording) => readCauses(folder);

describe('all that was used has a cause', () => {
  test.each(recordings())('in $name', (each) => {
    const plain = readAllUsage(each.folder, join(root, 'plain'));
    const found = causesOf(each);
    expect(found.map(({ causes: _, ...session }) => session)).toEqual(plain);
    for (const { uses, causes } of found) {
      expect(addUp(causes.tasks)).toEqual(addUp(uses));
      expect(addUp(causes.parts)).toEqual(addUp(uses));
      expect(causes.parts.filter(({ part }) => part === '(not known)')).toEqual([]);
    }
  });
});

/** These agents belong to a turn of another session, or were started before there was any. */
const WITHOUT_TURN = ['q-clearbg', 'v2.0.76-oldtask', 'v2.0.76-resume'];

test('and nearly all a turn', () => {
  const names = recordings().filter((each) =>
    causesOf(each).some(({ causes }) => causes.tasks.some(({ turn }) => turn === 0)),
  );
  expect(names.map(({ name }) => name)).toEqual(WITHOUT_TURN);
});

/** How many tokens were used by each value of a field, the most first. */
function tokensBy<T extends Use>(uses: readonly T[], nameOf: (use: T) => string): { [name: string]: number } {
  const sums = new Map<string, number>();
  for (const use of uses) {
    const { web_search_requests: _, ...tokens } = use.used;
    const sum = Object.values(tokens).reduce((all, count) => all + count, 0);
    sums.set(nameOf(use), (sums.get(nameOf(use)) ?? 0) + sum);
  }
  return Object.fromEntries([...sums].toSorted(([, a], [, b]) => b - a));
}

test.each([
  ['i-agentbg2', { 'main thread': 134_514, 'general-purpose': 61_155, Explore: 12_218 }],
  // One of the two started the other.
  ['p-agentfgnest', { 'general-purpose': 36_920, 'main thread': 24_626 }],
  // Its agents wrote into the file of the main thread.
  ['v1.0.128-oldtask', { 'general-purpose': 50_189, 'main thread': 25_040 }],
  ['p-wf', { 'workflow-subagent': 50_550, 'main thread': 37_938 }],
  // No file says the type of the agent, but its call does. The others were started to warm up, by no call.
  ['v2.0.76-oldtask', { 'general-purpose': 49_854, 'main thread': 24_924, '(agent)': 24_914 }],
  // A teammate's file has its name as its type.
  ['q-team', { 'main thread': 50_954, 'general-purpose': 38_240 }],
])('what a subagent of %s used is its own', (name, expected) => {
  const tasks = causesOf(recording(name)).flatMap(({ causes }) => causes.tasks);
  expect(tokensBy(tasks, ({ agent }) => agent || 'main thread')).toEqual(expected);
});

test.each([
  // The model called the skill in its last turn; the second turn is a command without a skill.
  [
    'i-slash',
    { 'no skill': 37_982, myskill: 25_348, mycmd: 12_666 },
    { 'no command': 50_660, myskill: 12_670, mycmd: 12_666 },
  ],
  // It ran as an agent, once in the foreground and once in the background.
  ['r-forkskill', { 'no skill': 73_087, bgskill: 48_764 }, { 'no command': 121_851 }],
  ['r-goal', { 'no skill': 85_301 }, { goal: 73_119, 'no command': 12_182 }],
])('what a skill and a command of %s used includes their agents', (name, bySkill, byCommand) => {
  const tasks = causesOf(recording(name)).flatMap(({ causes }) => causes.tasks);
  expect(tokensBy(tasks, ({ skill }) => skill || 'no skill')).toEqual(bySkill);
  expect(tokensBy(tasks, ({ command }) => command || 'no command')).toEqual(byCommand);
});

test('an agent that no result and no file names is known by what the main thread repeats of it', () => {
  const path = join(root, 'projects', '-work', `${SESSION}.jsonl`);
  const progress = (agentId: string, callId: string, id: string) => ({
    type: 'progress',
    data: { type: 'agent_progress', agentId, message: answer(id, 'working', [0, 0, 100, 1]) },
    parentToolUseID: callId,
  });
  appendLines(
    path,
    user('first', { uuid: 'u1', timestamp: at(1) }),
    answer('m1', [toolUse('t1', 'Task', { subagent_type: 'Explore' })], [0, 0, 100, 1], { timestamp: at(2) }),
    progress('a1', 't1', 'm2'),
    answer('m3', [toolUse('t2', 'Task', { subagent_type: 'Plan' })], [0, 0, 100, 1], { timestamp: at(3) }),
    progress('a2', 't2', 'm4'),
    user('second', { uuid: 'u2', timestamp: at(4) }),
    answer('m5', 'done', [0, 0, 100, 1], { timestamp: at(5) }),
  );
  // The file of the other one is gone. This one began after the next prompt.
  appendLines(
    join(path.replace(/\.jsonl$/, ''), 'subagents', 'agent-a1.jsonl'),
    user('look', { uuid: 'u3', timestamp: at(6) }),
    answer('m2', 'working', [0, 0, 100, 5], { timestamp: at(7) }),
  );
  const [session] = readCauses(root);
  const tasks = session?.causes.tasks.map(({ agent, turn, used }) => [agent, turn, used.output]);
  expect(tasks).toEqual([
    ['', 1, 2],
    ['Explore', 1, 5],
    ['Plan', 1, 1],
    ['', 2, 1],
  ]);
});

/** What a response says that it used: read from the cache, written to it, not cached, and output. */
function answer(id: string, content: unknown, [read, written, input, output]: readonly number[], more: object = {}) {
  const line = assistant(id, content, more) as { message: object };
  const usage = {
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: written },
    input_tokens: input,
    output_tokens: output,
  };
  return { ...line, message: { ...line.message, usage } };
}

/** The parts of what these lines used: what was read from the cache, written to it, not cached, and output. */
function partsOf(...lines: object[]): { [part: string]: readonly number[] } {
  const folder = mkdtempSync(join(root, 'claude-'));
  const path = join(folder, 'projects', '-work', `${SESSION}.jsonl`);
  appendLines(path, ...lines.map((line, index) => ({ ...line, uuid: `line-${index}`, timestamp: at(index) })));
  const [session] = readCauses(folder);
  const parts = session?.causes.parts ?? [];
  const listCounts = ({ cache_read_input_tokens: read, input_cache_creation_5m: written, input, output }: Used) => [
    read,
    written,
    input,
    output,
  ];
  return Object.fromEntries(parts.map(({ part, used }) => [part, listCounts(used)]));
}

const words = (tokens: number) => 'word'.repeat(tokens);

describe('a part costs what it was read and written for, until it leaves the context', () => {
  test('a result is written once and then read by each later request', () => {
    const parts = partsOf(
      user(words(10)),
      answer('m1', [toolUse('t1', 'Bash')], [0, 900, 100, 20]),
      user([toolResult('t1', words(300))]),
      // 20 tokens are the call, so the result has 480: it is longer than it seems.
      answer('m2', [toolUse('t2', 'Read')], [900, 550, 50, 30]),
      user([toolResult('t2', words(200))]),
      answer('m3', [text('done')], [1_450, 300, 50, 40]),
    );
    expect(parts).toEqual({
      '(system prompt, tools, memory)': [1_890, 990, 90, 0],
      '(prompts)': [10, 10, 10, 0],
      Bash: [450, 500, 50, 20],
      Read: [0, 250, 50, 30],
      '(answers)': [0, 0, 0, 40],
    });
  });

  test('results that came together share by their lengths what the request had more', () => {
    const parts = partsOf(
      user(words(10)),
      answer('m1', [toolUse('t1', 'Bash'), toolUse('t2', 'Read')], [0, 0, 1_000, 0]),
      user([toolResult('t1', words(300)), toolResult('t2', words(100))]),
      answer('m2', [text('done')], [0, 0, 1_800, 40]),
    );
    expect(parts).toEqual({
      '(system prompt, tools, memory)': [0, 0, 1_980, 0],
      '(prompts)': [0, 0, 20, 0],
      Bash: [0, 0, 600, 0],
      Read: [0, 0, 200, 0],
      '(answers)': [0, 0, 0, 40],
    });
  });

  test('a compaction ends that, and the summary takes its place', () => {
    const parts = partsOf(
      user(words(10)),
      answer('m1', [toolUse('t1', 'Bash')], [0, 0, 1_000, 0]),
      user([toolResult('t1', words(300))]),
      answer('m2', [text('done')], [0, 0, 5_000, 0]),
      { type: 'system', subtype: 'compact_boundary', compactMetadata: { trigger: 'auto', preTokens: 5_000 } },
      user('This is the summary.', { isCompactSummary: true }),
      user(words(10), { promptId: 'p2' }),
      answer('m3', [text('done')], [0, 0, 1_500, 0]),
    );
    expect(parts).toEqual({
      '(system prompt, tools, memory)': [0, 0, 2_970, 0],
      '(prompts)': [0, 0, 30, 0],
      Bash: [0, 0, 4_000, 0],
      '(summary)': [0, 0, 500, 0],
    });
  });

  test('without the lines of requests, what was left out after a rewind shrinks all parts; with them, what was left out is known', () => {
    const lines = (sent: (id: string, keep: number, count: number) => object[]) => [
      ...sent('r1', 0, 1),
      user(words(10)),
      answer('m1', [toolUse('t1', 'Bash')], [0, 0, 1_000, 0], { requestRef: 'r1' }),
      user([toolResult('t1', words(300))]),
      ...sent('r2', 1, 3),
      answer('m2', [text('done')], [0, 0, 3_000, 0], { requestRef: 'r2' }),
      // The first prompt is edited.
      ...sent('r3', 0, 1),
      user(words(10), { promptId: 'p2' }),
      answer('m3', [text('done')], [0, 0, 1_000, 0], { requestRef: 'r3' }),
    ];
    const own = { '(system prompt, tools, memory)': 2_970, '(prompts)': 30, Bash: 2_000 };
    const sent = (id: string, keep: number, count: number) => {
      const tail = Array.from({ length: count - keep }, (_, index) => `${id} ${index}`);
      return [{ type: 'api-request', id, keep, tail, ...(id !== 'r1' && { base: 'r1' }) }];
    };
    expect(partsOf(...lines(sent))).toEqual(Object.fromEntries(Object.entries(own).map(([k, v]) => [k, [0, 0, v, 0]])));
    const shrunk = partsOf(...lines(() => []));
    expect(shrunk.Bash?.[2]).toBeGreaterThan(2_500);
  });

  test('hidden thoughts get the output that the calls do not explain', () => {
    const thinking = { type: 'thinking', thinking: '', signature: 'c2ln' };
    const parts = partsOf(user(words(10)), answer('m1', [thinking, text(words(40))], [0, 0, 1_000, 500]));
    expect(parts).toMatchObject({ '(thinking)': [0, 0, 0, 460], '(answers)': [0, 0, 0, 40] });
  });

  test('thoughts of earlier turns leave the context before anything else does', () => {
    const thinking = { type: 'thinking', thinking: words(200) };
    const turn = (n: number, input: number, ...content: object[]) => [
      user(words(10), { promptId: `p${n}` }),
      answer(`turn-${n}`, content, [0, 0, input, 0]),
    ];
    const parts = partsOf(
      user(words(10)),
      answer('m1', [thinking, toolUse('t1', 'Bash')], [0, 0, 1_000, 300]),
      user([toolResult('t1', words(100))]),
      answer('m2', [text('done')], [0, 0, 1_500, 0]),
      // Without the 300 tokens of the thought and its call, there would be no room for the prompt: twice.
      ...turn(2, 1_210, text('done')),
      ...turn(3, 1_220, text('done')),
    );
    const { '(thinking)': thoughts = [], '(prompts)': prompts = [] } = parts;
    expect(thoughts[2]).toBeLessThan(300);
    expect(prompts[2]).toBe(10 + 10 + 20 + 30);
    expect(Object.keys(parts)).not.toContain('(not known)');
  });

  test('the system prompt, the tools and the servers have their share if the line with them is there', () => {
    const tool = (name: string) => ({ name, description: words(100).slice(name.length) });
    const shape = { system: words(400), tools: [tool('Bash'), tool('mcp__lab__echo'), tool('mcp__lab__slow')] };
    const shapeHash = 'a'.repeat(64);
    const parts = partsOf(
      { type: 'api-request-shape', sessionId: SESSION, shapeHash, shape },
      { type: 'api-request', id: 'r1', tail: ['h1'], shapeHash },
      user(words(10)),
      answer('m1', [text('done')], [0, 0, 1_000, 0], { requestRef: 'r1' }),
    );
    expect(parts).toEqual({
      '(system prompt)': [0, 0, 400, 0],
      '(tool definitions)': [0, 0, 100, 0],
      'mcp__lab (definitions)': [0, 0, 200, 0],
      '(memory and reminders)': [0, 0, 290, 0],
      '(prompts)': [0, 0, 10, 0],
    });
  });
});

test('what a very long turn has used for a tool is known, although its oldest parts are joined', () => {
  const context = new Context();
  const sums = { read: 0, written: 0 };
  for (let n = 1; n <= 1_500; n += 1) {
    const { shares } = context.add(
      {
        model: 'claude-opus-5',
        request: undefined,
        answeredAt: n,
        firstBlockAt: n,
        lastBlockAt: n,
        answered: [{ role: 'tool', toolCallId: `t${n}`, toolName: ['Read', 'Bash'][n % 2], content: 'x'.repeat(120) }],
        blocks: [{ kind: 'text', text: 'y'.repeat(40) }],
        usage: {
          cache_read_input_tokens: n === 1 ? 0 : (n - 1) * 40 - 10,
          cache_creation_input_tokens: n === 1 ? 30 : 40,
          output_tokens: 10,
        },
      },
      undefined,
    );
    sums.read += shares.get('Read')?.cache_read_input_tokens ?? 0;
    sums.written += shares.get('Read')?.cache_creation_input_tokens ?? 0;
  }
  expect(context.parts.length).toBeLessThan(400);
  // The results of 750 calls have 30 tokens each, and each is read again by all later requests.
  expect(Math.round(sums.written)).toBe(750 * 30);
  expect(Math.round(sums.read)).toBe(30 * 750 * 749);
});

test('an input of a tool may be nested as deeply as JSON can be', () => {
  const depth = 20_000;
  const input = `${'{"a":'.repeat(depth)}"x"${'}'.repeat(depth)}`;
  const answer = { ...assistant('m1', [toolUse('t1')]), uuid: 'a1' };
  const message = {
    id: 'm1',
    model: 'claude-opus-5',
    content: [toolUse('t1', 'Read', '_')],
    usage: { output_tokens: 7 },
  };
  const line = JSON.stringify({ ...answer, message }).replace('"_"', input);
  appendLines(join(root, 'projects', '-project', `${SESSION}.jsonl`), user('question'), line);
  const [{ causes } = {}] = readCauses(root);
  expect(causes?.parts.map(({ part, used }) => [part, used.output])).toEqual([['Read', 7]]);
});
