import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { READER } from '../../src/export/overlooked.js';
import { BEGINNING } from '../../src/shared/place.js';
import { Places } from '../../src/transcript/file/place.js';
import { callInstantly } from '../support/call-hook.js';
import { LangfuseServer } from '../support/langfuse-server.js';
import {
  appendLines,
  assistant,
  at,
  jsonLines,
  SESSION,
  text,
  toolResult,
  toolUse,
  turnLines,
  user,
} from '../support/lines.js';
import { type Environment, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { listWaiting, sessionFile } from '../support/state-files.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(async () => {
  await workplace.close();
});

const transcript = (session = SESSION) => workplace.transcriptOf(session);
const projects = () => dirname(transcript());

function write(lines: readonly (object | string)[], session = SESSION): void {
  mkdirSync(projects(), { recursive: true });
  writeFileSync(transcript(session), jsonLines(lines));
}

const append = (...lines: (object | string)[]) => appendLines(transcript(), ...lines);

function payload(more: object = {}): object {
  return { session_id: SESSION, transcript_path: transcript(), hook_event_name: 'Stop', ...more };
}

const names = () => workplace.server.observations.map(({ name }) => name);
const arrivals = () => [...workplace.server.arrivals.values()];
const messages = () => workplace.log.map(({ msg }) => msg);
const quietly = { exitCode: 0, stdout: '', stderr: '' };

describe('one hook after another', () => {
  test('a run continues where the last one stopped', async () => {
    write([...turnLines(1), ...turnLines(2)]);
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
    append(...turnLines(3));
    const startOf = (n: number) => jsonLines([1, 2, 3].slice(0, n - 1).flatMap((each) => turnLines(each))).length;
    await workplace.hook(payload());
    await workplace.hook(payload({ hook_event_name: 'SessionEnd' }));
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
    expectEachSentOnce(workplace.server);
    expect(workplace.state[SESSION]).toEqual({
      id: SESSION,
      facts: ['start', 'stop', 'end'].map((kind) => expect.objectContaining({ kind })),
      stops: [expect.objectContaining({ promptId: 'p3', isDone: true })],
      endedAt: expect.any(Number),
      prompts: Object.fromEntries([1, 2, 3].map((n) => [`p${n}`, startOf(n)])),
      claims: [],
      mutes: [],
      lastLine: 6,
      sentLine: 6,
      turnCount: 3,
      reader: READER,
      turnLine: 5,
      offset: startOf(3),
      end: statSync(transcript()).size,
      hash: expect.stringMatching(/^[0-9a-f]{16}$/),
      prompt: 'u3',
      roots: [expect.stringMatching(/^[0-9a-f]{16}$/)],
      first: 'u1',
      bytes: statSync(transcript()).size,
      file: expect.stringMatching(new RegExp(`^\\d+ ${statSync(transcript()).size} \\d+$`)),
      acknowledged: true,
      runs: [
        {
          from: BEGINNING,
          to: new Places(transcript()).at(),
          startedAt: expect.any(Number),
          endedAt: expect.any(Number),
          destination: workplace.state[SESSION]?.destination,
          given: {},
        },
      ],
      path: transcript(),
      destination: expect.stringMatching(/^[0-9a-f]{16}$/),
      updated: expect.any(String),
    });
    expect(workplace.log).toEqual([]);
  });

  test('a turn without an answer is exported once it has one', async () => {
    write([...turnLines(1), ...turnLines(2).slice(0, 1)]);
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 2, turnCount: 1 });
    append(...turnLines(2).slice(1));
    await workplace.hook(payload());
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
  });

  test('a turn that continues after its Stop is updated in place', async () => {
    write([user('go', { timestamp: at(0) }), assistant('m1', [toolUse('t1')], { timestamp: at(1) })]);
    await workplace.hook(payload());
    append(user([toolResult('t1')], { timestamp: at(2) }), assistant('m2', 'done', { timestamp: at(3) }));
    await workplace.hook(payload());
    await workplace.hook(payload());
    const [root] = workplace.server.observations.filter(({ parentId }) => parentId === undefined);
    expect(root).toMatchObject({ output: { content: 'done' }, endTime: Date.parse(at(3)) });
    const sent = Object.fromEntries(
      workplace.server.observations.map((observation) => [
        `${observation.type} ${observation.name} ${observation.startTime - Date.parse(at(0))}`,
        workplace.server.timesSent(observation),
      ]),
    );
    expect(sent).toEqual({
      'agent Turn 1 0': 2,
      'generation claude-opus-5 0': 1,
      'tool Read 1000': 2,
      'generation claude-opus-5 2000': 1,
    });
  });

  test('only the root of a turn is sent again when its session goes on in another one', async () => {
    const next = '22222222-2222-4222-8222-222222222222';
    write([...turnLines(1), ...turnLines(2)]);
    await workplace.hook(payload());
    append({ type: 'continued-in', timestamp: at(26), sessionId: SESSION, continuedInSessionId: next });
    await workplace.hook(payload({ hook_event_name: 'SessionEnd' }));
    const sent = workplace.server.observations.map((each) => [
      `${each.trace.name} ${each.type}`,
      each.metadata.continued_in_session,
      workplace.server.timesSent(each),
    ]);
    expect(sent.toSorted()).toEqual([
      ['Turn 1 agent', undefined, 1],
      ['Turn 1 generation', undefined, 1],
      ['Turn 2 agent', next, 2],
      ['Turn 2 generation', undefined, 1],
    ]);
  });

  test('unreadable lines are logged once and do not shift the line count', async () => {
    write(['torn {', ...turnLines(1), 'no JSON', ...turnLines(2)]);
    await workplace.hook(payload());
    append('{"also torn":', ...turnLines(3));
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 9, turnCount: 3, turnLine: 7 });
    expect(workplace.log.map(({ msg, file, line, reason }) => ({ msg, file, line, reason }))).toEqual(
      [1, 4, 7].map((line) => ({
        msg: 'skipped a line that cannot be read',
        file: transcript(),
        line,
        reason: 'not JSON',
      })),
    );
    expectEachSentOnce(workplace.server);
  });

  test('what the first cc-langfuse exported is not exported again: its state file is read', async () => {
    write([...turnLines(1), ...turnLines(2), ...turnLines(3)]);
    mkdirSync(workplace.stateFolder, { recursive: true });
    const old = { [SESSION]: { last_line: 4, turn_count: 2, updated: '2026-02-01T00:00:00.000Z' } };
    writeFileSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), JSON.stringify(old));
    await workplace.hook(payload());
    append(...turnLines(4));
    await workplace.hook(payload());
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 3', 'Turn 4']);
    expectEachSentOnce(workplace.server);
  });

  test.each([
    [
      'one after the other',
      async (hooks: (() => Promise<unknown>)[]) => {
        for (const hook of hooks) await hook();
      },
    ],
    ['at the same time', (hooks: (() => Promise<unknown>)[]) => Promise.all(hooks.map((hook) => hook()))],
  ])(
    'what the first cc-langfuse exported is sent to neither of two destinations, whose hooks come %s',
    async (_, call) => {
      const second = await LangfuseServer.start();
      try {
        write([...turnLines(1), ...turnLines(2)]);
        mkdirSync(workplace.stateFolder, { recursive: true });
        const old = { [SESSION]: { last_line: 4, turn_count: 2, updated: '2026-02-01T00:00:00.000Z' } };
        writeFileSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), JSON.stringify(old));
        append(...turnLines(3), ...turnLines(4));
        const stop = (n: number, env?: Environment) => () => workplace.hookAlone(payload({ prompt_id: `p${n}` }), env);
        await call([stop(3), stop(4, { LANGFUSE_BASE_URL: second.url })]);
        expect([workplace.server, second].map(({ roots }) => roots.map(({ name }) => name))).toEqual([
          ['Turn 3'],
          ['Turn 4'],
        ]);
      } finally {
        await second.stop();
      }
    },
  );

  test('a transcript that was moved to another folder is still the same session', async () => {
    write(turnLines(1));
    await workplace.hook(payload());
    const moved = join(projects(), 'worktree', `${SESSION}.jsonl`);
    mkdirSync(dirname(moved));
    renameSync(transcript(), moved);
    appendFileSync(moved, jsonLines(turnLines(2)));
    await workplace.hook(payload({ transcript_path: moved }));
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
    expect(workplace.state[SESSION]).toMatchObject({ path: moved, turnCount: 2 });
  });

  test('a transcript whose bytes were shifted is continued at its line, and one that was replaced is read from the start', async () => {
    write([...turnLines(1), ...turnLines(2)]);
    await workplace.hook(payload());
    write([user('question 1, edited', { uuid: 'u1' }), ...turnLines(1).slice(1), ...turnLines(2), ...turnLines(3)]);
    await workplace.hook(payload());
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
    expectEachSentOnce(workplace.server);
    write([...turnLines(7)]);
    await workplace.hook(payload());
    expect(workplace.server.observations.at(-1)).toMatchObject({ name: 'Turn 1', input: [{ content: 'question 7' }] });
  });
});

describe('a transcript that was cut', () => {
  test('and has grown longer than it was loses no new turn', async () => {
    const calls = Array.from({ length: 20 }, (_, n) => [
      assistant(`c${n}`, [toolUse(`t${n}`)]),
      user([toolResult(`t${n}`)]),
    ]);
    write([...turnLines(1), ...calls.flat()]);
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 42, turnCount: 1 });
    write(turnLines(1));
    for (let n = 2; n < 25; n += 1) append(...turnLines(n));
    await workplace.hook(payload());
    const roots = workplace.server.observations.filter(({ parentId }) => parentId === undefined);
    expect(roots.map(({ name }) => name)).toEqual(Array.from({ length: 24 }, (_, n) => `Turn ${n + 1}`));
    expect(messages()).toContain('the transcript has been changed, it is read from its beginning');
  });

  test('to fewer lines than the first cc-langfuse recorded is read from the top', async () => {
    write([...turnLines(1)]);
    mkdirSync(workplace.stateFolder, { recursive: true });
    const old = { [SESSION]: { last_line: 50, turn_count: 12, updated: '2026-02-01T00:00:00.000Z' } };
    writeFileSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), JSON.stringify(old));
    await workplace.hook(payload());
    append(...turnLines(2));
    await workplace.hook(payload());
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
    expectEachSentOnce(workplace.server);
  });
});

describe('an answer that a Stop hook announces', () => {
  const stop = () => payload({ last_assistant_message: 'answer 1' });

  test('is waited for if the file does not contain it yet, and is sent by its own Stop', async () => {
    const [prompt = {}, answer = {}] = turnLines(1);
    write([prompt]);
    const hook = workplace.hook(stop());
    await sleep(200);
    append(answer);
    expect(await hook).toMatchObject(quietly);
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('closes no turn that has begun since its own was sent, if the event comes late and names no prompt', async () => {
    const unnamed = { promptId: undefined };
    write(turnLines(1, unnamed));
    await workplace.hook(stop());
    append(
      user('question 2', { uuid: 'u2', parentUuid: 'a1' }),
      assistant('m2', [toolUse('t2')], { parentUuid: 'u2' }),
    );
    await workplace.hook(stop());
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('is recognised although the payload contains it trimmed', async () => {
    // If it were not recognised, the hook would wait in vain and then close the second turn, too.
    const answered = [user('go', { promptId: 'p1' }), assistant('m1', '\n  answer 1 \n', { promptId: 'p1' })];
    write([...answered, ...turnLines(2, { promptId: 'p2' })]);
    await workplace.hook(payload({ last_assistant_message: 'answer 1', prompt_id: 'p1' }));
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('is not confused with the same words in the turn before', async () => {
    write(turnLines(1));
    await workplace.hook(stop());
    const [prompt = {}] = turnLines(2);
    append(prompt);
    const hook = workplace.hook(stop());
    await sleep(200);
    append(assistant('m2', 'answer 1', { uuid: 'a2', parentUuid: 'u2', timestamp: at(30) }));
    await hook;
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
  });

  test('is no longer waited for after two seconds', async () => {
    write([...turnLines(1), user('two', { uuid: 'u2', parentUuid: 'a1', promptId: 'p2' })]);
    const { ms } = await workplace.hook(payload({ last_assistant_message: 'something else', prompt_id: 'p1' }));
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
    expect(ms).toBeGreaterThan(1_900);
  });

  test('closes its own turn, but not a turn that has begun after it', async () => {
    write([...turnLines(1, { promptId: 'p1' }), ...turnLines(2, { promptId: 'p2' })]);
    await workplace.hook(payload({ last_assistant_message: 'answer 1', prompt_id: 'p1' }));
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });
});

describe('the session that this one continues', () => {
  const previous = '22222222-2222-4222-8222-222222222222';

  /** It was traced. */
  const start = () => workplace.start({ session_id: previous, transcript_path: transcript(previous) });

  test('has its turns exported first, under its own id', async () => {
    await start();
    write(turnLines(1, { sessionId: previous }), previous);
    write([user('planned', { sessionId: previous }), ...turnLines(2, { sessionId: SESSION })]);
    await workplace.hook(payload());
    await workplace.hook(payload());
    const roots = workplace.server.observations.filter(({ parentId }) => parentId === undefined);
    expect(roots.map(({ trace, input }) => [trace.sessionId, input])).toEqual([
      [previous, [{ role: 'user', content: 'question 1' }]],
      [SESSION, [{ role: 'user', content: 'question 2' }]],
    ]);
    expect(Object.keys(workplace.state).toSorted()).toEqual([previous, SESSION].toSorted());
    expectEachSentOnce(workplace.server);
  });

  test('is left alone if it belongs to another destination, or ended long ago and no SessionStart was seen of either', async () => {
    write(turnLines(1, { sessionId: previous }), previous);
    write([user('planned', { sessionId: previous }), ...turnLines(2)]);
    mkdirSync(workplace.stateFolder, { recursive: true });
    const folder = sessionFile(workplace.stateFolder, previous, '');
    mkdirSync(folder, { recursive: true });
    const run = { destination: 'another', given: {} };
    const facts = [{ kind: 'start', at: 1, after: BEGINNING, source: 'startup', run, alive: [] }];
    writeFileSync(join(folder, 'session.json'), JSON.stringify({ version: 1, id: previous, facts }));
    await workplace.hookAlone(payload({ prompt_id: 'p2' }));
    rmSync(join(workplace.stateFolder, 'cc-langfuse_sessions'), { recursive: true });
    const yesterday = new Date(Date.now() - 86_400_000);
    utimesSync(transcript(previous), yesterday, yesterday);
    append(...turnLines(3));
    await workplace.hookAlone(payload({ prompt_id: 'p3' }));
    expect(new Set(workplace.server.observations.map(({ trace }) => trace.sessionId))).toEqual(new Set([SESSION]));
  });

  test('does not block this one if it cannot be read', async () => {
    write([user('planned', { sessionId: previous }), ...turnLines(1)]);
    mkdirSync(transcript(previous));
    await workplace.hook(payload());
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('does not block this one if the server refuses its spans, and is tried again afterwards', async () => {
    await start();
    write(turnLines(1, { sessionId: previous }), previous);
    write([user('planned', { sessionId: previous }), ...turnLines(2)]);
    workplace.server.misbehave = (_, number) => (number === 0 ? { status: 401 } : undefined);
    await workplace.hook(payload());
    const sessions = workplace.server.observations.map(({ trace }) => trace.sessionId);
    expect(sessions).toEqual([SESSION, SESSION, previous, previous]);
    expect(workplace.log).toMatchObject([
      {
        msg: 'the server refuses the keys (401); make new ones for "cc-langfuse install", or for the plugin',
        session: previous,
      },
    ]);
    await workplace.hook(payload());
    expect(arrivals()).toEqual([1, 1, 1, 1]);
  });
});

test('SessionEnd stops waiting early for a server that hangs if the Stop before it has found the server down', async () => {
  write(turnLines(1));
  workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '25000' };
  workplace.server.misbehave = () => ({ status: 503 });
  await workplace.hook(payload());
  const { length: answered } = workplace.server.requests;
  workplace.server.misbehave = () => ({ delayMs: 15_000 });
  await workplace.hook(payload({ hook_event_name: 'SessionEnd' }));
  expect(workplace.server.requests).toHaveLength(answered);
  workplace.repairServer();
  await workplace.hook(payload({ hook_event_name: 'SessionEnd' }));
  expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
});

describe('a fork', () => {
  const fork = '33333333-3333-4333-8333-333333333333';
  const forkOfFork = '55555555-5555-4555-8555-555555555555';
  const inSession = (lines: object[], sessionId: string) => lines.map((line) => ({ ...line, sessionId }));
  const stop = (sessionId: string) =>
    workplace.hook({ session_id: sessionId, transcript_path: transcript(sessionId), hook_event_name: 'Stop' });
  const roots = () =>
    workplace.server.observations
      .filter(({ parentId }) => parentId === undefined)
      .map(({ name, trace }) => [name, trace.sessionId]);

  test('without fork marks does not export again the turns of the session that it was forked from', async () => {
    write(inSession([...turnLines(1), ...turnLines(2)], SESSION));
    await stop(SESSION);
    write(inSession([...turnLines(1), ...turnLines(2), ...turnLines(3)], fork), fork);
    await stop(fork);
    write(inSession([...turnLines(1), ...turnLines(2), ...turnLines(3), ...turnLines(5)], forkOfFork), forkOfFork);
    await stop(forkOfFork);
    appendFileSync(transcript(fork), jsonLines(inSession(turnLines(4), fork)));
    await stop(fork);
    append(...inSession(turnLines(6), SESSION));
    await stop(SESSION);
    expect(roots()).toEqual([
      ['Turn 1', SESSION],
      ['Turn 2', SESSION],
      ['Turn 3', fork],
      ['Turn 4', forkOfFork],
      ['Turn 4', fork],
      ['Turn 3', SESSION],
    ]);
    expectEachSentOnce(workplace.server);
  });

  test('without fork marks leaves to the original a turn that it has not sent, since it was written before the fork', async () => {
    const [prompt = {}, answer = {}] = turnLines(1);
    const killed = [prompt, { ...answer, ...assistant('m1', [toolUse('t1')]) }];
    const event = (sessionId: string, name: string, more: object = {}) =>
      workplace.hookAlone(
        payload({ session_id: sessionId, transcript_path: transcript(sessionId), hook_event_name: name, ...more }),
      );
    await event(SESSION, 'SessionStart', { source: 'startup' });
    write(inSession(killed, SESSION));
    write(inSession(killed, fork), fork);
    await event(fork, 'SessionStart', { source: 'resume' });
    appendFileSync(transcript(fork), jsonLines(inSession(turnLines(2), fork)));
    await event(fork, 'Stop', { prompt_id: 'p2' });
    expect(roots()).toEqual([['Turn 2', fork]]);
    await event(SESSION, 'SessionEnd');
    expect(roots()).toEqual([
      ['Turn 2', fork],
      ['Turn 1', SESSION],
    ]);
  });

  test('without fork marks is recognized in newer versions, too', async () => {
    const version = { version: '2.1.205' };
    write(inSession([...turnLines(1, version), ...turnLines(2, version)], SESSION));
    await stop(SESSION);
    await workplace.hookAlone(
      payload({
        session_id: fork,
        transcript_path: transcript(fork),
        hook_event_name: 'SessionStart',
        source: 'resume',
      }),
    );
    const lines = [1, 2, 3].flatMap((n) => turnLines(n, version));
    write(inSession(lines, fork), fork);
    await stop(fork);
    expect(roots()).toEqual([
      ['Turn 1', SESSION],
      ['Turn 2', SESSION],
      ['Turn 3', fork],
    ]);
    expectEachSentOnce(workplace.server);
  });

  test('without fork marks exports a copied turn that the original has not exported, and the original then skips it', async () => {
    write(inSession(turnLines(1), SESSION));
    await stop(SESSION);
    append(...inSession(turnLines(2), SESSION));
    write(inSession([...turnLines(1), ...turnLines(2), ...turnLines(3)], fork), fork);
    await stop(fork);
    await stop(SESSION);
    expect(roots()).toEqual([
      ['Turn 1', SESSION],
      ['Turn 2', fork],
      ['Turn 3', fork],
    ]);
    expectEachSentOnce(workplace.server);
  });

  test('without fork marks looks for a turn only once in the sessions that were there before it', async () => {
    write(inSession([...turnLines(1), ...turnLines(2)], SESSION));
    await stop(SESSION);
    write(inSession([...turnLines(1), ...turnLines(2)], fork), fork);
    await stop(fork);
    expect(workplace.state[fork]).toMatchObject({ relatives: { sessions: [SESSION] } });
    // If the original were read again, its second prompt would now be the fork's next turn.
    write(inSession([...turnLines(1), ...turnLines(3)], SESSION));
    appendFileSync(transcript(fork), jsonLines(inSession(turnLines(3), fork)));
    await stop(fork);
    expect(roots()).toEqual([
      ['Turn 1', SESSION],
      ['Turn 2', SESSION],
      ['Turn 3', fork],
    ]);
  });

  test('without fork marks looks for a turn in a session that was forked while the turn was open', async () => {
    write(inSession([...turnLines(1), ...turnLines(2)], SESSION));
    await stop(SESSION);
    append(...inSession(turnLines(3).slice(0, 1), SESSION));
    write(inSession([...turnLines(1), ...turnLines(2), ...turnLines(3)], fork), fork);
    await stop(fork);
    await workplace.hook({ session_id: SESSION, transcript_path: transcript(), hook_event_name: 'Other' });
    append(...inSession(turnLines(3).slice(1), SESSION));
    await stop(SESSION);
    expect(roots()).toEqual([
      ['Turn 1', SESSION],
      ['Turn 2', SESSION],
      ['Turn 3', fork],
    ]);
    expectEachSentOnce(workplace.server);
  });

  test('with fork marks exports none of the copied turns, whichever session is exported first', async () => {
    const copied = inSession(turnLines(1), fork).map((line) => ({ ...line, forkedFrom: { sessionId: SESSION } }));
    write([...copied, ...inSession(turnLines(2), fork)], fork);
    await stop(fork);
    write(inSession([...turnLines(1), ...turnLines(3)], SESSION));
    await stop(SESSION);
    expect(roots()).toEqual([
      ['Turn 2', fork],
      ['Turn 1', SESSION],
      ['Turn 2', SESSION],
    ]);
  });
});

describe('a turn that the server has not acknowledged', () => {
  test('is kept with the reason, and is sent by the next hook', async () => {
    write([...turnLines(1), ...turnLines(2)]);
    workplace.server.misbehave = () => ({ status: 401 });
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.state[SESSION]).toMatchObject({
      lastLine: 0,
      turnCount: 0,
      pending: {
        attempts: 1,
        reason: 'the server refuses the keys (401); make new ones for "cc-langfuse install", or for the plugin',
      },
    });
    expect(messages()).toEqual([
      'the server refuses the keys (401); make new ones for "cc-langfuse install", or for the plugin',
    ]);
    workplace.server.misbehave = () => undefined;
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 4, turnCount: 2 });
    expect(workplace.state[SESSION]).not.toHaveProperty('pending');
    expect(arrivals()).toEqual([1, 1, 1, 1]);
  });

  test('stays closed by its Stop for a later hook that would not close it', async () => {
    write(turnLines(1));
    workplace.server.misbehave = () => ({ status: 401 });
    await workplace.hook(payload());
    workplace.server.misbehave = () => undefined;
    await workplace.hook(payload({ hook_event_name: 'SubagentStop' }));
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('is sent again only in the parts that are missing, if it is large', async () => {
    const big = 'x'.repeat(150_000);
    const calls = Array.from({ length: 60 }, (_, n) => [
      assistant(`m${n}`, [toolUse(`t${n}`)], { timestamp: at(n * 2) }),
      user([toolResult(`t${n}`, big)], { timestamp: at(n * 2 + 1) }),
    ]);
    write([user('go', { timestamp: at(0) }), ...calls.flat(), assistant('end', 'done', { timestamp: at(200) })]);
    workplace.server.misbehave = (_, number) => (number === 1 ? { status: 401 } : undefined);
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 0, sentLine: expect.any(Number) });
    await workplace.hook(payload());
    expect(workplace.server.observations).toHaveLength(122);
    expectEachSentOnce(workplace.server);
    const taken = workplace.server.requests.filter(({ status, spans }) => status === 200 && spans > 0);
    expect(taken).toHaveLength(12);
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 122, turnCount: 1 });
  });

  test('is sent completely by the next hook even if several observations belong to one line', async () => {
    const calls = Array.from({ length: 6 }, (_, n) => toolUse(`t${n}`));
    write([
      user('go'),
      assistant('m1', calls),
      user(calls.map((_, n) => toolResult(`t${n}`))),
      assistant('m2', 'done'),
    ]);
    workplace.server.misbehave = (_, number, spans) =>
      number === 0 ? { status: 413 } : spans.some(({ name }) => name === 'Turn 1') ? { status: 401 } : undefined;
    await workplace.hook(payload());
    workplace.server.misbehave = () => undefined;
    await workplace.hook(payload());
    expect(names().toSorted()).toEqual([
      'Read',
      'Read',
      'Read',
      'Read',
      'Read',
      'Read',
      'Turn 1',
      'claude-opus-5',
      'claude-opus-5',
    ]);
  });

  test('is sent with less of an observation that is too large for the server, and the log names it', async () => {
    write([user('x'.repeat(90_000)), assistant('m1', 'done')]);
    workplace.server.misbehave = (_, __, spans) =>
      JSON.stringify(spans).length > 60_000 ? { status: 413 } : undefined;
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    const content = expect.stringMatching(/^x{10000,}… \[\d+ more characters\]$/);
    expect(workplace.server.roots).toMatchObject([
      { input: [{ role: 'user', content }], metadata: { input_full_chars: 90_004 } },
    ]);
    expect(messages()).toEqual(['an observation is too large for the server, it was cut']);
    await workplace.hook(payload());
    expectEachSentOnce(workplace.server);
  });

  test('is sent without an observation that the server rejects, and the log names it', async () => {
    write([...turnLines(1), ...turnLines(2)]);
    workplace.server.misbehave = (_, __, spans) => {
      const poisoned = spans.some(
        ({ name, attributes }) => name === 'claude-opus-5' && JSON.stringify(attributes).includes('answer 1'),
      );
      return poisoned ? { status: 400 } : undefined;
    };
    await workplace.hook(payload());
    expect(names()).toEqual(['Turn 1', 'claude-opus-5', 'Turn 2']);
    expect(workplace.log).toMatchObject([
      { msg: 'the server refuses an observation, it is skipped', session: SESSION },
    ]);
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 4 });
  });

  test('is kept when CC_LANGFUSE_TIMEOUT ends before a server that hangs answers', async () => {
    write(turnLines(1));
    workplace.server.misbehave = () => ({ delayMs: 20_000 });
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '700' };
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.server.requests).toEqual([]);
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 0, pending: { attempts: 1 } });
  });
});

describe('six hooks at once', () => {
  test('send each observation of a session once', async () => {
    write([...turnLines(1), ...turnLines(2), ...turnLines(3)]);
    const hooks = Array.from({ length: 6 }, () => workplace.hook(payload()));
    for (const ended of await Promise.all(hooks)) expect(ended).toMatchObject(quietly);
    expect(arrivals()).toEqual([1, 1, 1, 1, 1, 1]);
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 6, turnCount: 3 });
    expect(readdirSync(workplace.stateFolder).toSorted()).toEqual([
      'cc-langfuse_due',
      'cc-langfuse_servers',
      'cc-langfuse_sessions',
    ]);
    const { destination } = workplace.state[SESSION] ?? {};
    expect(readdirSync(sessionFile(workplace.stateFolder, SESSION, '')).toSorted()).toEqual(
      [`${destination}.json`, 'open', 'session.json'].toSorted(),
    );
  });
});

describe('with CC_LANGFUSE_DEBUG=true', () => {
  test('the log counts exported observations', async () => {
    write(turnLines(1));
    workplace.env = { ...workplace.env, CC_LANGFUSE_DEBUG: 'true' };
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.log).toMatchObject([{ level: 'debug', msg: 'exported', session: SESSION, observations: 2 }]);
  });

  test('the log does not call a session exported of which nothing was accepted', async () => {
    write(turnLines(1));
    workplace.env = { ...workplace.env, CC_LANGFUSE_DEBUG: 'true', LANGFUSE_SECRET_KEY: 'wrong' };
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.log).toMatchObject([
      {
        level: 'warn',
        msg: 'the server refuses the keys (401): "Invalid credentials. Confirm that you\'ve configured the correct host"; make new ones for "cc-langfuse install", or for the plugin',
      },
    ]);
  });
});

describe('no request is sent', () => {
  test.each([undefined, '', 'false', '1', 'TRUE'])(
    'if TRACE_TO_LANGFUSE is %j, and no file is written',
    async (value) => {
      write(turnLines(1));
      const { TRACE_TO_LANGFUSE: _, ...env } = workplace.env;
      workplace.env = value === undefined ? env : { ...env, TRACE_TO_LANGFUSE: value };
      expect(await workplace.hook(payload())).toMatchObject(quietly);
      expect(workplace.server.requests).toEqual([]);
      expect(existsSync(workplace.stateFolder)).toBe(false);
    },
  );

  test('by SessionStart, which only records the session in the state', async () => {
    write(turnLines(1));
    await workplace.hook(payload({ hook_event_name: 'SessionStart', source: 'startup' }));
    expect(workplace.server.requests).toEqual([]);
    expect(workplace.state[SESSION]).toMatchObject({ runs: [{ from: BEGINNING }], path: transcript() });
    rmSync(transcript());
    expect(await workplace.hook(payload({ hook_event_name: 'SessionStart' }))).toMatchObject(quietly);
    expect(workplace.log).toEqual([]);
  });
});

test('a Stop whose turn was sent together with later ones does not wait for its answer', async () => {
  const turn = (n: number) => [
    user(`question ${n}`, { uuid: `q${n}`, promptId: `p${n}`, timestamp: at(n * 10) }),
    assistant(`a${n}`, [text(`answer ${n}`)], { uuid: `r${n}`, parentUuid: `q${n}`, timestamp: at(n * 10 + 5) }),
  ];
  write([...turn(1), ...turn(2), ...turn(3)]);
  const stop = (n: number) => payload({ prompt_id: `p${n}`, last_assistant_message: `answer ${n}` });
  await workplace.hook(payload({ hook_event_name: 'SessionStart', source: 'startup' }));
  await workplace.hook(stop(3));
  expect(listWaiting(workplace.stateFolder)).toEqual([]);
  // The answer to a prompt that is nowhere may still come.
  expect((await workplace.hook(stop(4))).ms).toBeGreaterThan(1_900);
  await callInstantly(stop(1), workplace.env);
  expect(names().filter((name) => name?.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
  expect(listWaiting(workplace.stateFolder)).toEqual([]);
});
