import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { READER } from '../../src/export/overlooked.js';
import { appendLines, assistant, at, SESSION, toolResult, toolUse, turnLines, user } from '../support/lines.js';
import { type Environment, run, Workplace } from '../support/program.js';
import { play, recording } from '../support/recording.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { changeState } from '../support/state-files.js';
import { runInTerminal } from '../support/terminal.js';
import { describeTraces } from '../support/traces.js';

// Version 0 of the reader sent nothing of a session's first turn if its prompt was /goal, or was not in the file.

const FORK = '33333333-3333-4333-8333-333333333333';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const path = (session = SESSION) => workplace.transcriptOf(session);
const reader = (session = SESSION) => workplace.state[session]?.reader;
const turns = () => workplace.server.roots.map(({ name }) => name).toSorted();
const spans = () => workplace.server.requests.reduce((sum, request) => sum + request.spans, 0);
const send = async (...args: string[]) => {
  const { stdout, exitCode } = await workplace.backfill('--all', '--json', ...args);
  const [{ outcome, reason, turns: sent, untraced }] = JSON.parse(stdout).sessions;
  return { exitCode, outcome, reason, sent, untraced };
};
const exported = { exitCode: 0, outcome: 'exported', reason: undefined, sent: 1, untraced: 0 };
const alreadyThere = { exitCode: 0, outcome: 'already there', reason: undefined, sent: 0, untraced: 0 };

const GOAL = [
  user(
    '<command-name>/goal</command-name>\n<command-message>goal</command-message>\n<command-args>Tidy</command-args>',
    {
      uuid: 'g1',
      promptId: 'p0',
      timestamp: at(1),
    },
  ),
  user('<local-command-stdout>Goal set: Tidy</local-command-stdout>', {
    uuid: 'g2',
    parentUuid: 'g1',
    promptId: 'p0',
    turnOrigin: 'human',
    timestamp: at(1),
  }),
  assistant('g3', [toolUse('t1', 'Bash')], { uuid: 'g3', parentUuid: 'g2', timestamp: at(2) }),
  assistant('g4', 'all is tidy', { uuid: 'g4', parentUuid: 'g3', timestamp: at(3) }),
];

/** A session that hooks have sent: /goal, then two questions. */
async function work(env: Environment = {}, first: object[] = GOAL): Promise<void> {
  workplace.env = { ...workplace.env, ...env };
  appendLines(path(), ...first);
  await workplace.stop();
  for (const n of [1, 2]) {
    workplace.addTurn(n);
    await workplace.stop();
  }
  expect(turns()).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
}

const stopOf = (session = SESSION) => ({
  session_id: session,
  transcript_path: path(session),
  hook_event_name: 'Stop',
});

/** Version 0 of the reader did not say who it was, and remembered only the last turns that it knew. */
function forgetReader(session = SESSION): void {
  const { destination, reader } = workplace.state[session] ?? {};
  expect(reader).toBe(READER);
  changeState(workplace.stateFolder, session, { reader: undefined, kept: undefined, roots: undefined }, destination);
}

/** Leaves the state and the server as version 0 of the reader would have left them. Returns what it has not sent. */
function asReadByOlder(session = SESSION) {
  const { server } = workplace;
  forgetReader(session);
  const { traceId } = server.roots.find(({ name }) => name === 'Turn 1') ?? {};
  const overlooked = server.observations.filter((each) => each.traceId === traceId);
  server.remove((each) => each.traceId === traceId);
  return overlooked;
}

describe('a session that an older version of the reader has read', () => {
  test('gets what that has overlooked by a backfill, and nothing else a second time', async () => {
    await work();
    workplace.letIdle();
    const others = workplace.server.observations.length;
    const overlooked = asReadByOlder();
    expect(overlooked).toHaveLength(4);
    const before = spans();
    expect(await send('--dry-run')).toEqual(exported);
    expect({ spans: spans(), reader: reader() }).toEqual({ spans: before, reader: undefined });
    expect(await send()).toEqual(exported);
    expect({ spans: spans(), reader: reader() }).toEqual({ spans: before + overlooked.length, reader: READER });
    expect(workplace.server.observations).toHaveLength(others);
    expect(workplace.server.observations).toEqual(expect.arrayContaining(overlooked));
    expect(await send('--dry-run')).toEqual(alreadyThere);
    expect(await send()).toEqual(alreadyThere);
    await workplace.stop();
    workplace.addTurn(3);
    await workplace.stop();
    expectEachSentOnce(workplace.server);
    expect(workplace.state[SESSION]).not.toHaveProperty('kept');
    expect(workplace.log).toEqual([]);
  });

  test('is left alone by hooks, which go on where that has stopped', async () => {
    await work();
    asReadByOlder();
    const before = spans();
    await workplace.stop();
    expect(spans()).toBe(before);
    workplace.addTurn(3);
    await workplace.stop();
    expect(turns()).toEqual(['Turn 2', 'Turn 3', 'Turn 4']);
    expect(reader()).toBeUndefined();
    workplace.letIdle();
    expect(await send()).toEqual(exported);
    await workplace.stop();
    expect(turns()).toEqual(['Turn 1', 'Turn 2', 'Turn 3', 'Turn 4']);
    expectEachSentOnce(workplace.server);
  });

  test.each(['r-goal', 'r-goalstop'])('is in the end as if it had never been read by that: %s', async (name) => {
    await play(recording(name), workplace.home, async ({ payload }) => void (await workplace.hook(payload)));
    workplace.letIdle();
    const [session = ''] = Object.keys(workplace.state);
    const whole = describeTraces(workplace.server.observations);
    const isGoalFirst = name === 'r-goal';
    asReadByOlder(session);
    expect(await send()).toMatchObject({ outcome: isGoalFirst ? 'exported' : 'already there' });
    expect(describeTraces(workplace.server.observations) === whole).toBe(isGoalFirst);
    expect(await send()).toEqual(alreadyThere);
  });

  test('is read again even if a backfill has sent it, and its file has not changed since', async () => {
    appendLines(path(), ...GOAL, ...turnLines(1));
    workplace.letIdle();
    expect(await send()).toMatchObject({ outcome: 'exported', sent: 2 });
    const overlooked = asReadByOlder();
    expect(await send()).toEqual(exported);
    expect(workplace.server.observations).toEqual(expect.arrayContaining(overlooked));
    expect(await send()).toEqual(alreadyThere);
    expectEachSentOnce(workplace.server);
  });

  test('gets a turn whose prompt is not in the file', async () => {
    await work({}, [assistant('g3', 'all is tidy', { uuid: 'g3', timestamp: at(2) })]);
    workplace.letIdle();
    const overlooked = asReadByOlder();
    expect(await send()).toEqual(exported);
    expect(workplace.server.observations).toEqual(expect.arrayContaining(overlooked));
    expectEachSentOnce(workplace.server);
  });

  test('gets its overlooked turn even if that is the last one, once it is over', async () => {
    appendLines(path(), ...GOAL);
    await workplace.stop();
    const overlooked = asReadByOlder();
    expect(await send()).toEqual(alreadyThere);
    workplace.letIdle();
    expect(await send()).toEqual(exported);
    expect(workplace.server.observations).toEqual(overlooked);
    expect(await send()).toEqual(alreadyThere);
    expectEachSentOnce(workplace.server);
  });

  test('gets the rest by the next backfill if one fails', async () => {
    await work();
    workplace.letIdle();
    const overlooked = asReadByOlder();
    workplace.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
    expect(await send()).toMatchObject({ outcome: 'failed' });
    workplace.server.misbehave = () => undefined;
    await workplace.stop();
    expect(turns()).toEqual(['Turn 2', 'Turn 3']);
    workplace.letIdle();
    expect(await send()).toEqual(exported);
    expect(workplace.server.observations).toEqual(expect.arrayContaining(overlooked));
    expectEachSentOnce(workplace.server);
  });

  test('is asked about, and named in the summary', async () => {
    await work();
    workplace.letIdle();
    asReadByOlder();
    const again = '1 session was read by an older version and is read again: turns that it overlooked are sent whole.';
    const inTerminal = async (typed: string) => {
      const { screen } = await runInTerminal(['backfill', '--all'], workplace, { 'Send? [y/N]': typed });
      return stripVTControlCharacters(screen).replace(/\s+/g, ' ');
    };
    const { host } = new URL(workplace.server.url);
    const question = `1 turn of 1 session (1 trace, 4 observations, 0 scores) will be sent to project "Embedded" at ${host}. ${again} Send? [y/N]`;
    expect(await inTerminal('n\r')).toContain(question);
    expect(turns()).toEqual(['Turn 2', 'Turn 3']);
    expect((await workplace.backfill('--all', '--dry-run')).stdout).toContain(
      `to be sent: 1 turn, 2 generations, 1 tool`,
    );
    const done = await inTerminal('y\r');
    expect(done).toContain(question);
    expect(done.slice(done.indexOf('exported'))).toContain(again);
    expect(turns()).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
    expect((await workplace.backfill('--all')).stdout).not.toContain('older version');
  });

  test('is sent again whole with --force, and is then known to be read by this version', async () => {
    await work();
    workplace.letIdle();
    asReadByOlder();
    await workplace.backfill('--all', '--force');
    expect(turns()).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
    expect(reader()).toBe(READER);
    expect(await send()).toEqual(alreadyThere);
  });
});

describe('an overlooked turn stays', () => {
  const command = (...args: string[]) => run(args, workplace.env, '', { cwd: workplace.home });
  const expectNothing = async () => {
    workplace.letIdle();
    const before = spans();
    for (const _ of [1, 2]) expect(await send()).toMatchObject({ exitCode: 0, sent: 0 });
    expect(spans()).toBe(before);
  };

  test('if the session was muted then', async () => {
    await workplace.start({ session_id: SESSION, transcript_path: path() });
    appendLines(path(), ...GOAL.slice(0, 2));
    await command('mute', SESSION);
    appendLines(path(), ...GOAL.slice(2));
    await workplace.stop();
    await command('unmute', SESSION);
    workplace.addTurn(1);
    await workplace.stop();
    expect(turns()).toEqual(['Turn 2']);
    forgetReader();
    await expectNothing();
    expect(reader()).toBe(READER);
  });

  test('if its folder is excluded', async () => {
    await work();
    asReadByOlder();
    workplace.env = { ...workplace.env, CC_LANGFUSE_EXCLUDE: workplace.home };
    await expectNothing();
  });

  test('if it is for another project', async () => {
    await work();
    asReadByOlder();
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: workplace.server.url.replace('127.0.0.1', 'localhost') };
    await expectNothing();
  });

  test('if ids depend on the numbers of turns, which were others then', async () => {
    await work({ CC_LANGFUSE_TRACE_SEED: 'seed' });
    asReadByOlder();
    await expectNothing();
  });

  test('if the first cc-langfuse has sent the session, since its ids are random', async () => {
    appendLines(path(), ...GOAL, ...turnLines(1));
    mkdirSync(workplace.stateFolder, { recursive: true });
    const seed = { last_line: 6, turn_count: 1, updated: '2026-10-01T00:00:00.000Z' };
    writeFileSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), JSON.stringify({ [SESSION]: seed }));
    await expectNothing();
    appendLines(path(), ...turnLines(2));
    workplace.letIdle();
    expect(await send()).toMatchObject({ outcome: 'exported', sent: 1 });
    expect(turns()).toEqual(['Turn 2']);
    await expectNothing();
  });

  test('if it was copied from a session that was muted then, and nothing says that it is a copy', async () => {
    const version = { version: '2.1.197' };
    await workplace.start({ session_id: SESSION, transcript_path: path() });
    await command('mute', SESSION);
    const first = user('taken back', { uuid: 'q0', timestamp: at(0), ...version });
    const lines = [first, ...GOAL.map((line) => ({ ...line, ...version }))];
    appendLines(path(), ...lines);
    await workplace.stop();
    appendLines(path(FORK), ...lines);
    workplace.addTurn(1, FORK);
    workplace.letIdle();
    const sendFork = async () => JSON.parse((await workplace.backfill('--json', path(FORK))).stdout).sessions[0];
    expect(await sendFork()).toMatchObject({ outcome: 'exported', turns: 1, untraced: 1 });
    forgetReader(FORK);
    expect(await sendFork()).toMatchObject({ outcome: 'already there', turns: 0 });
    expect(turns()).toEqual(['Turn 2']);
  });
});

test('an overlooked turn that waits for the next backfill is not sent by a fork of its session', async () => {
  const version = { version: '2.1.197' };
  const lines = GOAL.map((line) => ({ ...line, ...version }));
  await work({}, lines);
  workplace.letIdle();
  const overlooked = asReadByOlder();
  workplace.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
  expect(await send()).toMatchObject({ outcome: 'failed' });
  workplace.server.misbehave = () => undefined;
  appendLines(path(FORK), ...lines);
  workplace.addTurn(3, FORK);
  await workplace.stop(FORK);
  expect(workplace.server.roots.map(({ trace }) => trace.sessionId)).toEqual([SESSION, SESSION, FORK]);
  workplace.letIdle();
  await workplace.backfill('--all');
  expect(workplace.server.observations).toEqual(expect.arrayContaining(overlooked));
  expectEachSentOnce(workplace.server);
});

test('an overlooked turn that ran without tracing is counted as such', async () => {
  appendLines(path(), ...GOAL);
  await workplace.hook({ ...stopOf(), hook_event_name: 'SessionStart', source: 'resume' });
  workplace.addTurn(1);
  await workplace.stop();
  expect(turns()).toEqual(['Turn 2']);
  forgetReader();
  await workplace.stop();
  workplace.letIdle();
  expect(turns()).toEqual(['Turn 2']);
  expect(await send()).toEqual({ ...exported, untraced: 1 });
  expect(await send()).toEqual(alreadyThere);
  expectEachSentOnce(workplace.server);
});

test('agents of an overlooked turn are sent, and others not again', async () => {
  const agentSays = (id: string, seconds: number, meta: object, parentUuid?: string) => {
    const file = join(dirname(path()), SESSION, 'subagents', `agent-${id}.jsonl`);
    const own = { isSidechain: true, agentId: id, sessionId: SESSION, timestamp: at(seconds) };
    appendLines(file, user('look', { ...own, uuid: id, parentUuid }), assistant(`${id}-m`, `${id} has looked`, own));
    writeFileSync(file.replace('.jsonl', '.meta.json'), JSON.stringify(meta));
  };
  const withAgent = (id: string, call: string, seconds: number) => [
    assistant(`${id}-c`, [toolUse(call, 'Agent')], { timestamp: at(seconds) }),
    user([toolResult(call)], { timestamp: at(seconds + 1), toolUseResult: { status: 'completed', agentId: id } }),
    assistant(`${id}-e`, `${id} is back`, { timestamp: at(seconds + 2) }),
  ];
  agentSays('a1', 3, { agentType: 'Explore', toolUseId: 'c1' });
  agentSays('a2', 12, { agentType: 'Explore', toolUseId: 'c2' });
  // Version 0 took it for an agent that goes on elsewhere.
  agentSays('acompact-c', 20, { agentType: 'compaction' }, 'elsewhere');
  appendLines(path(), ...GOAL.slice(0, 2), ...withAgent('a1', 'c1', 3));
  await workplace.stop();
  appendLines(path(), user('go on', { uuid: 'u1', promptId: 'p1', timestamp: at(10) }), ...withAgent('a2', 'c2', 11));
  await workplace.stop();
  workplace.letIdle();
  const { agents } = workplace.state[SESSION] ?? {};
  const overlooked = asReadByOlder();
  changeState(workplace.stateFolder, SESSION, { agents: { a2: agents?.a2 } }, workplace.state[SESSION]?.destination);
  expect(overlooked.map(({ name }) => name)).toContain('Explore');
  expect(await send()).toEqual({ ...exported, sent: 2 });
  expect(workplace.server.observations).toEqual(expect.arrayContaining(overlooked));
  expect(turns()).toEqual(['Agent compaction', 'Turn 1', 'Turn 2']);
  expect(await send()).toEqual(alreadyThere);
  expectEachSentOnce(workplace.server);
});

describe('the version of the reader', () => {
  test('is the older one as long as hooks go on with a session, and that of the program that is older', async () => {
    workplace.addTurn(1);
    await workplace.stop();
    expect(reader()).toBe(READER);
    forgetReader();
    workplace.addTurn(2);
    await workplace.stop();
    expect(reader()).toBeUndefined();
    changeState(workplace.stateFolder, SESSION, { reader: READER + 1 }, workplace.state[SESSION]?.destination);
    workplace.addTurn(3);
    await workplace.stop();
    expect(reader()).toBe(READER);
  });

  test('is that of this one if the transcript was rewritten, so that all of it was sent', async () => {
    workplace.addTurn(1);
    await workplace.stop();
    forgetReader();
    rmSync(path());
    workplace.addTurn(2);
    workplace.addTurn(3);
    await workplace.hook({ ...stopOf(), hook_event_name: 'SessionEnd' });
    expect(reader()).toBe(READER);
  });
});
