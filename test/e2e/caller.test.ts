import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createTraceId } from '@langfuse/tracing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendLines, appendTurn as appendTurnTo, assistant, at, toolResult, toolUse, user } from '../support/lines.js';
import { type Environment, run, Workplace } from '../support/program.js';
import { play, recording } from '../support/recording.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const A = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
const B = 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb';
const pathOf = (session: string) => workplace.transcriptOf(session);
const appendTurn = (session: string, n: number) => appendTurnTo(pathOf(session), n, { cwd: '/gone' });

/** A hook of a run of Claude Code that was started with these variables. */
function hook(session: string, env: Environment = {}, more: object = {}) {
  const payload = { session_id: session, transcript_path: pathOf(session), hook_event_name: 'Stop', ...more };
  return workplace.hook(payload, env);
}

const start = (session: string, env: Environment, source: string) =>
  hook(session, env, { hook_event_name: 'SessionStart', source });
const below = (digit: string) => ({
  CC_LANGFUSE_TRACEPARENT: `00-${digit.repeat(32)}-${digit.repeat(16)}-01`,
});
const seeded = (seed: string) => ({ CC_LANGFUSE_TRACE_SEED: seed });
const roots = () =>
  workplace.server.observations
    .filter(({ name }) => name.startsWith('Turn '))
    .toSorted((a, b) => a.startTime - b.startTime || a.traceId.localeCompare(b.traceId));
/** For each turn its name, and the beginnings of the ids of its trace and of its parent. */
const places = () =>
  roots().map(({ name, traceId, parentId }) => [name, traceId, parentId].map((part) => part?.slice(0, 6)).join(' '));
const failing = async (work: () => Promise<unknown>) => {
  workplace.server.misbehave = () => ({ status: 401 });
  await work();
  workplace.server.misbehave = () => undefined;
};
const arrivals = () => [...workplace.server.arrivals.values()];
const ownId = (session: string, n: number) => createTraceId(`${session}-${n}`);

describe('CC_LANGFUSE_TRACEPARENT', () => {
  test('puts the turns below its span, and sets no name, input, output or metadata of the trace', async () => {
    appendTurn(A, 1);
    appendTurn(A, 2);
    const attributes = new Set<string>();
    workplace.server.misbehave = (_, __, spans) => {
      for (const span of spans) for (const { key } of span.attributes) attributes.add(key);
      return undefined;
    };
    await hook(A, { ...below('c'), LANGFUSE_METADATA: '{"team":"x"}' });
    expect(places()).toEqual(['Turn 1 cccccc cccccc', 'Turn 2 cccccc cccccc']);
    for (const { trace } of workplace.server.observations)
      expect(trace).toMatchObject({ name: undefined, metadata: {}, sessionId: A, tags: ['claude-code'] });
    expect(
      workplace.server.observations
        .filter(({ isAppRoot }) => isAppRoot)
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(['Turn 1', 'Turn 2']);
    expect(roots()[1]?.metadata).toMatchObject({ team: 'x', turn_number: 2, cwd: '/gone', outcome: 'completed' });
    expect([...attributes].filter((name) => name.startsWith('langfuse.trace.'))).toEqual(['langfuse.trace.tags']);
    expect(workplace.server.observations).toHaveLength(4);
  });

  test('is named in the log and ignored if it is malformed', async () => {
    appendTurn(A, 1);
    await hook(A, { CC_LANGFUSE_TRACEPARENT: 'mine' });
    expect(roots()[0]?.traceId).toBe(await ownId(A, 1));
    expect(workplace.log[0]?.msg).toMatch(/^CC_LANGFUSE_TRACEPARENT: expected 00-/);
  });

  test('also applies to an agent that ends later, whichever run sends it', async () => {
    appendLines(
      pathOf(A),
      user('go', { uuid: 'u1', timestamp: at(0) }),
      assistant('m1', [toolUse('call', 'Agent', { subagent_type: 'Explore' })], { timestamp: at(1) }),
      user([toolResult('call', 'Async agent launched successfully.')], {
        timestamp: at(2),
        toolUseResult: { isAsync: true, status: 'async_launched', agentId: 'a1' },
      }),
      assistant('m2', 'wait', { timestamp: at(3) }),
    );
    await hook(A, below('c'), { background_tasks: [{ id: 'a1', status: 'running' }] });
    const agent = pathOf(A).replace('.jsonl', '/subagents/agent-a1.jsonl');
    mkdirSync(dirname(agent), { recursive: true });
    const lines = [user('look', { uuid: 'p', timestamp: at(4) }), assistant('m3', 'seen', { timestamp: at(5) })];
    writeFileSync(agent, lines.map((line) => `${JSON.stringify({ ...line, agentId: 'a1' })}\n`).join(''));
    await start(A, {}, 'resume');
    appendTurn(A, 2);
    await hook(A, {}, { hook_event_name: 'SessionEnd' });
    const ofTurn1 = workplace.server.observations.filter(({ traceId }) => traceId === 'c'.repeat(32));
    expect(ofTurn1.map(({ type }) => type).toSorted()).toEqual([
      ...['agent', 'agent', 'generation', 'generation', 'generation', 'tool'],
    ]);
    expect(new Set(ofTurn1.map(({ trace }) => JSON.stringify([trace.name, trace.metadata])))).toEqual(
      new Set(['[null,{}]']),
    );
    expect(places()).toEqual(['Turn 1 cccccc cccccc', `Turn 2 ${(await ownId(A, 2)).slice(0, 6)} `]);
  });
});

describe('CC_LANGFUSE_TRACE_SEED', () => {
  test("sets the trace ids that the SDKs' createTraceId returns for seed:number", async () => {
    appendTurn(A, 1);
    appendTurn(A, 2);
    await hook(A, seeded('run 7/item 3'));
    expect(roots().map(({ traceId }) => traceId)).toEqual([
      await createTraceId('run 7/item 3:1'),
      await createTraceId('run 7/item 3:2'),
    ]);
    expect(roots()[0]?.name).toBe('Turn 1');
  });

  test('sets no id if CC_LANGFUSE_TRACEPARENT is set, but the name of the trace, on every span', async () => {
    appendTurn(A, 1);
    await hook(A, { ...seeded('nightly'), ...below('c') });
    expect(places()).toEqual(['Turn 1 cccccc cccccc']);
    expect(workplace.server.observations.map(({ trace }) => trace.name)).toEqual(['nightly', 'nightly']);
  });
});

describe('CC_LANGFUSE_EXPERIMENT', () => {
  const experiment = (item: string, more: object = {}) => ({
    CC_LANGFUSE_EXPERIMENT: JSON.stringify({ id: 'e1', 'item.id': item, name: 'nightly', ...more }),
  });
  const experiments = () => workplace.server.events.events.map(({ type, experiment: found }) => [type, found] as const);

  test('puts its attributes on what has a cost, an expected output without secrets', async () => {
    appendTurn(A, 1);
    const more = { 'dataset.id': 'd', 'item.root_observation_id': 'r', 'item.expected_output': 'password=hunter22' };
    await hook(A, { ...below('c'), ...experiment('i1', more) });
    const attributes = { id: 'e1', 'item.id': 'i1', name: 'nightly', ...more };
    const expected = { ...attributes, 'item.expected_output': 'password=[redacted]' };
    expect(experiments()).toEqual([
      ['GENERATION', expected],
      ['AGENT', {}],
    ]);
  });

  test('keeps the expected output on the machine with CC_LANGFUSE_CAPTURE=metadata', async () => {
    appendTurn(A, 1);
    await hook(A, { ...experiment('i1', { 'item.expected_output': 'x' }), CC_LANGFUSE_CAPTURE: 'metadata' });
    expect(experiments()).toEqual([
      ['GENERATION', { id: 'e1', 'item.id': 'i1', name: 'nightly' }],
      ['AGENT', {}],
    ]);
  });

  test('is that of the run in which the turn began, and of no other session', async () => {
    appendTurn(A, 1);
    await failing(() => hook(A, experiment('i1')));
    appendTurn(A, 2);
    await hook(A);
    appendTurn(B, 1);
    await failing(() => hook(B));
    appendTurn(A, 3);
    utimesSync(pathOf(B), new Date(0), new Date(0));
    await hook(A, experiment('i3'));
    const generations = workplace.server.events.events.filter(({ type }) => type === 'GENERATION');
    const items = generations.map(({ sessionId, startTime, experiment: found }) =>
      [sessionId === A ? 'A' : 'B', startTime.slice(17, 19), found['item.id'] ?? '-'].join(' '),
    );
    expect(new Set(items)).toEqual(new Set(['A 10 i1', 'A 20 -', 'A 30 i3', 'B 10 -']));
  });

  test.each([
    ['no JSON', 'e1'],
    ['without an item', '{"id":"e1"}'],
    ['with an attribute that Langfuse does not have', '{"id":"e1","item.id":"i","dataset":"d"}'],
    ['with a number', '{"id":"e1","item.id":7}'],
  ])('is named in the log and ignored if it is %s', async (_, value) => {
    appendTurn(A, 1);
    await hook(A, { CC_LANGFUSE_EXPERIMENT: value });
    expect(experiments()).toEqual([
      ['GENERATION', {}],
      ['AGENT', {}],
    ]);
    expect(JSON.stringify(workplace.log)).toContain('CC_LANGFUSE_EXPERIMENT: expected a JSON object');
  });
});

describe('the parent or seed of a turn', () => {
  test('is that of the run in which the turn began, so a resumed session may continue elsewhere', async () => {
    appendTurn(A, 1);
    await hook(A, below('c'));
    await hook(A, below('c'), { hook_event_name: 'SessionEnd' });
    appendTurn(A, 2);
    await hook(A, below('d'));
    // The turn continues after its Stop, and its run ends.
    appendLines(pathOf(A), assistant('more', 'more', { timestamp: at(27) }));
    await hook(A, below('d'));
    appendTurn(A, 3);
    await hook(A, seeded('s'));
    appendTurn(A, 4);
    await hook(A);
    appendLines(pathOf(A), assistant('and more', 'and more', { timestamp: at(47) }));
    await hook(A, {}, { hook_event_name: 'SessionEnd' });
    expect(places()).toEqual([
      'Turn 1 cccccc cccccc',
      'Turn 2 dddddd dddddd',
      `Turn 3 ${(await createTraceId('s:3')).slice(0, 6)} `,
      `Turn 4 ${(await ownId(A, 4)).slice(0, 6)} `,
    ]);
    expect(arrivals().filter((times) => times > 1)).toEqual([2, 2]);
  });

  test('stays the same if the server refused the turn at first', async () => {
    appendTurn(A, 1);
    await failing(() => hook(A, below('c')));
    appendTurn(A, 2);
    await hook(A, below('d'));
    expect(places()).toEqual(['Turn 1 cccccc cccccc', 'Turn 2 dddddd dddddd']);
  });

  test('is known from SessionStart if the run was killed before its Stop', async () => {
    await start(A, below('c'), 'startup');
    appendTurn(A, 1);
    await start(A, below('d'), 'resume');
    appendTurn(A, 2);
    await hook(A, below('d'));
    await start(A, {}, 'resume');
    appendTurn(A, 3);
    await hook(A);
    await start(A, below('c'), 'resume');
    appendTurn(A, 4);
    await hook(A, below('c'));
    expect(places()).toEqual([
      'Turn 1 cccccc cccccc',
      'Turn 2 dddddd dddddd',
      `Turn 3 ${(await ownId(A, 3)).slice(0, 6)} `,
      'Turn 4 cccccc cccccc',
    ]);
  });

  test('stays the same if its Stop comes after the next run has started', async () => {
    await start(A, below('c'), 'startup');
    appendTurn(A, 1);
    await start(A, below('d'), 'resume');
    await hook(A, below('c'));
    appendTurn(A, 2);
    await hook(A, below('d'));
    expect(places()).toEqual(['Turn 1 cccccc cccccc', 'Turn 2 dddddd dddddd']);
  });

  test('does not apply to earlier turns, which ran elsewhere', async () => {
    appendTurn(A, 1);
    await start(A, below('c'), 'resume');
    appendTurn(A, 2);
    await hook(A, below('c'));
    expect(places()).toEqual(['Turn 2 cccccc cccccc']);
    await run(['backfill', '--yes', '--all', '--include-open'], workplace.env);
    expect(places()).toEqual([`Turn 1 ${(await ownId(A, 1)).slice(0, 6)} `, 'Turn 2 cccccc cccccc']);
    expect(arrivals()).toEqual([1, 1, 1, 1]);
  });

  test('is not that of the run that recovers it, nor that of a backfill', async () => {
    appendTurn(A, 1);
    await failing(() => hook(A, seeded('of a')));
    appendTurn(B, 1);
    await hook(B, { ...seeded('of b'), GITHUB_ACTIONS: 'true', GITHUB_RUN_ID: '7' });
    const byTrace = Object.fromEntries(roots().map((root) => [root.traceId, root.trace]));
    expect(Object.keys(byTrace).toSorted()).toEqual(
      [await createTraceId('of a:1'), await createTraceId('of b:1')].toSorted(),
    );
    expect(byTrace[await createTraceId('of a:1')]?.metadata).not.toHaveProperty('github_run_id');
    expect(byTrace[await createTraceId('of b:1')]?.metadata).toMatchObject({ github_run_id: 7 });
    const idle = new Date(Date.now() - 3_600_000);
    for (const session of [A, B]) utimesSync(pathOf(session), idle, idle);
    await run(['backfill', '--yes', '--all', '--force'], { ...workplace.env, ...seeded('by hand'), ...below('e') });
    expect(roots()).toHaveLength(2);
    expect(arrivals()).toEqual([2, 2, 2, 2]);
  });

  test('is not set if only a backfill knows the session', async () => {
    appendTurn(A, 1);
    await run(['backfill', '--yes', pathOf(A), '--include-open'], {
      ...workplace.env,
      ...seeded('by hand'),
      ...below('e'),
    });
    expect(roots().map(({ traceId }) => traceId)).toEqual([await ownId(A, 1)]);
  });

  test('is not passed on to the session before', async () => {
    await workplace.start({ session_id: A, transcript_path: pathOf(A) });
    appendTurn(A, 1);
    appendLines(pathOf(B), { ...user('question', { uuid: 'b1', timestamp: at(30) }), sessionId: A });
    appendLines(pathOf(B), user('question', { uuid: 'b2', timestamp: at(31), sessionId: B }));
    appendLines(pathOf(B), assistant('m', 'answer', { timestamp: at(32), sessionId: B }));
    await hook(B, seeded('of b'));
    expect(roots().map(({ trace, traceId }) => [trace.sessionId, traceId])).toEqual([
      [A, await ownId(A, 1)],
      [B, await createTraceId('of b:1')],
    ]);
  });
});

test('each turn of a recorded session that was resumed is below the span of its own run', async () => {
  let runs = 0;
  await play(recording('p-resume'), workplace.home, async ({ event, payload }) => {
    if (event === 'SessionStart') runs += 1;
    await workplace.hook(payload, below(String(runs)));
  });
  expect(places()).toEqual([
    'Turn 1 111111 111111',
    'Turn 2 222222 222222',
    'Turn 3 333333 333333',
    'Turn 4 444444 444444',
    'Turn 4 555555 555555',
  ]);
  expect(workplace.log).toEqual([]);
});

describe('the metadata of a trace', () => {
  const job = {
    GITHUB_ACTIONS: 'true',
    GITHUB_SERVER_URL: 'https://github.com',
    GITHUB_REPOSITORY: 'owner/name',
    GITHUB_RUN_ID: '77',
    GITHUB_RUN_ATTEMPT: '2',
    GITHUB_REF: 'refs/pull/42/merge',
    GITHUB_ACTOR: 'octocat',
    GITHUB_WORKFLOW: 'CI',
    GITHUB_SHA: 'f00d',
    GITHUB_TOKEN: 'ghs_secret',
  };
  const github = () => Object.entries(roots()[0]?.trace.metadata ?? {}).filter(([name]) => name.startsWith('github_'));

  test('describes the job in GitHub Actions', async () => {
    appendTurn(A, 1);
    await hook(A, job);
    expect(Object.fromEntries(github())).toEqual({
      github_repository: 'owner/name',
      github_run_id: 77,
      github_run_attempt: 2,
      github_run_url: 'https://github.com/owner/name/actions/runs/77/attempts/2',
      github_pull_request: 42,
      github_actor: 'octocat',
      github_workflow: 'CI',
      github_sha: 'f00d',
    });
    expect(JSON.stringify(workplace.state)).not.toContain('ghs_secret');
  });

  test.each([
    ['is a push', { ...job, GITHUB_REF: 'refs/heads/main' }, ['github_pull_request']],
    ['has no repository', { ...job, GITHUB_REPOSITORY: '' }, ['github_repository', 'github_run_url']],
  ])('leaves out what is unknown if the job %s', async (_, env, missing) => {
    appendTurn(A, 1);
    await hook(A, env);
    const all = ['actor', 'pull_request', 'repository', 'run_attempt', 'run_id', 'run_url', 'sha', 'workflow'];
    const expected = all.map((name) => `github_${name}`).filter((name) => !missing.includes(name));
    expect(
      github()
        .map(([name]) => name)
        .toSorted(),
    ).toEqual(expected);
  });

  test('says nothing of a job outside of GitHub Actions', async () => {
    appendTurn(A, 1);
    await hook(A, { ...job, GITHUB_ACTIONS: 'false' });
    expect(github()).toEqual([]);
  });
});
