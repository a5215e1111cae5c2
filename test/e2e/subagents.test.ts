import { appendFileSync, mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { callInstantly } from '../support/call-hook.js';
import type { StoredObservation } from '../support/langfuse-server.js';
import { assistant, at, SESSION, toolResult, toolUse, user } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { changeState } from '../support/state-files.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const project = () => join(workplace.home, '.claude', 'projects', '-work');
const transcript = () => join(project(), `${SESSION}.jsonl`);
const agentPath = (id: string) => join(project(), SESSION, 'subagents', `agent-${id}.jsonl`);

function append(path: string, ...lines: (object | string)[]): void {
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''));
}

function writeMeta(id: string, meta: object): void {
  mkdirSync(dirname(agentPath(id)), { recursive: true });
  writeFileSync(agentPath(id).replace('.jsonl', '.meta.json'), JSON.stringify(meta));
}

function letIdle(path: string): void {
  const before = new Date(Date.now() - 11 * 60_000);
  utimesSync(path, before, before);
}

/** The lines of an agent: its prompt, a call, the result, and its last text. */
function agentLines(id: string, from = 10): object[] {
  const own = { isSidechain: true, agentId: id };
  return [
    user(`do ${id}`, { ...own, uuid: `${id}-p`, timestamp: at(from) }),
    assistant(`${id}-m1`, [toolUse(`${id}-t1`)], { ...own, timestamp: at(from + 1) }),
    user([toolResult(`${id}-t1`)], { ...own, timestamp: at(from + 2) }),
    assistant(`${id}-m2`, `${id} is done`, { ...own, timestamp: at(from + 3) }),
  ];
}

const start = [
  user('go', { uuid: 'u1', timestamp: at(0) }),
  assistant('m1', [toolUse('call', 'Agent', { subagent_type: 'Explore' })], { timestamp: at(1) }),
];
const answer = (id: string, seconds: number) => assistant(id, `answer ${id}`, { timestamp: at(seconds) });
const launched = user([toolResult('call', 'Async agent launched successfully.')], {
  timestamp: at(2),
  toolUseResult: { isAsync: true, status: 'async_launched', agentId: 'a1' },
});
const notification = (id: string, seconds: number) =>
  user(`<task-notification>\n<task-id>${id}</task-id>\n<tool-use-id>call</tool-use-id>`, {
    uuid: `n-${id}-${seconds}`,
    origin: { kind: 'task-notification' },
    timestamp: at(seconds),
  });

const stop = (more: object = {}) =>
  workplace.hook({ session_id: SESSION, transcript_path: transcript(), hook_event_name: 'Stop', ...more });
const running = (...ids: string[]) => ({
  background_tasks: ids.map((id) => ({ id, type: 'subagent', status: 'running' })),
});

const agentNamed = (id: string) => workplace.server.observations.find(({ metadata }) => metadata.agent_id === id);

const PLAN_BELOW_EXPLORE = ['agent Plan', 'tool Agent', 'generation claude-opus-5', 'agent Explore'];

/** Returns an observation and those above it, up to the root. */
function lineage(observation: StoredObservation | undefined): string[] {
  if (!observation) return [];
  const parent = workplace.server.observations.find(
    ({ traceId, id }) => traceId === observation.traceId && id === observation.parentId,
  );
  return [`${observation.type} ${observation.name}`, ...lineage(parent)];
}

describe('a request of Claude Code itself that has a file as agents have', () => {
  const end = () =>
    workplace.hook({ session_id: SESSION, transcript_path: transcript(), hook_event_name: 'SessionEnd' });
  const conversation = [
    user('go', { uuid: 'u1', timestamp: at(0) }),
    assistant('m1', [toolUse('t1', 'Bash')], { uuid: 'a1', parentUuid: 'u1', timestamp: at(1) }),
  ];
  const sidechain = (id: string) => ({ isSidechain: true, agentId: id });

  test('is a trace of its own if it is a side question, without the conversation that its file begins with', async () => {
    const id = 'aside_question-1a2b';
    append(transcript(), ...conversation, user([toolResult('t1')], { uuid: 'r1', parentUuid: 'a1', timestamp: at(9) }));
    append(transcript(), answer('m2', 10));
    append(
      agentPath(id),
      ...conversation.map((line) => ({ ...line, ...sidechain(id) })),
      user('<system-reminder>This is a side question</system-reminder>\n\nwhat now?', {
        ...sidechain(id),
        uuid: 'q1',
        parentUuid: 'a1',
        timestamp: at(5),
      }),
      assistant('side', 'soon', { ...sidechain(id), uuid: 's1', parentUuid: 'q1', timestamp: at(6) }),
    );
    await stop();
    await end();
    const messages = workplace.server.observations.flatMap(({ metadata }) => metadata.message_id ?? []);
    expect(messages.toSorted()).toEqual(['m1', 'm2', 'side']);
    expect(agentNamed(id)).toMatchObject({
      name: 'Agent side question',
      output: { content: 'soon' },
      parentId: undefined,
    });
    expectEachSentOnce(workplace.server);
  });

  test('knows what the responses that it copies really used, if the main file does not', async () => {
    const id = 'aside_question-1a2b';
    const using = (output_tokens: number, stop_reason: string | null) => {
      const line = assistant('m1', 'answer', { uuid: 'a1', parentUuid: 'u1', timestamp: at(1) }) as { message: object };
      return { ...line, message: { ...line.message, stop_reason, usage: { input_tokens: 5, output_tokens } } };
    };
    append(transcript(), ...conversation.slice(0, 1), using(36, null));
    append(agentPath(id), { ...using(611, 'end_turn'), ...sidechain(id) });
    await stop();
    await end();
    const [first] = workplace.server.observations.filter(({ metadata }) => metadata.message_id === 'm1');
    expect(first?.usage).toEqual({ input: 5, output: 611, total: 616 });
    const { stdout } = await run(['cost', '--json'], { HOME: workplace.home });
    expect(JSON.parse(stdout).total).toMatchObject({ tokens: 616 });
  });

  test('is a trace of its own if it is a compaction', async () => {
    const id = 'acompact-1a2b';
    append(transcript(), ...conversation.slice(0, 1), answer('m2', 3));
    append(
      agentPath(id),
      user('Your task is to create a summary', { ...sidechain(id), uuid: 'q1', parentUuid: 'a0', timestamp: at(5) }),
      assistant('summary', 'we did this', { ...sidechain(id), uuid: 's1', parentUuid: 'q1', timestamp: at(6) }),
    );
    await stop();
    await end();
    expect(agentNamed(id)).toMatchObject({ name: 'Agent compaction', output: { content: 'we did this' } });
    expectEachSentOnce(workplace.server);
  });
});

describe('an agent whose call was interrupted', () => {
  const rejected = (call: string, seconds: number) =>
    user([toolResult(call, 'The user rejected this', { is_error: true })], { timestamp: at(seconds) });
  const ask = (call: string, prompt: string) => toolUse(call, 'Task', { subagent_type: 'Explore', prompt });

  test('is below the call that asked for it, although neither names the other', async () => {
    append(
      transcript(),
      user('go', { uuid: 'u1', timestamp: at(0) }),
      assistant('m1', [ask('call-0', 'do a0'), ask('call-1', 'do a1')], { timestamp: at(1) }),
      rejected('call-0', 20),
      rejected('call-1', 20),
      user('[Request interrupted by user for tool use]', { timestamp: at(21) }),
    );
    for (const id of ['a1', 'a0']) append(agentPath(id), ...agentLines(id));
    await stop();
    await workplace.hook({ session_id: SESSION, transcript_path: transcript(), hook_event_name: 'SessionEnd' });
    const callOf = (id: string) =>
      workplace.server.observations.find((each) => each.id === agentNamed(id)?.parentId)?.metadata.tool_id;
    expect([callOf('a0'), callOf('a1')]).toEqual(['call-0', 'call-1']);
    expect(lineage(agentNamed('a1'))).toEqual([
      'agent Explore',
      'tool Task',
      'generation claude-opus-5',
      'agent Turn 1',
    ]);
    expectEachSentOnce(workplace.server);
  });

  test('is below the call of its own, if another call has asked for the same', async () => {
    const turn = (n: number) => [
      user(`go ${n}`, { uuid: `u${n}`, timestamp: at(n * 30) }),
      assistant(`m${n}`, [ask(`call-${n}`, 'do it')], { timestamp: at(n * 30 + 1) }),
      rejected(`call-${n}`, n * 30 + 2),
    ];
    const agent = (id: string, n: number) => [
      user('do it', { isSidechain: true, agentId: id, uuid: `${id}-p`, timestamp: at(n * 30 + 1) }),
      assistant(`${id}-m`, 'partly', { isSidechain: true, agentId: id, timestamp: at(n * 30 + 2) }),
    ];
    const end = () =>
      workplace.hook({ session_id: SESSION, transcript_path: transcript(), hook_event_name: 'SessionEnd' });
    append(transcript(), ...turn(1));
    append(agentPath('a1'), ...agent('a1', 1));
    await end();
    append(transcript(), ...turn(2));
    append(agentPath('a2'), ...agent('a2', 2));
    await stop();
    await end();
    expect(lineage(agentNamed('a1')).at(-1)).toBe('agent Turn 1');
    expect(lineage(agentNamed('a2')).at(-1)).toBe('agent Turn 2');
  });
});

describe('a command that runs as an agent', () => {
  const end = () =>
    workplace.hook({ session_id: SESSION, transcript_path: transcript(), hook_event_name: 'SessionEnd' });
  const first = [user('go', { uuid: 'u1', promptId: 'p1', timestamp: at(0) }), answer('m1', 1)];
  const command = (result: string, more: object = {}) => [
    user('/review low', { uuid: 'u2', parentUuid: 'c', promptId: 'p2', timestamp: at(9), ...more }),
    {
      type: 'system',
      subtype: 'local_command',
      content: `<local-command-stdout>${result}</local-command-stdout>`,
      uuid: 'u3',
      parentUuid: 'u2',
      timestamp: at(14),
    },
  ];
  const ownLines = (id: string) => {
    const [prompt, ...rest] = agentLines(id);
    return [{ ...prompt, isMeta: true, promptId: 'p2' }, ...rest];
  };

  test('headless is below the turn of the command, for whose lines no Stop waits', async () => {
    append(transcript(), ...first);
    await stop({ prompt_id: 'p1', last_assistant_message: 'answer m1' });
    writeMeta('a1', { agentType: 'general-purpose', requestShape: 'foreground' });
    append(agentPath('a1'), ...ownLines('a1'));
    const named = { prompt_id: 'p2', last_assistant_message: 'a1 is done' };
    const payload = { session_id: SESSION, transcript_path: transcript(), hook_event_name: 'Stop', ...named };
    await callInstantly(payload, workplace.env);
    // Claude Code writes them when the Stop hooks have ended.
    append(transcript(), ...command('a1 is done'));
    await end();
    expect(lineage(agentNamed('a1'))).toEqual(['agent general-purpose', 'agent Turn 2']);
    const root = workplace.server.observations.find(({ name }) => name === 'Turn 2');
    expect(root).toMatchObject({
      input: [{ role: 'user', content: '/review low' }],
      output: { role: 'assistant', content: 'a1 is done' },
      metadata: { prompt_id: 'p2', trigger: 'command', outcome: 'completed' },
    });
    expectEachSentOnce(workplace.server);
  });

  test('in the background has a trace of its own, once the session is over', async () => {
    append(transcript(), ...first, ...command('Running in the background as @review', { origin: { kind: 'human' } }));
    append(transcript(), user('meanwhile', { uuid: 'u4', parentUuid: 'u3', timestamp: at(15) }), answer('m2', 16));
    writeMeta('a1', { agentType: 'general-purpose', description: '/review low', requestShape: 'background' });
    append(agentPath('a1'), ...ownLines('a1').slice(0, 2));
    await stop(running('a1'));
    expect(agentNamed('a1')).toBeUndefined();
    append(agentPath('a1'), ...ownLines('a1').slice(2));
    append(transcript(), notification('a1', 20), answer('m3', 21));
    await stop(running());
    await end();
    expect(agentNamed('a1')).toMatchObject({
      metadata: { agent_id: 'a1', description: '/review low' },
      trace: { name: 'Agent general-purpose' },
    });
    expect(lineage(agentNamed('a1'))).toEqual(['agent Agent general-purpose']);
    const turns = workplace.server.observations.filter(({ name }) => name?.startsWith('Turn'));
    expect(turns.map(({ output }) => (output as { content: string }).content)).toEqual([
      'answer m1',
      'Running in the background as @review',
      'answer m2',
      'answer m3',
    ]);
    expectEachSentOnce(workplace.server);
  });
});

describe('a background agent', () => {
  test('is sent after the notification of its end, below its call in a turn that ended long before', async () => {
    append(transcript(), ...start, launched, answer('m2', 3));
    writeMeta('a1', { agentType: 'Explore', description: 'Look', toolUseId: 'call', requestShape: 'background' });
    append(agentPath('a1'), ...agentLines('a1').slice(0, 2));
    await stop(running('a1'));
    expect(agentNamed('a1')).toBeUndefined();
    append(transcript(), user('meanwhile', { uuid: 'u2', timestamp: at(5) }), answer('m3', 6));
    await stop(running('a1'));
    expect(agentNamed('a1')).toBeUndefined();
    append(agentPath('a1'), ...agentLines('a1').slice(2));
    append(transcript(), notification('a1', 20), answer('m4', 21));
    await stop(running());
    expect(agentNamed('a1')).toMatchObject({
      name: 'Explore: Look',
      startTime: Date.parse(at(10)),
      endTime: Date.parse(at(13)),
      input: [{ role: 'user', content: 'do a1' }],
      output: { role: 'assistant', content: 'a1 is done' },
      metadata: { agent_id: 'a1', agent_type: 'Explore', description: 'Look', background: true, tool_count: 1 },
      trace: { name: 'Turn 1', sessionId: SESSION },
    });
    expect(lineage(agentNamed('a1'))).toEqual([
      'agent Explore: Look',
      'tool Agent',
      'generation claude-opus-5',
      'agent Turn 1',
    ]);
    await stop(running());
    expectEachSentOnce(workplace.server);
  });

  test('that is continued later is sent again with its new end, together with what is new', async () => {
    append(transcript(), ...start, launched, answer('m2', 3), notification('a1', 20), answer('m3', 21));
    append(agentPath('a1'), ...agentLines('a1'));
    await stop(running());
    append(
      agentPath('a1'),
      user('more of a1', { isSidechain: true, agentId: 'a1', uuid: 'more', timestamp: at(30) }),
      assistant('a1-m3', 'a1 did more', { isSidechain: true, agentId: 'a1', timestamp: at(31) }),
    );
    await stop(running('a1'));
    expect(agentNamed('a1')).toMatchObject({ output: { content: 'a1 is done' } });
    append(transcript(), notification('a1', 32), answer('m4', 33));
    await stop(running());
    const agent = agentNamed('a1');
    expect(agent).toMatchObject({
      output: { content: 'a1 did more' },
      startTime: Date.parse(at(10)),
      endTime: Date.parse(at(31)),
    });
    const sentAgain = workplace.server.observations.filter((each) => workplace.server.timesSent(each) !== 1);
    expect(sentAgain).toEqual([agent]);
  });

  test('is not sent because of an event that it reports, which is not its end', async () => {
    const event = '<task-notification>\n<task-id>a1</task-id>\n<event>half way</event>\n</task-notification>';
    append(transcript(), ...start, launched, answer('m2', 3));
    append(agentPath('a1'), ...agentLines('a1').slice(0, 2));
    append(transcript(), user(event, { uuid: 'e1', origin: { kind: 'task-notification' }, timestamp: at(12) }));
    append(transcript(), answer('m3', 13));
    await stop();
    expect(agentNamed('a1')).toBeUndefined();
    append(agentPath('a1'), ...agentLines('a1').slice(2));
    append(transcript(), notification('a1', 20), answer('m4', 21));
    await stop();
    expect(agentNamed('a1')).toMatchObject({ output: { content: 'a1 is done' } });
    expectEachSentOnce(workplace.server);
  });

  test('that is still running when the session ends is sent unfinished', async () => {
    append(transcript(), ...start, launched, answer('m2', 3));
    append(agentPath('a1'), ...agentLines('a1').slice(0, 2));
    await stop(running('a1'));
    await stop({ hook_event_name: 'SessionEnd', ...running('a1') });
    expect(agentNamed('a1')).toMatchObject({ metadata: { outcome: 'unfinished' }, level: 'WARNING' });
  });

  test('that started another one is sent before that one has ended', async () => {
    const own = { isSidechain: true, agentId: 'a1' };
    append(transcript(), ...start, launched, answer('m2', 3), notification('a1', 20), answer('m3', 21));
    append(
      agentPath('a1'),
      user('do a1', { ...own, uuid: 'a1-p', timestamp: at(10) }),
      assistant('a1-m1', [toolUse('inner', 'Agent')], { ...own, timestamp: at(11) }),
      user([toolResult('inner', 'Async agent launched successfully.')], { ...own, timestamp: at(12) }),
      assistant('a1-m2', 'a1 is done', { ...own, timestamp: at(13) }),
    );
    writeMeta('a2', { agentType: 'Plan', toolUseId: 'inner', parentAgentId: 'a1', requestShape: 'background' });
    append(agentPath('a2'), ...agentLines('a2', 12));
    await stop(running('a2'));
    expect([agentNamed('a1')?.name, agentNamed('a2')]).toEqual(['Explore', undefined]);
    append(transcript(), notification('a2', 40), answer('m4', 41));
    await stop(running());
    expect(lineage(agentNamed('a2')).slice(0, 4)).toEqual(PLAN_BELOW_EXPLORE);
    expectEachSentOnce(workplace.server);
  });
});

test('a teammate whose file appears after the turn that started it is sent once, with what it did', async () => {
  const details = { status: 'teammate_spawned', agentId: 'a1' };
  append(transcript(), ...start, user([toolResult('call', 'Spawned')], { timestamp: at(2), toolUseResult: details }));
  append(transcript(), answer('m2', 3));
  await stop();
  append(agentPath('a1'), ...agentLines('a1'));
  append(transcript(), user('a1 says', { uuid: 'u2', timestamp: at(20) }), answer('m3', 21));
  await stop();
  expect(agentNamed('a1')).toMatchObject({ output: { content: 'a1 is done' }, metadata: { tool_count: 1 } });
  expectEachSentOnce(workplace.server);
});

describe('a foreground agent', () => {
  const result = (details: object = {}) =>
    user([toolResult('call', 'a1 is done')], {
      timestamp: at(15),
      toolUseResult: {
        status: 'completed',
        agentId: 'a1',
        agentType: 'Explore',
        prompt: 'do a1',
        content: [{ type: 'text', text: 'a1 is done' }],
        ...details,
      },
    });

  test.each([
    ["in the session's folder", () => agentPath('a1')],
    ['next to the transcript', () => join(project(), 'agent-a1.jsonl')],
    ['in a folder for all sessions', () => join(project(), 'subagents', 'agent-a1.jsonl')],
  ])('is sent with its turn if its file is %s', async (_, path) => {
    append(path(), ...agentLines('a1'));
    append(transcript(), ...start, result(), answer('m2', 16));
    await stop();
    expect(lineage(agentNamed('a1'))).toEqual([
      'agent Explore',
      'tool Agent',
      'generation claude-opus-5',
      'agent Turn 1',
    ]);
    expect(workplace.server.observations).toHaveLength(8);
    await stop({ hook_event_name: 'SessionEnd' });
    expectEachSentOnce(workplace.server);
  });

  test('that is continued before its turn ends is sent after the notification of its second end', async () => {
    const own = { isSidechain: true, agentId: 'a1' };
    append(agentPath('a1'), ...agentLines('a1'));
    writeMeta('a1', { agentType: 'Explore', toolUseId: 'call', requestShape: 'foreground' });
    append(
      transcript(),
      ...start,
      result(),
      assistant('m2', [toolUse('send', 'SendMessage', { to: 'a1' })], { timestamp: at(16) }),
      user([toolResult('send', 'Resuming')], { timestamp: at(17), toolUseResult: { success: true } }),
      answer('m3', 18),
    );
    await stop(running('a1'));
    expect(agentNamed('a1')).toBeUndefined();
    append(
      agentPath('a1'),
      user('The coordinator sent a message: more', {
        ...own,
        isMeta: true,
        origin: { kind: 'coordinator' },
        timestamp: at(20),
      }),
      assistant('a1-m3', 'a1 did more', { ...own, timestamp: at(21) }),
    );
    append(transcript(), notification('a1', 22), answer('m4', 23));
    await stop(running());
    expect(agentNamed('a1')).toMatchObject({
      input: [{ content: 'do a1' }, { content: 'The coordinator sent a message: more' }],
      output: { content: 'a1 did more' },
      endTime: Date.parse(at(21)),
    });
    expectEachSentOnce(workplace.server);
  });

  test('whose file is missing is built from the result of its call', async () => {
    append(
      transcript(),
      ...start,
      result({ totalTokens: 12_277, totalDurationMs: 1_340, totalToolUseCount: 2 }),
      answer('m2', 16),
    );
    await stop();
    expect(agentNamed('a1')).toMatchObject({
      name: 'Explore',
      input: [{ role: 'user', content: 'do a1' }],
      output: { role: 'assistant', content: 'a1 is done' },
      metadata: { agent_id: 'a1', total_tokens: 12_277, total_duration_ms: 1_340, tool_count: 2 },
      startTime: Date.parse(at(1)),
      endTime: Date.parse(at(15)),
    });
    expect(lineage(agentNamed('a1')).slice(0, 2)).toEqual(['agent Explore', 'tool Agent']);
  });

  test('whose file has torn lines is sent without them', async () => {
    append(agentPath('a1'), '{"torn', ...agentLines('a1').slice(0, 2), 'no JSON', ...agentLines('a1').slice(3));
    append(transcript(), ...start, result(), answer('m2', 16));
    expect(await stop()).toMatchObject({ exitCode: 0, stdout: '' });
    expect(agentNamed('a1')).toMatchObject({ output: { content: 'a1 is done' } });
    const tool = workplace.server.observations.find(({ metadata }) => metadata.tool_id === 'a1-t1');
    expect(tool).toMatchObject({ output: undefined });
  });

  test('whose file is a folder or empty does not stop the turn', async () => {
    writeMeta('a1', { toolUseId: 'call' });
    mkdirSync(agentPath('a1'));
    append(agentPath('a2'));
    append(transcript(), ...start, result(), answer('m2', 16));
    expect(await stop()).toMatchObject({ exitCode: 0, stdout: '' });
    expect(workplace.log).toEqual([]);
    expect(workplace.server.observations.map(({ name }) => name)).toContain('Turn 1');
  });

  test('that the server refuses is sent by the next run, and its turn counts as exported only then', async () => {
    append(agentPath('a1'), ...agentLines('a1'));
    append(transcript(), ...start, result(), answer('m2', 16));
    workplace.server.misbehave = (_, __, spans) => {
      if (spans.length > 2) return { status: 413 };
      return spans.some(({ name }) => name === 'Explore') ? { status: 401 } : undefined;
    };
    await stop();
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 0, turnCount: 0 });
    workplace.server.misbehave = () => undefined;
    await stop();
    expect(workplace.server.observations).toHaveLength(8);
    expectEachSentOnce(workplace.server);
  });
});

describe('malformed files of agents', () => {
  const completed = (agentId: string, more: object = {}) =>
    user([toolResult('call', 'done')], { timestamp: at(15), toolUseResult: { status: 'completed', agentId, ...more } });

  test.each([
    [
      'an agent id that is too long for a file name',
      () => append(transcript(), ...start, completed('a'.repeat(300)), answer('m2', 16)),
    ],
    [
      'a file in place of the folder for all sessions',
      () => {
        append(join(project(), 'subagents'));
        append(transcript(), ...start, completed('a1'), answer('m2', 16));
      },
    ],
    [
      'folders that are links to themselves',
      () => {
        append(agentPath('a1'), ...agentLines('a1'));
        symlinkSync('.', join(dirname(agentPath('a1')), 'x'));
        symlinkSync('.', join(dirname(agentPath('a1')), 'y'));
        append(transcript(), ...start, completed('a1'), answer('m2', 16));
      },
    ],
    [
      'a meta file that is not JSON, and a result with wrong types',
      () => {
        append(agentPath('a1'), ...agentLines('a1'));
        writeFileSync(agentPath('a1').replace('.jsonl', '.meta.json'), '{"toolUseId": 7');
        append(transcript(), ...start, completed('a1', { totalTokens: 'x', content: 5 }), answer('m2', 16));
      },
    ],
  ])('do not stop the turn: %s', async (_, make) => {
    make();
    expect(await stop()).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    expect(workplace.server.observations.map(({ name }) => name)).toContain('Turn 1');
    expect(workplace.log).toEqual([]);
  });

  test('without a prompt and without a newline at the end are sent, too', async () => {
    const [, ...rest] = agentLines('a1');
    append(agentPath('a1'), '{"torn', ...rest.slice(0, 2));
    appendFileSync(agentPath('a1'), JSON.stringify(rest[2]));
    append(transcript(), ...start, completed('a1'), answer('m2', 16));
    await stop();
    expect(agentNamed('a1')).toMatchObject({ output: { content: 'a1 is done' }, metadata: { outcome: 'completed' } });
    expect(workplace.server.observations).toHaveLength(8);
    expect(workplace.log).toMatchObject([
      { msg: 'skipped a line that cannot be read', file: agentPath('a1'), line: 1 },
    ]);
  });

  test('that are empty are replaced by the result of the call, until they are written', async () => {
    append(agentPath('a1'));
    append(transcript(), ...start, completed('a1', { prompt: 'do a1', result: 'as told' }), answer('m2', 16));
    await stop();
    expect(agentNamed('a1')).toMatchObject({ input: [{ content: 'do a1' }], output: { content: 'as told' } });
    append(agentPath('a1'), ...agentLines('a1'));
    await stop({ hook_event_name: 'SessionEnd' });
    expectEachSentOnce(workplace.server);
    expect(workplace.server.observations.filter(({ metadata }) => metadata.agent_id === 'a1')).toHaveLength(1);
    const below = ({ parentId }: StoredObservation) => parentId === agentNamed('a1')?.id;
    expect(workplace.server.observations.filter(below)).not.toEqual([]);
  });

  test('that are missing do not break the order in which a large turn is sent', async () => {
    const big = 'x'.repeat(150_000);
    const calls = Array.from({ length: 30 }, (_, n) => [
      assistant(`c${n}`, [toolUse(`t${n}`)]),
      user([toolResult(`t${n}`, big)]),
    ]);
    append(transcript(), ...start, completed('a1'), ...calls.flat(), answer('end', 50));
    workplace.server.misbehave = (_, number) => (number === 1 ? { status: 401 } : undefined);
    await stop();
    await stop();
    expect(agentNamed('a1')).toMatchObject({ name: 'Explore' });
    expect(workplace.server.observations).toHaveLength(2 + 1 + 60 + 1 + 1);
    expectEachSentOnce(workplace.server);
  });
});

describe('an agent', () => {
  test('whose call is not known yet is sent once its parent has ended, even if its own file is idle before', async () => {
    const own = { isSidechain: true, agentId: 'a1' };
    append(transcript(), ...start, launched, answer('m2', 3));
    append(
      agentPath('a1'),
      user('do a1', { ...own, uuid: 'a1-p', timestamp: at(10) }),
      assistant('a1-m1', [toolUse('inner', 'Agent')], { ...own, timestamp: at(11) }),
    );
    writeMeta('a2', { agentType: 'Plan', toolUseId: 'inner', parentAgentId: 'a1' });
    append(agentPath('a2'), ...agentLines('a2', 12));
    letIdle(agentPath('a2'));
    await stop(running('a1'));
    expect(agentNamed('a2')).toBeUndefined();
    append(
      agentPath('a1'),
      user([toolResult('inner')], { ...own, timestamp: at(17) }),
      assistant('a1-m2', 'done', { ...own, timestamp: at(18) }),
    );
    append(transcript(), notification('a1', 20), answer('m3', 21));
    await stop(running());
    expect(lineage(agentNamed('a2')).slice(0, 4)).toEqual(PLAN_BELOW_EXPLORE);
  });

  test('that the hook lists as running is not sent, even if its file is idle', async () => {
    append(transcript(), ...start, launched, answer('m2', 3));
    append(agentPath('a1'), ...agentLines('a1').slice(0, 2));
    letIdle(agentPath('a1'));
    await stop(running('a1'));
    expect(agentNamed('a1')).toBeUndefined();
    await stop(running());
    expect(agentNamed('a1')).toMatchObject({ metadata: { outcome: 'unfinished' } });
  });

  test('of a turn that the first cc-langfuse exported is not sent', async () => {
    append(transcript(), ...start, user([toolResult('call', 'done')], { timestamp: at(5) }), answer('m2', 6));
    append(join(project(), 'agent-old.jsonl'), ...agentLines('old').map((line) => ({ ...line, sessionId: SESSION })));
    letIdle(join(project(), 'agent-old.jsonl'));
    mkdirSync(workplace.stateFolder, { recursive: true });
    const state = { [SESSION]: { last_line: 4, turn_count: 1, updated: new Date().toISOString() } };
    writeFileSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), JSON.stringify(state));
    append(transcript(), user('two', { uuid: 'u2', timestamp: at(20) }), answer('m3', 21));
    await stop();
    await stop({ hook_event_name: 'SessionEnd' });
    expect(agentNamed('old')).toBeUndefined();
    expect(workplace.server.observations.map(({ name }) => name)).toContain('Turn 2');
  });

  test('of a turn that the first cc-langfuse exported is not sent by a backfill, either', async () => {
    append(transcript(), ...start, user([toolResult('call', 'done')], { timestamp: at(5) }), answer('m2', 6));
    writeMeta('a1', { agentType: 'Explore', toolUseId: 'call' });
    append(agentPath('a1'), ...agentLines('a1'));
    workplace.letIdle();
    mkdirSync(workplace.stateFolder, { recursive: true });
    const state = { [SESSION]: { last_line: 4, turn_count: 1, updated: new Date().toISOString() } };
    writeFileSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), JSON.stringify(state));
    await workplace.backfill('--all');
    expect(workplace.server.observations).toEqual([]);
    append(transcript(), user('two', { uuid: 'u2', timestamp: at(20) }), answer('m3', 21));
    for (let times = 0; times < 2; times += 1) {
      workplace.letIdle();
      await workplace.backfill('--all');
    }
    expect(workplace.server.observations.map(({ name }) => name)).toEqual(['claude-opus-5', 'Turn 2']);
  });

  test('whose entry in the state is malformed is not sent again', async () => {
    append(transcript(), ...start, launched, answer('m2', 3), notification('a1', 20), answer('m3', 21));
    append(agentPath('a1'), ...agentLines('a1'));
    await stop(running());
    const { destination } = workplace.state[SESSION] ?? {};
    changeState(workplace.stateFolder, SESSION, { agents: { a1: { traceName: 5 } } }, destination);
    await stop({ hook_event_name: 'SessionEnd' });
    expectEachSentOnce(workplace.server);
  });
});

test('an agent that ends later has the same trace attributes as its turn, even if they were cut', async () => {
  const long = `<ide_selection>${'x'.repeat(3_000)}</ide_selection>\ngo`;
  workplace.env = { ...workplace.env, LANGFUSE_METADATA: JSON.stringify({ note: 'x'.repeat(3_000) }) };
  const skill = { origin: { kind: 'human' } };
  const command = '<command-message>s</command-message>\n<command-name>/s</command-name>';
  append(
    transcript(),
    user(`${long.replace('go', '')}${command}`, { ...skill, uuid: 'u1', timestamp: at(0) }),
    user('Base directory for this skill: /s', { isMeta: true }),
    ...start.slice(1),
    launched,
    answer('m2', 3),
  );
  await stop(running('a1'));
  append(agentPath('a1'), ...agentLines('a1'));
  append(transcript(), notification('a1', 20), answer('m3', 21));
  await stop(running());
  const ofTurn1 = workplace.server.observations.filter(({ trace }) => trace.name === 'Turn 1');
  expect(ofTurn1).toHaveLength(8);
  const { note } = ofTurn1[0]?.trace.metadata ?? {};
  expect(note).toMatch(/^x+… \[\d+ more characters\]$/);
  // The rest of the trace's metadata is with its root.
  const shared = ofTurn1.map(({ parentId, trace }) => ({ ...trace, metadata: parentId ? trace.metadata : { note } }));
  expect(shared).toEqual(Array(8).fill({ ...shared[0], metadata: { note } }));
  expect(ofTurn1[0]?.trace.tags).toEqual(['claude-code', 'skill:s', 'agent:Explore']);
});

test('what a turn uses after its first Stop is in the tags of its root and of agents that are sent later', async () => {
  append(transcript(), ...start, launched, answer('m2', 3));
  await stop(running('a1'));
  const more = [toolUse('t2', 'mcp__tracker__list')];
  append(transcript(), assistant('m3', more, { timestamp: at(4) }), user([toolResult('t2')], { timestamp: at(5) }));
  append(transcript(), answer('m4', 6));
  await stop(running('a1'));
  append(agentPath('a1'), ...agentLines('a1'));
  append(transcript(), notification('a1', 20), answer('m5', 21));
  await stop(running());
  const tagsOf = (...names: string[]) =>
    workplace.server.observations
      .filter(
        ({ trace, name, metadata }) => trace.name === 'Turn 1' && names.includes(String(metadata.agent_id ?? name)),
      )
      .map(({ trace }) => trace.tags);
  expect(tagsOf('Turn 1', 'a1')).toEqual([1, 2].map(() => ['claude-code', 'agent:Explore', 'mcp:tracker']));
  expect(tagsOf('Agent')).toEqual([['claude-code', 'agent:Explore']]);
});

describe('an agent that no call started', () => {
  test('has a trace of its own, once the session is over', async () => {
    append(transcript(), user('hello', { uuid: 'u1', timestamp: at(0) }), answer('m1', 1));
    append(agentPath('w1'), ...agentLines('w1'));
    writeMeta('w1', { agentType: 'Warmup' });
    await stop();
    expect(agentNamed('w1')).toBeUndefined();
    await stop({ hook_event_name: 'SessionEnd' });
    await stop({ hook_event_name: 'SessionEnd' });
    expect(agentNamed('w1')).toMatchObject({
      name: 'Agent Warmup',
      parentId: undefined,
      trace: { name: 'Agent Warmup', sessionId: SESSION, metadata: { source: 'claude-code', session_id: SESSION } },
    });
    expectEachSentOnce(workplace.server);
  });

  test('and whose file is next to the transcript belongs to the session that its responses name', async () => {
    append(transcript(), user('hello', { uuid: 'u1', timestamp: at(0) }), answer('m1', 1));
    const of = (session: string) =>
      agentLines('x').map((line, place) => ({ ...line, sessionId: place === 0 ? 'ignored' : session }));
    append(join(project(), 'agent-aaa.jsonl'), ...of(SESSION));
    append(join(project(), 'agent-bbb.jsonl'), ...of('another'));
    await stop({ hook_event_name: 'SessionEnd' });
    expect([agentNamed('aaa')?.name, agentNamed('bbb')]).toEqual(['Agent', undefined]);
  });
});

test('an agent that ends several turns after its call is sent below the call, once', async () => {
  append(transcript(), ...start, launched, answer('m2', 3));
  await stop(running('a1'));
  for (let n = 3; n < 6; n += 1) {
    append(transcript(), user(`u${n}`, { uuid: `u${n}`, timestamp: at(n * 2) }), answer(`m${n}`, n * 2 + 1));
    await stop(running('a1'));
  }
  append(agentPath('a1'), ...agentLines('a1', 20));
  append(transcript(), notification('a1', 30), answer('m9', 31));
  await stop(running());
  expect(lineage(agentNamed('a1')).at(-1)).toBe('agent Turn 1');
  rmSync(agentPath('a1'));
  await stop(running());
  expectEachSentOnce(workplace.server);
});
