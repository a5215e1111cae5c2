import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LangfuseServer } from '../support/langfuse-server.js';
import { appendLines, appendTurn, assistant, at, SESSION, toolResult, toolUse, user } from '../support/lines.js';
import { type HookEvent, run, Workplace } from '../support/program.js';

// An agent of which no call is known has a trace of its own, unless what started it may still come, or was to stay.

const OTHER = '22222222-2222-4222-8222-222222222222';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const path = (session = SESSION) => workplace.transcriptOf(session);
const now = (later = 0) => new Date(Date.now() + later).toISOString();
const everything = () => JSON.stringify(workplace.server.observations);
const command = (...args: string[]) => run(args, workplace.env, '', { cwd: workplace.home });

const hook = (event: string, more?: HookEvent) => workplace.callHook(event, more);

const stop = (more: HookEvent = {}) => hook('Stop', { prompt_id: 'p1', last_assistant_message: 'answer 1', ...more });
const end = () => hook('SessionEnd', { reason: 'other' });

/** Hooks of another session, which recover what this one has left. */
async function recover(): Promise<void> {
  workplace.letIdle();
  await hook('SessionStart', { session: OTHER, source: 'startup' });
  appendTurn(path(OTHER), 90, { cwd: workplace.home });
  await hook('Stop', { session: OTHER, prompt_id: 'p90', last_assistant_message: 'answer 90' });
  expect(everything()).toContain('answer 90');
}

const agentFile = (id: string) => join(dirname(path()), SESSION, 'subagents', `${id}.jsonl`);

/** What an agent of the first prompt is asked and says, and what its meta file says. */
function agentSays(id: string, text: string, { from = at(12), to = at(13), ...meta }: { [field: string]: unknown }) {
  const own = { isSidechain: true, agentId: id, sessionId: SESSION, promptId: 'p1' };
  const file = agentFile(id.includes('/') ? id.replace(/[^/]+$/, 'agent-$&') : `agent-${id}`);
  appendLines(
    file,
    user(`do ${id}`, { ...own, uuid: `${id}-p`, timestamp: from }),
    assistant(`${id}-m`, text, { ...own, uuid: `${id}-a`, parentUuid: `${id}-p`, timestamp: to }),
  );
  if (Object.keys(meta).length > 0) writeFileSync(file.replace('.jsonl', '.meta.json'), JSON.stringify(meta));
  return file;
}

/** The observation of an agent and those above it, up to the root. */
function lineage(agentId: string): string[] {
  const all = workplace.server.observations;
  const names: string[] = [];
  for (let each = all.find(({ metadata }) => metadata.agent_id === agentId); each; ) {
    names.push(`${each.type} ${each.name}`);
    const { traceId, parentId } = each;
    each = all.find((other) => other.traceId === traceId && other.id === parentId);
  }
  return names;
}

/** The beginning of the first turn: a call. */
const begin = (call: object) =>
  appendLines(
    path(),
    user('question 1', { uuid: 'u1', promptId: 'p1', timestamp: at(10) }),
    assistant('m1', [call], { timestamp: at(11) }),
  );
const result = (call: string, toolUseResult: object, timestamp = at(14)) =>
  user([toolResult(call)], { uuid: `r-${call}`, promptId: 'p1', timestamp, toolUseResult });

describe('an agent that another one has started, which goes on', () => {
  const parent = { isSidechain: true, agentId: 'a1', sessionId: SESSION, promptId: 'p1' };
  const nested = { agentType: 'Explore', toolUseId: 'c2', parentAgentId: 'a1' };

  beforeEach(async () => {
    await hook('SessionStart', { source: 'startup' });
    begin(toolUse('c1', 'Agent'));
    appendLines(path(), result('c1', { isAsync: true, status: 'async_launched', agentId: 'a1' }));
    appendLines(path(), assistant('m2', 'answer 1', { timestamp: at(15) }));
    workplace.letIdle(agentSays('a1', 'parent said', { agentType: 'Explore', toolUseId: 'c1' }));
    await stop();
    expect(lineage('a1')).toHaveLength(4);
  });

  test('waits until that one is sent, below which it belongs', async () => {
    appendLines(
      agentFile('agent-a1'),
      user('more', { ...parent, uuid: 'more', timestamp: at(30) }),
      assistant('a1-m2', [toolUse('c2', 'Agent')], { ...parent, uuid: 'a1-m2', timestamp: at(31) }),
    );
    workplace.letIdle(agentSays('a2', 'nested said', { from: at(32), to: at(33), ...nested }));
    await stop({ background_tasks: [{ id: 'a1', type: 'subagent', status: 'running' }] });
    expect(lineage('a2')).toEqual([]);
    appendLines(
      agentFile('agent-a1'),
      user([toolResult('c2')], { ...parent, uuid: 'r2', timestamp: at(34), toolUseResult: { agentId: 'a2' } }),
      assistant('a1-m3', 'done', { ...parent, uuid: 'a1-m3', timestamp: at(35) }),
    );
    await end();
    expect(lineage('a2')).toEqual(['agent Explore', 'tool Agent', 'generation claude-opus-5', ...lineage('a1')]);
  });

  test('stays if that one stays, because it went on while the session was muted', async () => {
    await command('mute', SESSION);
    appendLines(agentFile('agent-a1'), user('more', { ...parent, uuid: 'more', timestamp: now() }));
    await command('unmute', SESSION);
    appendLines(
      agentFile('agent-a1'),
      assistant('a1-m2', [toolUse('c2', 'Agent')], { ...parent, uuid: 'a1-m2', timestamp: now(50) }),
    );
    agentSays('a2', 'nested said', { from: now(60), to: now(70), ...nested });
    await end();
    await recover();
    expect(everything()).not.toContain('nested said');
  });
});

describe('an agent whose file names no call', () => {
  const step = 'workflows/wf_1/s1';
  const review = user('/review', { uuid: 'u1', promptId: 'p1', timestamp: at(10) });
  const reviewed = (timestamp: string) => ({
    type: 'system',
    subtype: 'local_command',
    content: '<local-command-stdout>agent said</local-command-stdout>',
    uuid: 'u2',
    parentUuid: 'u1',
    timestamp,
  });

  beforeEach(() => hook('SessionStart', { source: 'startup' }));

  test('waits as a step of a workflow that the result of its call has not named yet', async () => {
    begin(toolUse('c1', 'Workflow'));
    agentSays(step, 'step said', { agentType: 'workflow-subagent' });
    await recover();
    expect(lineage('s1')).toEqual([]);
    appendLines(path(), result('c1', { runId: 'wf_1' }), assistant('m2', 'answer 1', { timestamp: at(15) }));
    await stop();
    await end();
    expect(lineage('s1')).toEqual([
      'agent workflow-subagent',
      'tool Workflow',
      'generation claude-opus-5',
      'agent Turn 1',
    ]);
  });

  test.each<[string, (timestamp: string) => unknown, () => unknown]>([
    [
      'a step of a workflow that was interrupted',
      (timestamp) => appendLines(path(), user('[Request interrupted by user]', { promptId: 'p1', timestamp })),
      () => {
        begin(toolUse('c1', 'Workflow'));
        agentSays(step, 'agent said', { agentType: 'workflow-subagent' });
      },
    ],
    [
      'that of a command',
      (timestamp) => appendLines(path(), reviewed(timestamp)),
      () => {
        appendLines(path(), review);
        agentSays('a1', 'agent said', { agentType: 'general-purpose', requestShape: 'foreground' });
      },
    ],
    [
      'one without a meta file',
      (timestamp) => appendLines(path(), assistant('m2', 'answer 1', { timestamp })),
      () => {
        begin(toolUse('c1', 'Task'));
        agentSays('a1', 'agent said', {});
        appendLines(path(), result('c1', { agentId: 'a1' }));
      },
    ],
  ])('stays with its turn, during which the session was muted: %s', async (_, goOn, start) => {
    start();
    await command('mute', SESSION);
    goOn(now());
    await command('unmute', SESSION);
    for (const n of [2, 3]) {
      appendTurn(path(), n);
      await hook('Stop', { prompt_id: `p${n}`, last_assistant_message: `answer ${n}` });
    }
    await end();
    await recover();
    await workplace.backfill('--all', '--include-open');
    expect(everything()).not.toContain('said');
  });
});

describe('a side question in a process that is not traced stays, although a later hook sends what was before', () => {
  const OFF = { TRACE_TO_LANGFUSE: 'false' };

  test.each<[string, boolean, () => Promise<unknown>]>([
    ['the traced one has ended', true, end],
    ['the traced one was killed', true, async () => undefined],
    ['only its Stop was seen', false, async () => undefined],
    ['only its Stop and its end were seen', false, end],
  ])('%s', async (_, isStartSeen, leave) => {
    if (isStartSeen) await hook('SessionStart', { source: 'startup' });
    appendTurn(path(), 1, { cwd: workplace.home, timestamp: now(-5_000) });
    workplace.server.misbehave = () => ({ status: 503 });
    await stop();
    await leave();
    await hook('SessionStart', { source: 'resume', env: OFF });
    workplace.repairServer();
    agentSays('aside_question-1', 'aside said', { from: now(5_000), to: now(5_001) });
    await recover();
    expect(everything()).toContain('answer 1');
    expect(everything()).not.toContain('aside said');
    await workplace.backfill('--all', '--include-open');
    expect(everything()).toContain('aside said');
  });

  test('and the session is traced again', async () => {
    await hook('SessionStart', { source: 'startup' });
    appendTurn(path(), 1, { cwd: workplace.home });
    await stop();
    await end();
    await setTimeout(2_500);
    agentSays('aside_question-1', 'aside said', { from: now(-100), to: now(-50) });
    await hook('SessionStart', { source: 'resume' });
    agentSays('aside_question-2', 'traced again', { from: now(50), to: now(60) });
    appendTurn(path(), 2, { cwd: workplace.home });
    await hook('Stop', { prompt_id: 'p2', last_assistant_message: 'answer 2' });
    await end();
    await recover();
    expect(everything()).toContain('traced again');
    expect(everything()).not.toContain('aside said');
  });
});

test('what is for another project stays, if only Stops have named the turns, and a backfill is for this one', async () => {
  const other = await LangfuseServer.start();
  try {
    appendTurn(path(), 1, { cwd: workplace.home });
    agentSays('aside_question-1', 'a side question', {});
    agentSays('a1', 'no call', { agentType: 'Explore', toolUseId: 'gone' });
    await stop({ env: { LANGFUSE_BASE_URL: other.url } });
    expect(other.roots.map(({ name }) => name)).toEqual(['Turn 1']);
    workplace.letIdle();
    await workplace.backfill('--all');
    expect(workplace.server.observations).toEqual([]);
  } finally {
    await other.stop();
  }
});
