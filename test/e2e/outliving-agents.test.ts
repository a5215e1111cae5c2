import { cpSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StoredObservation } from '../support/langfuse-server.js';
import { appendLines, assistant, at, toolResult, toolUse, user } from '../support/lines.js';
import { type Environment, run, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { sessionFile } from '../support/state-files.js';
import { describeTraces } from '../support/traces.js';

const OLD = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
const NEW = 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb';
const NEWER = 'cccccccc-cccc-4ccc-8ccc-cccccccccccc';

let workplace: Workplace;
let seconds: number;

beforeEach(async () => {
  workplace = await Workplace.open();
  seconds = 0;
});

afterEach(() => workplace.close());

/** The time of the next line: a second after the one before. */
function tick(): string {
  seconds += 1;
  return at(seconds);
}

let project = '-work';
const transcript = (session: string) => join(workplace.projects, project, `${session}.jsonl`);
const agentFile = (session: string, id: string) =>
  join(workplace.projects, project, session, 'subagents', `agent-${id}.jsonl`);

function say(session: string, ...lines: object[]): void {
  appendLines(transcript(session), ...lines.map((line) => ({ sessionId: session, timestamp: tick(), ...line })));
}

/** A turn that starts agents in the background. */
function launch(session: string, ...ids: string[]): void {
  const calls = ids.map((id) => toolUse(`call-${id}`, 'Agent', { subagent_type: 'Explore' }));
  say(session, user('go', { uuid: `go-${session}`, promptId: 'p1' }), assistant('launch', calls));
  for (const id of ids)
    say(
      session,
      user([toolResult(`call-${id}`, 'Async agent launched successfully.')], {
        uuid: `launched-${id}`,
        toolUseResult: { isAsync: true, status: 'async_launched', agentId: id },
      }),
    );
  say(session, assistant('launched', 'launched'));
}

/** A turn without agents. */
function chat(session: string, n: number): void {
  say(session, user(`question ${n}`, { uuid: `${session}-${n}` }), assistant(`${session}-m${n}`, `answer ${n}`));
}

/** The turn in which the model is told that an agent has ended. */
function notify(session: string, id: string): void {
  const uuid = `${session}-end-of-${id}-${seconds}`;
  const words = `<task-notification>\n<task-id>${id}</task-id>\n<tool-use-id>call-${id}</tool-use-id>`;
  say(
    session,
    user(words, { uuid, origin: { kind: 'task-notification' } }),
    assistant(`${uuid}-m`, `${id} has reported`),
  );
}

/** An agent, whose lines form a chain through the files of several sessions. */
class Agent {
  readonly id: string;
  readonly #meta: object;
  #last: string | undefined;
  #count = 0;

  constructor(id: string, meta: object = {}) {
    this.id = id;
    this.#meta = { agentType: 'Explore', toolUseId: `call-${id}`, requestShape: 'background', ...meta };
  }

  add(session: string, line: object): void {
    this.#count += 1;
    const uuid = `${this.id}-${this.#count}`;
    const own = { isSidechain: true, agentId: this.id, sessionId: session, timestamp: tick(), uuid };
    appendLines(agentFile(session, this.id), { ...own, parentUuid: this.#last ?? null, ...line });
    this.#last = uuid;
  }

  writeMeta(session: string): void {
    const path = agentFile(session, this.id).replace('.jsonl', '.meta.json');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(this.#meta));
  }

  begin(session: string): void {
    this.writeMeta(session);
    this.add(session, user(`do ${this.id}`));
    this.call(session, 1);
  }

  call(session: string, n: number, name = 'Bash', id = `${this.id}-t${n}`): void {
    this.add(session, assistant(`${this.id}-m${n}`, [toolUse(id, name)]));
  }

  answer(session: string, n: number, id = `${this.id}-t${n}`): void {
    this.add(session, user([toolResult(id, `result ${n}`)]));
  }

  end(session: string, words = `${this.id} is done`): void {
    this.add(session, assistant(`${this.id}-${words}`, words));
  }
}

function hook(session: string, event: string, more: object = {}) {
  return workplace.hook({
    session_id: session,
    transcript_path: transcript(session),
    hook_event_name: event,
    ...more,
  });
}

const start = (session: string, source = 'startup') => hook(session, 'SessionStart', { source });
const stop = (session: string, ...running: string[]) =>
  hook(session, 'Stop', { background_tasks: running.map((id) => ({ id, type: 'subagent', status: 'running' })) });
const leave = (session: string) => hook(session, 'SessionEnd', { reason: 'clear' });

/** `/clear`, while agents work. */
async function clear(from: string, to: string): Promise<void> {
  await leave(from);
  await start(to, 'clear');
}

const agentsNamed = (id: string) => workplace.server.observations.filter(({ metadata }) => metadata.agent_id === id);

/** The names of an observation and of those above it, up to the root. */
function lineage(observation: StoredObservation | undefined): string[] {
  if (!observation) return [];
  const { traceId, parentId } = observation;
  const parent = workplace.server.observations.find((each) => each.traceId === traceId && each.id === parentId);
  return [observation.name, ...lineage(parent)];
}

/** What has arrived of an agent. */
function received(id: string) {
  const [agent, ...others] = agentsNamed(id);
  const below = workplace.server.observations.filter((each) => each.id !== agent?.id && isBelow(each, agent));
  return {
    observations: agent ? 1 + others.length : 0,
    session: agent?.trace.sessionId,
    lineage: lineage(agent),
    outcome: agent?.metadata.outcome,
    output: (agent?.output as { content?: string } | undefined)?.content,
    responses: below.flatMap(({ metadata }) => (metadata.message_id === undefined ? [] : [metadata.message_id])),
    results: Object.fromEntries(
      below.flatMap(({ metadata, output }) => (metadata.tool_id === undefined ? [] : [[metadata.tool_id, output]])),
    ),
  };
}

function isBelow(observation: StoredObservation, above: StoredObservation | undefined): boolean {
  const { traceId, parentId } = observation;
  if (above === undefined || parentId === undefined || traceId !== above.traceId) return false;
  const parent = workplace.server.observations.find((each) => each.traceId === traceId && each.id === parentId);
  return parentId === above.id || (parent !== undefined && isBelow(parent, above));
}

/** What must have arrived of agent a1, if nothing is said about it. */
const WHOLE = {
  observations: 1,
  session: OLD,
  lineage: ['Explore', 'Agent', 'claude-opus-5', 'Turn 1'],
  outcome: 'completed',
  output: 'a1 is done',
  responses: ['a1-m1', 'a1-m2', 'a1-a1 is done'],
  results: { 'a1-t1': 'result 1', 'a1-t2': 'result 2' },
};

/** Sends the same files with a backfill to a server of its own. */
async function backfillElsewhere(): Promise<Workplace> {
  const other = await Workplace.open();
  cpSync(workplace.projects, other.projects, { recursive: true });
  other.letIdle();
  expect(await other.backfill('--all')).toMatchObject({ exitCode: 0, stderr: '' });
  return other;
}

async function expectSameBackfilled(): Promise<void> {
  const other = await backfillElsewhere();
  try {
    expect(describeTraces(other.server.observations)).toBe(describeTraces(workplace.server.observations));
    expectEachSentOnce(other.server);
  } finally {
    await other.close();
  }
}

const sentAgain = () =>
  workplace.server.observations
    .filter((each) => workplace.server.timesSent(each) !== 1)
    .map(({ name, metadata }) => metadata.agent_id ?? metadata.tool_id ?? name);

/** Starts agent a1 in the old session, and begins the new one while it waits for its first call's result. */
async function beginBoth(a1 = new Agent('a1')): Promise<Agent> {
  project = '-work';
  await start(OLD);
  launch(OLD, 'a1');
  a1.begin(OLD);
  await stop(OLD, 'a1');
  await clear(OLD, NEW);
  return a1;
}

/** Lets an agent do the rest of its work in a session. */
function finish(agent: Agent, session: string): void {
  agent.answer(session, 1);
  agent.call(session, 2);
  agent.answer(session, 2);
  agent.end(session);
}

describe('an agent that goes on after /clear', () => {
  test('is one agent below its call, and only it and the call that it waited for are sent again', async () => {
    const a1 = await beginBoth();
    expect(received('a1')).toMatchObject({
      outcome: 'unfinished',
      responses: ['a1-m1'],
      results: { 'a1-t1': undefined },
    });
    a1.writeMeta(NEW);
    a1.answer(NEW, 1);
    chat(NEW, 1);
    await stop(NEW, 'a1');
    expect(received('a1')).toMatchObject({ outcome: 'unfinished' });
    a1.call(NEW, 2);
    a1.answer(NEW, 2);
    a1.end(NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    expect(received('a1')).toEqual(WHOLE);
    chat(NEW, 2);
    await stop(NEW);
    await leave(NEW);
    expect(sentAgain()).toEqual(['a1-t1', 'a1']);
    expect(workplace.log).toEqual([]);
    await expectSameBackfilled();
  });

  test('is the same if only its id connects the files, as after /branch', async () => {
    const a1 = await beginBoth();
    const copied = { forkedFrom: { sessionId: OLD, messageUuid: 'x' } };
    say(NEW, user('go', { ...copied, uuid: `go-${OLD}` }), assistant('launch', [toolUse('call-a1', 'Agent')], copied));
    finish(a1, NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    await leave(NEW);
    expect(received('a1')).toEqual(WHOLE);
    expect(workplace.server.roots.filter(({ name }) => name.startsWith('Agent'))).toEqual([]);
    await expectSameBackfilled();
  });

  test('and after another /clear is read from three files', async () => {
    const a1 = await beginBoth();
    a1.writeMeta(NEW);
    a1.answer(NEW, 1);
    a1.call(NEW, 2);
    chat(NEW, 1);
    await clear(NEW, NEWER);
    a1.writeMeta(NEWER);
    a1.answer(NEWER, 2);
    a1.end(NEWER);
    notify(NEWER, 'a1');
    await stop(NEWER);
    expect(received('a1')).toEqual(WHOLE);
    await leave(NEWER);
    await expectSameBackfilled();
  });

  test('and after another /clear is whole even if nothing was sent from the session in between', async () => {
    const a1 = await beginBoth();
    await start(NEWER, 'clear');
    a1.answer(NEW, 1);
    a1.call(NEW, 2);
    a1.answer(NEWER, 2);
    a1.end(NEWER);
    notify(NEWER, 'a1');
    await stop(NEWER);
    expect(received('a1')).toEqual(WHOLE);
  });

  test('is sent as far as it came if the new session ends first', async () => {
    const a1 = await beginBoth();
    a1.answer(NEW, 1);
    a1.call(NEW, 2);
    chat(NEW, 1);
    await stop(NEW, 'a1');
    await leave(NEW);
    expect(received('a1')).toMatchObject({
      outcome: 'unfinished',
      results: { 'a1-t1': 'result 1', 'a1-t2': undefined },
    });
  });

  test('and ends between two turns is sent by the next Stop', async () => {
    const a1 = await beginBoth();
    finish(a1, NEW);
    const words = '<task-notification>\n<task-id>a1</task-id>';
    say(
      NEW,
      user('question', { uuid: 'q' }),
      { type: 'attachment', attachment: { type: 'queued_command', prompt: words } },
      assistant('q-m', 'answer'),
    );
    await stop(NEW);
    expect(received('a1')).toEqual(WHOLE);
    await expectSameBackfilled();
  });

  test('is whole if it compacts itself, and if its session was compacted while it worked', async () => {
    project = '-work';
    const a1 = new Agent('a1');
    await start(OLD);
    launch(OLD, 'a1');
    a1.begin(OLD);
    say(OLD, { type: 'system', subtype: 'compact_boundary', uuid: 'c', parentUuid: null, compactMetadata: {} });
    say(OLD, user('summary', { uuid: 's', isCompactSummary: true }));
    await stop(OLD, 'a1');
    await clear(OLD, NEW);
    a1.answer(NEW, 1);
    a1.add(NEW, { type: 'system', subtype: 'compact_boundary', parentUuid: null, compactMetadata: {} });
    a1.add(NEW, user('summary', { isCompactSummary: true }));
    a1.call(NEW, 2);
    a1.answer(NEW, 2);
    a1.end(NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    expect(received('a1')).toEqual(WHOLE);
    await expectSameBackfilled();
  });

  test('after it had ended, since a message continued it, is sent again with its new end', async () => {
    project = '-work';
    const a1 = new Agent('a1');
    await start(OLD);
    launch(OLD, 'a1');
    a1.begin(OLD);
    a1.answer(OLD, 1);
    a1.end(OLD, 'first end');
    notify(OLD, 'a1');
    await stop(OLD);
    await clear(OLD, NEW);
    say(NEW, user('go on', { uuid: 'n1' }), assistant('n1-m', [toolUse('send', 'SendMessage', { to: 'a1' })]));
    say(NEW, user([toolResult('send', 'Resuming')]), assistant('n1-m2', 'sent'));
    a1.add(NEW, user('more', { isMeta: true, origin: { kind: 'coordinator' } }));
    await stop(NEW, 'a1');
    expect(received('a1')).toMatchObject({ output: 'first end' });
    a1.call(NEW, 2);
    a1.answer(NEW, 2);
    a1.end(NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    const [agent] = agentsNamed('a1');
    expect(agent?.input).toEqual([
      { role: 'user', name: 'Claude', content: 'do a1' },
      { role: 'user', name: 'Claude', content: 'more' },
    ]);
    expect(received('a1')).toEqual({ ...WHOLE, responses: ['a1-m1', 'a1-first end', 'a1-m2', 'a1-a1 is done'] });
    expect(sentAgain()).toEqual(['a1']);
    await expectSameBackfilled();
  });

  test('has the agents below it that it started before and after', async () => {
    project = '-work';
    const a1 = new Agent('a1');
    const before = new Agent('before', { toolUseId: 'a1-inner1', parentAgentId: 'a1' });
    const after = new Agent('after', { toolUseId: 'a1-inner2', parentAgentId: 'a1' });
    await start(OLD);
    launch(OLD, 'a1');
    a1.begin(OLD);
    a1.answer(OLD, 1);
    a1.call(OLD, 2, 'Agent', 'a1-inner1');
    before.begin(OLD);
    await stop(OLD, 'a1', 'before');
    await clear(OLD, NEW);
    for (const agent of [a1, before]) agent.writeMeta(NEW);
    finish(before, NEW);
    a1.answer(NEW, 2, 'a1-inner1');
    a1.call(NEW, 3, 'Agent', 'a1-inner2');
    after.begin(NEW);
    finish(after, NEW);
    a1.answer(NEW, 3, 'a1-inner2');
    a1.end(NEW);
    for (const id of ['before', 'after', 'a1']) notify(NEW, id);
    await stop(NEW);
    const ofInner = (id: string) => ({
      ...WHOLE,
      lineage: ['Explore', 'Agent', 'claude-opus-5', ...WHOLE.lineage],
      output: `${id} is done`,
      responses: [`${id}-m1`, `${id}-m2`, `${id}-${id} is done`],
      results: { [`${id}-t1`]: 'result 1', [`${id}-t2`]: 'result 2' },
    });
    expect(received('before')).toEqual(ofInner('before'));
    expect(received('after')).toEqual(ofInner('after'));
    await leave(NEW);
    await expectSameBackfilled();
  });

  test('and is a fork of the main thread has none of the response that launched it', async () => {
    project = '-work';
    const a1 = new Agent('a1', { agentType: 'fork', isFork: true });
    await start(OLD);
    launch(OLD, 'a1');
    a1.writeMeta(OLD);
    appendLines(agentFile(OLD, 'a1'), { type: 'fork-context-ref', agentId: 'a1', parentSessionId: OLD });
    a1.add(OLD, assistant('launch', [toolUse('call-a1', 'Agent')]));
    a1.add(OLD, user([toolResult('call-a1', 'Fork started'), { type: 'text', text: 'do a1' }]));
    a1.call(OLD, 1);
    await stop(OLD, 'a1');
    await clear(OLD, NEW);
    a1.writeMeta(NEW);
    finish(a1, NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    expect(received('a1')).toEqual({ ...WHOLE, lineage: ['fork', ...WHOLE.lineage.slice(1)] });
    const call = workplace.server.observations.find(({ metadata }) => metadata.tool_id === 'call-a1');
    expect(call?.output).toBe('Async agent launched successfully.');
    expect(workplace.server.observations.filter(({ metadata }) => metadata.message_id === 'launch')).toHaveLength(1);
    await expectSameBackfilled();
  });

  test('whose session was moved to a worktree is found there', async () => {
    project = '-work';
    const a1 = new Agent('a1');
    await start(OLD);
    launch(OLD, 'a1');
    a1.begin(OLD);
    await stop(OLD, 'a1');
    mkdirSync(join(workplace.projects, '-worktree'));
    for (const name of [`${OLD}.jsonl`, OLD])
      renameSync(join(workplace.projects, '-work', name), join(workplace.projects, '-worktree', name));
    project = '-worktree';
    chat(OLD, 2);
    await stop(OLD, 'a1');
    await clear(OLD, NEW);
    finish(a1, NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    expect(received('a1')).toEqual(WHOLE);
    await expectSameBackfilled();
  });

  test('is whole if the transcript of its session is gone', async () => {
    const a1 = await beginBoth();
    rmSync(transcript(OLD));
    finish(a1, NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    expect(received('a1')).toEqual(WHOLE);
    expect(workplace.log).toEqual([]);
  });

  test('is a trace of its own from there on if its first file is gone', async () => {
    const a1 = await beginBoth();
    const [before] = agentsNamed('a1');
    rmSync(join(dirname(transcript(OLD)), OLD), { recursive: true });
    finish(a1, NEW);
    notify(NEW, 'a1');
    expect(await stop(NEW)).toMatchObject({ exitCode: 0, stdout: '' });
    await leave(NEW);
    const [kept, rest] = agentsNamed('a1');
    expect(kept).toEqual(before);
    expect(rest).toMatchObject({ parentId: undefined, trace: { name: 'Agent', sessionId: NEW } });
    expect(sentAgain()).toEqual([]);
    expect(workplace.log).toMatchObject([
      { msg: 'parts whose prompt or call is in no file are sent all the same', parts: 1 },
    ]);
  });

  test('loses nothing if a line of its first file lands after the second was read', async () => {
    const a1 = await beginBoth();
    const lateAt = tick();
    finish(a1, NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    a1.add(OLD, { ...assistant('a1-m1', [toolUse('a1-t0')]), timestamp: lateAt });
    chat(NEW, 1);
    await stop(NEW);
    expect(received('a1')).toEqual({ ...WHOLE, results: { 'a1-t0': undefined, ...WHOLE.results } });
  });

  test('loses nothing if its first file grows after the second was read', async () => {
    const a1 = await beginBoth();
    finish(a1, NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    a1.add(OLD, user('more', { isMeta: true, origin: { kind: 'coordinator' } }));
    a1.call(OLD, 3);
    a1.answer(OLD, 3);
    await start(OLD, 'resume');
    notify(OLD, 'a1');
    await stop(OLD);
    expect(received('a1').results).toEqual({ ...WHOLE.results, 'a1-t3': 'result 3' });
    expect(received('a1').responses.toSorted()).toEqual([...WHOLE.responses, 'a1-m3'].toSorted());
    expect(received('a1').observations).toBe(1);
  });
});

describe('what is left of an agent that went on after /clear', () => {
  test('is sent by the next hook if the server failed', async () => {
    const a1 = await beginBoth();
    finish(a1, NEW);
    notify(NEW, 'a1');
    workplace.server.misbehave = (_, __, spans) =>
      spans.some(({ name }) => name === 'Explore') ? { status: 401 } : undefined;
    await stop(NEW);
    expect(received('a1')).toMatchObject({ outcome: 'unfinished' });
    expect(workplace.state[NEW]).toMatchObject({ turnCount: 1, pending: { attempts: 1 } });
    workplace.server.misbehave = () => undefined;
    chat(NEWER, 1);
    await stop(NEWER);
    expect(received('a1')).toEqual(WHOLE);
    expect(workplace.state[NEW]).not.toHaveProperty('pending');
  });

  test('is sent by the next hook if this one was killed while it sent it', async () => {
    const a1 = await beginBoth();
    finish(a1, NEW);
    notify(NEW, 'a1');
    const payload = { session_id: NEW, transcript_path: transcript(NEW), hook_event_name: 'Stop' };
    let kill = () => {};
    workplace.server.misbehave = (_, __, spans) => {
      if (!spans.some(({ name }) => name === 'Explore')) return undefined;
      kill();
      return { status: 500 };
    };
    const killed = await run(['hook'], workplace.env, JSON.stringify(payload), {
      onStart: (child) => {
        kill = () => child.kill('SIGKILL');
      },
    });
    expect(killed.exitCode).toBeNull();
    workplace.server.misbehave = () => undefined;
    expect(received('a1')).toMatchObject({ outcome: 'unfinished' });
    await leave(NEW);
    expect(received('a1')).toEqual(WHOLE);
  });

  test('is sent by the next hook if another run works on the old session meanwhile', async () => {
    const a1 = await beginBoth();
    finish(a1, NEW);
    notify(NEW, 'a1');
    const lock = sessionFile(workplace.stateFolder, OLD, `${workplace.state[OLD]?.destination}.lock`);
    writeFileSync(lock, `${process.pid} ${hostname()} 1`);
    await stop(NEW);
    expect(received('a1')).toMatchObject({ outcome: 'unfinished' });
    expect(workplace.server.roots.map(({ trace }) => trace.sessionId)).toEqual([OLD, NEW]);
    rmSync(lock);
    chat(NEWER, 1);
    await stop(NEWER);
    expect(received('a1')).toEqual(WHOLE);
  });

  test('is sent, if each of two sessions has an agent of the other and both end their turns at once', async () => {
    const a1 = await beginBoth();
    const b1 = new Agent('b1');
    launch(NEW, 'b1');
    b1.begin(NEW);
    await stop(NEW, 'a1', 'b1');
    await leave(NEW);
    await start(OLD, 'resume');
    finish(a1, NEW);
    finish(b1, OLD);
    notify(NEW, 'a1');
    notify(OLD, 'b1');
    workplace.server.misbehave = () => ({ delayMs: 200 });
    // If they waited for each other until their deadlines, the test would time out.
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '600000' };
    await Promise.all([stop(NEW), stop(OLD)]);
    workplace.server.misbehave = () => undefined;
    chat(NEWER, 1);
    await stop(NEWER);
    expect(received('a1')).toEqual(WHOLE);
    expect(received('b1')).toMatchObject({ observations: 1, session: NEW, outcome: 'completed', output: 'b1 is done' });
  });

  test('is sent with the turn that started it, if no hook of the old session came that far', async () => {
    project = '-work';
    const a1 = new Agent('a1');
    await start(OLD);
    launch(OLD, 'a1');
    a1.begin(OLD);
    await start(NEW, 'clear');
    finish(a1, NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    await leave(NEW);
    expect(received('a1')).toMatchObject({ observations: 0 });
    workplace.letIdle();
    chat(NEWER, 1);
    await stop(NEWER);
    expect(received('a1')).toEqual(WHOLE);
    expectEachSentOnce(workplace.server);
  });

  test('is sent once by the old session, if its own end is handled last', async () => {
    project = '-work';
    const a1 = new Agent('a1');
    await start(OLD);
    launch(OLD, 'a1');
    a1.begin(OLD);
    await stop(OLD, 'a1');
    await start(NEW, 'clear');
    finish(a1, NEW);
    await leave(OLD);
    expect(received('a1')).toEqual(WHOLE);
    notify(NEW, 'a1');
    await stop(NEW);
    await leave(NEW);
    expectEachSentOnce(workplace.server);
  });

  test('is not sent again by a backfill', async () => {
    const a1 = await beginBoth();
    finish(a1, NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    await leave(NEW);
    const before = workplace.server.requests.length;
    workplace.letIdle();
    await workplace.backfill('--all');
    expect(workplace.server.requests.slice(before).filter(({ spans }) => spans > 0)).toEqual([]);
  });

  test('is added by a backfill if no hook ran in the new session', async () => {
    const a1 = await beginBoth();
    finish(a1, NEW);
    notify(NEW, 'a1');
    workplace.letIdle();
    expect(await workplace.backfill('--all')).toMatchObject({ exitCode: 0 });
    expect(received('a1')).toEqual(WHOLE);
    expect(sentAgain()).toEqual(['a1-t1', 'a1']);
  });
});

describe('what an agent did after /clear is not sent', () => {
  const mute = (session: string) => run(['mute', session], workplace.env, '', { cwd: workplace.home });
  const UNFINISHED = { session: OLD, outcome: 'unfinished', responses: ['a1-m1'] };

  test.each([OLD, NEW])('if session %s is muted', async (muted) => {
    const a1 = await beginBoth();
    finish(a1, NEW);
    chat(NEW, 1);
    await stop(NEW, 'a1');
    expect(await mute(muted)).toMatchObject({ exitCode: 0 });
    notify(NEW, 'a1');
    await stop(NEW);
    await leave(NEW);
    await start(OLD, 'resume');
    chat(OLD, 2);
    await leave(OLD);
    workplace.letIdle();
    await workplace.backfill('--all');
    expect(received('a1')).toMatchObject(UNFINISHED);
  });

  test('to the destination of the new session, if that is another one', async () => {
    const a1 = await beginBoth();
    const elsewhere = await Workplace.open();
    try {
      const own = workplace.env;
      workplace.env = { ...own, LANGFUSE_BASE_URL: elsewhere.server.url } as Environment;
      finish(a1, NEW);
      await start(NEW, 'clear');
      notify(NEW, 'a1');
      await stop(NEW);
      await leave(NEW);
      expect(elsewhere.server.roots.map(({ name }) => name)).toEqual(['Turn 1']);
      expect(elsewhere.server.observations.filter(({ metadata }) => metadata.agent_id !== undefined)).toEqual([]);
      expect(received('a1')).toMatchObject(UNFINISHED);
    } finally {
      await elsewhere.close();
    }
  });

  test('if the agent was started with tracing off; a backfill sends all of it', async () => {
    project = '-work';
    const a1 = new Agent('a1');
    launch(OLD, 'a1');
    a1.begin(OLD);
    await start(NEW, 'clear');
    a1.writeMeta(NEW);
    finish(a1, NEW);
    notify(NEW, 'a1');
    await stop(NEW);
    await leave(NEW);
    expect(workplace.server.roots.map(({ name, trace }) => [name, trace.sessionId])).toEqual([['Turn 1', NEW]]);
    workplace.letIdle();
    await workplace.backfill('--all');
    expect(received('a1')).toEqual(WHOLE);
    expectEachSentOnce(workplace.server);
  });

  test('unasked if tracing is off in the new session', async () => {
    project = '-work';
    const a1 = new Agent('a1');
    await start(OLD);
    launch(OLD, 'a1');
    a1.begin(OLD);
    await stop(OLD, 'a1');
    finish(a1, NEW);
    await leave(OLD);
    expect(received('a1')).toMatchObject(UNFINISHED);
  });
});

describe('a workflow that goes on after /clear', () => {
  const RUN = 'wf_1a2b';
  const stepFile = (session: string, id: string) =>
    join(workplace.projects, project, session, 'subagents', 'workflows', RUN, `agent-${id}.jsonl`);
  const stepLines = (id: string, from: number) => {
    const own = (n: number) => ({ isSidechain: true, agentId: id, uuid: `${id}-${n}`, timestamp: at(from + n) });
    return [user(`do ${id}`, own(1)), assistant(`${id}-m`, `${id} is done`, { ...own(2), parentUuid: `${id}-1` })];
  };

  test('is sent by a backfill with the steps in the folder of the new session, once, also by force', async () => {
    project = '-work';
    say(
      OLD,
      user('go', { uuid: 'go' }),
      assistant('launch', [toolUse('call', 'Workflow')]),
      user([toolResult('call', 'started')], { uuid: 'r', toolUseResult: { runId: RUN, status: 'async_launched' } }),
      assistant('launched', 'launched'),
    );
    appendLines(stepFile(OLD, 's1'), ...stepLines('s1', 10));
    chat(NEW, 1);
    appendLines(stepFile(NEW, 's2'), ...stepLines('s2', 20));
    workplace.letIdle();
    const above = ({ traceId, parentId }: StoredObservation) =>
      workplace.server.observations.find((each) => each.traceId === traceId && each.id === parentId)?.metadata.tool_id;
    const steps = () =>
      workplace.server.observations
        .filter(({ type, metadata }) => type === 'agent' && metadata.agent_id !== undefined)
        .map((step) => [step.metadata.agent_id, step.trace.sessionId, above(step), step.level])
        .toSorted();
    const expected = [
      ['s1', OLD, 'call', 'DEFAULT'],
      ['s2', OLD, 'call', 'DEFAULT'],
    ];
    await workplace.backfill('--all');
    expect(steps()).toEqual(expected);
    expectEachSentOnce(workplace.server);
    await workplace.backfill('--all', '--force');
    expect(steps()).toEqual(expected);
  });
});
