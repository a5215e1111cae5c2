import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { assistant, at, SESSION, text, toolResult, toolUse, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(async () => {
  await workplace.close();
});

const projects = () => join(workplace.home, '.claude', 'projects', '-work');
const transcript = (session = SESSION) => join(projects(), `${session}.jsonl`);

function write(lines: readonly (object | string)[], session = SESSION): void {
  mkdirSync(projects(), { recursive: true });
  writeFileSync(transcript(session), lines.map(asLine).join(''));
}

function append(...lines: (object | string)[]): void {
  appendFileSync(transcript(), lines.map(asLine).join(''));
}

function asLine(line: object | string): string {
  return `${typeof line === 'string' ? line : JSON.stringify(line)}\n`;
}

function payload(more: object = {}): object {
  return { session_id: SESSION, transcript_path: transcript(), hook_event_name: 'Stop', ...more };
}

/** A turn of two lines. */
function turn(n: number, more: object = {}): object[] {
  return [
    user(`question ${n}`, { uuid: `u${n}`, parentUuid: `a${n - 1}`, timestamp: at(n * 10), ...more }),
    assistant(`m${n}`, `answer ${n}`, { uuid: `a${n}`, parentUuid: `u${n}`, timestamp: at(n * 10 + 5), ...more }),
  ];
}

const names = () => workplace.server.observations.map(({ name }) => name);
const arrivals = () => [...workplace.server.arrivals.values()];
const messages = () => workplace.log.map(({ msg }) => msg);
const quietly = { exitCode: 0, stdout: '', stderr: '' };

describe('from one hook to the next', () => {
  test('a run takes up where the last one stopped', async () => {
    write([...turn(1), ...turn(2)]);
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
    append(...turn(3));
    await workplace.hook(payload());
    await workplace.hook(payload({ hook_event_name: 'SessionEnd' }));
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
    expect(arrivals().every((times) => times === 1)).toBe(true);
    expect(workplace.state[SESSION]).toEqual({
      last_line: 6,
      sent_line: 6,
      turn_count: 3,
      turn_line: 5,
      offset: statSync(transcript()).size - turn(3).map(asLine).join('').length,
      prompt: 'u3',
      first: 'u1',
      bytes: statSync(transcript()).size,
      ended: true,
      given: {},
      path: transcript(),
      destination: expect.stringMatching(/^[0-9a-f]{16}$/),
      updated: expect.any(String),
    });
    expect(workplace.log).toEqual([]);
  });

  test('a turn without an answer waits until it has one', async () => {
    write([...turn(1), ...turn(2).slice(0, 1)]);
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 2, turn_count: 1 });
    append(...turn(2).slice(1));
    await workplace.hook(payload());
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
  });

  test('a turn that goes on after its Stop grows in place', async () => {
    write([user('go', { timestamp: at(0) }), assistant('m1', [toolUse('t1')], { timestamp: at(1) })]);
    await workplace.hook(payload());
    append(user([toolResult('t1')], { timestamp: at(2) }), assistant('m2', 'done', { timestamp: at(3) }));
    await workplace.hook(payload());
    await workplace.hook(payload());
    const [root] = workplace.server.observations.filter(({ parentId }) => parentId === undefined);
    expect(root).toMatchObject({ output: { content: 'done' }, endTime: Date.parse(at(3)) });
    const sent = Object.fromEntries(
      workplace.server.observations.map(({ traceId, id, startTime, type, name }) => [
        `${type} ${name} ${startTime - Date.parse(at(0))}`,
        workplace.server.arrivals.get(`${traceId} ${id} ${startTime}`),
      ]),
    );
    expect(sent).toEqual({
      'agent Turn 1 0': 2,
      'generation claude-opus-5 0': 1,
      'tool Read 1000': 2,
      'generation claude-opus-5 2000': 1,
    });
  });

  test('lines that cannot be read are logged once and shift nothing', async () => {
    write(['torn {', ...turn(1), 'no JSON', ...turn(2)]);
    await workplace.hook(payload());
    append('{"also torn":', ...turn(3));
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 9, turn_count: 3, turn_line: 7 });
    expect(workplace.log.map(({ msg, file, line, reason }) => ({ msg, file, line, reason }))).toEqual(
      [1, 4, 7].map((line) => ({
        msg: 'a line cannot be read, it is left out',
        file: transcript(),
        line,
        reason: 'not JSON',
      })),
    );
    expect(arrivals().every((times) => times === 1)).toBe(true);
  });

  test("the first cc-langfuse's state is taken over: what it exported is not exported again", async () => {
    write([...turn(1), ...turn(2), ...turn(3)]);
    mkdirSync(workplace.stateFolder, { recursive: true });
    const old = { [SESSION]: { last_line: 4, turn_count: 2, updated: '2026-02-01T00:00:00.000Z' } };
    writeFileSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), JSON.stringify(old));
    await workplace.hook(payload());
    append(...turn(4));
    await workplace.hook(payload());
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 3', 'Turn 4']);
    expect(arrivals().every((times) => times === 1)).toBe(true);
  });

  test('a transcript that moved to another folder is the same session', async () => {
    write(turn(1));
    await workplace.hook(payload());
    const moved = join(projects(), 'worktree', `${SESSION}.jsonl`);
    mkdirSync(dirname(moved));
    renameSync(transcript(), moved);
    appendFileSync(moved, turn(2).map(asLine).join(''));
    await workplace.hook(payload({ transcript_path: moved }));
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
    expect(workplace.state[SESSION]).toMatchObject({ path: moved, turn_count: 2 });
  });

  test('a transcript whose lines were moved is found again by its line, and one that was replaced is read anew', async () => {
    write([...turn(1), ...turn(2)]);
    await workplace.hook(payload());
    write([user('question 1, edited', { uuid: 'u1' }), ...turn(1).slice(1), ...turn(2), ...turn(3)]);
    await workplace.hook(payload());
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
    expect(arrivals().every((times) => times === 1)).toBe(true);
    write([...turn(7)]);
    await workplace.hook(payload());
    expect(workplace.server.observations.at(-1)).toMatchObject({ name: 'Turn 1', input: [{ content: 'question 7' }] });
  });
});

describe('a transcript that is not what it was', () => {
  test('cut, and grown again beyond where it was: nothing new is lost', async () => {
    const calls = Array.from({ length: 20 }, (_, n) => [
      assistant(`c${n}`, [toolUse(`t${n}`)]),
      user([toolResult(`t${n}`)]),
    ]);
    write([...turn(1), ...calls.flat()]);
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 42, turn_count: 1 });
    write(turn(1));
    for (let n = 2; n < 25; n += 1) append(...turn(n));
    await workplace.hook(payload());
    const roots = workplace.server.observations.filter(({ parentId }) => parentId === undefined);
    expect(roots.map(({ name }) => name)).toEqual(Array.from({ length: 24 }, (_, n) => `Turn ${n + 1}`));
    expect(messages()).toContain('the transcript is not what it was, it is read from farther back');
  });

  test('shorter than the first cc-langfuse left it: it is read from the top', async () => {
    write([...turn(1)]);
    mkdirSync(workplace.stateFolder, { recursive: true });
    const old = { [SESSION]: { last_line: 50, turn_count: 12, updated: '2026-02-01T00:00:00.000Z' } };
    writeFileSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), JSON.stringify(old));
    await workplace.hook(payload());
    append(...turn(2));
    await workplace.hook(payload());
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
    expect(arrivals().every((times) => times === 1)).toBe(true);
  });
});

describe('the answer that is not in the file yet', () => {
  const stop = () => payload({ last_assistant_message: 'answer 1' });

  test('is waited for, and is sent by its own Stop', async () => {
    const [prompt = {}, answer = {}] = turn(1);
    write([prompt]);
    const hook = workplace.hook(stop());
    await sleep(200);
    append(answer);
    expect(await hook).toMatchObject(quietly);
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('is recognised though the payload has it trimmed', async () => {
    write([user('go'), assistant('m1', '\n  answer 1 \n')]);
    const { ms } = await workplace.hook(stop());
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
    expect(ms).toBeLessThan(1_500);
  });

  test('is not mistaken for the same words of the turn before', async () => {
    write(turn(1));
    await workplace.hook(stop());
    const [prompt = {}] = turn(2);
    append(prompt);
    const hook = workplace.hook(stop());
    await sleep(200);
    append(assistant('m2', 'answer 1', { uuid: 'a2', parentUuid: 'u2', timestamp: at(30) }));
    await hook;
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
  });

  test('that never comes is not waited for for ever', async () => {
    write([...turn(1), user('two', { uuid: 'u2', parentUuid: 'a1' })]);
    const { ms } = await workplace.hook(payload({ last_assistant_message: 'something else' }));
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
    expect(ms).toBeGreaterThan(1_900);
    expect(ms).toBeLessThan(4_000);
  });

  test('closes its own turn, and not one that has begun behind it', async () => {
    write([...turn(1, { promptId: 'p1' }), ...turn(2, { promptId: 'p2' })]);
    const { ms } = await workplace.hook(payload({ last_assistant_message: 'answer 1', prompt_id: 'p1' }));
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
    expect(ms).toBeLessThan(1_500);
  });
});

describe('the session before', () => {
  const previous = '22222222-2222-4222-8222-222222222222';

  test('has its turns exported first, under its own id', async () => {
    write(turn(1, { sessionId: previous }), previous);
    write([user('planned', { sessionId: previous }), ...turn(2, { sessionId: SESSION })]);
    await workplace.hook(payload());
    await workplace.hook(payload());
    const roots = workplace.server.observations.filter(({ parentId }) => parentId === undefined);
    expect(roots.map(({ trace, input }) => [trace.sessionId, input])).toEqual([
      [previous, [{ role: 'user', content: 'question 1' }]],
      [SESSION, [{ role: 'user', content: 'question 2' }]],
    ]);
    expect(Object.keys(workplace.state)).toEqual([previous, SESSION]);
    expect(arrivals().every((times) => times === 1)).toBe(true);
  });

  test('of another destination, or one that had long been over before, is left alone', async () => {
    write(turn(1, { sessionId: previous }), previous);
    write([user('planned', { sessionId: previous }), ...turn(2)]);
    mkdirSync(workplace.stateFolder, { recursive: true });
    const known = { last_line: 0, turn_count: 0, updated: new Date().toISOString(), destination: 'another' };
    writeFileSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), JSON.stringify({ [previous]: known }));
    await workplace.hook(payload());
    rmSync(join(workplace.stateFolder, 'cc-langfuse_state.json'));
    const yesterday = new Date(Date.now() - 86_400_000);
    utimesSync(transcript(previous), yesterday, yesterday);
    append(...turn(3));
    await workplace.hook(payload());
    expect(new Set(workplace.server.observations.map(({ trace }) => trace.sessionId))).toEqual(new Set([SESSION]));
  });

  test('that cannot be read does not stand in the way', async () => {
    write([user('planned', { sessionId: previous }), ...turn(1)]);
    mkdirSync(transcript(previous));
    await workplace.hook(payload());
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('whose spans the server refuses does not stand in the way, and is tried again behind it', async () => {
    write(turn(1, { sessionId: previous }), previous);
    write([user('planned', { sessionId: previous }), ...turn(2)]);
    workplace.server.misbehave = (_, number) => (number === 0 ? { status: 401 } : undefined);
    await workplace.hook(payload());
    const sessions = workplace.server.observations.map(({ trace }) => trace.sessionId);
    expect(sessions).toEqual([SESSION, SESSION, previous, previous]);
    expect(workplace.log).toMatchObject([{ msg: 'the server refuses the keys (401)', session: previous }]);
    await workplace.hook(payload());
    expect(arrivals()).toEqual([1, 1, 1, 1]);
  });
});

test('SessionEnd does not take as long again as the Stop before it, on a server that hangs', async () => {
  write(turn(1));
  workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '2500' };
  workplace.server.misbehave = () => ({ delayMs: 20_000 });
  const stop = await workplace.hook(payload());
  const end = await workplace.hook(payload({ hook_event_name: 'SessionEnd' }));
  expect(stop.ms).toBeGreaterThan(2_400);
  expect(end.ms).toBeLessThan(2_400);
  workplace.server.misbehave = () => undefined;
  await workplace.hook(payload({ hook_event_name: 'SessionEnd' }));
  expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
});

describe('a fork without a mark', () => {
  const fork = '33333333-3333-4333-8333-333333333333';
  const forkOfFork = '55555555-5555-4555-8555-555555555555';
  const inSession = (lines: object[], sessionId: string) => lines.map((line) => ({ ...line, sessionId }));
  const stop = (sessionId: string) =>
    workplace.hook({ session_id: sessionId, transcript_path: transcript(sessionId), hook_event_name: 'Stop' });
  const roots = () =>
    workplace.server.observations
      .filter(({ parentId }) => parentId === undefined)
      .map(({ name, trace }) => [name, trace.sessionId]);

  test('does not export again what the session it was forked from has', async () => {
    write(inSession([...turn(1), ...turn(2)], SESSION));
    await stop(SESSION);
    write(inSession([...turn(1), ...turn(2), ...turn(3)], fork), fork);
    await stop(fork);
    write(inSession([...turn(1), ...turn(2), ...turn(3), ...turn(5)], forkOfFork), forkOfFork);
    await stop(forkOfFork);
    appendFileSync(transcript(fork), inSession(turn(4), fork).map(asLine).join(''));
    await stop(fork);
    append(...inSession(turn(6), SESSION));
    await stop(SESSION);
    expect(roots()).toEqual([
      ['Turn 1', SESSION],
      ['Turn 2', SESSION],
      ['Turn 3', fork],
      ['Turn 4', forkOfFork],
      ['Turn 4', fork],
      ['Turn 3', SESSION],
    ]);
    expect(arrivals().every((times) => times === 1)).toBe(true);
  });

  test('takes a turn that the other has never exported, and the other does not send it again', async () => {
    write(inSession(turn(1), SESSION));
    await stop(SESSION);
    append(...inSession(turn(2), SESSION));
    write(inSession([...turn(1), ...turn(2), ...turn(3)], fork), fork);
    await stop(fork);
    await stop(SESSION);
    expect(roots()).toEqual([
      ['Turn 1', SESSION],
      ['Turn 2', fork],
      ['Turn 3', fork],
    ]);
    expect(arrivals().every((times) => times === 1)).toBe(true);
  });

  test('with a mark takes nothing from the session that it was branched from, whichever is exported first', async () => {
    const copied = inSession(turn(1), fork).map((line) => ({ ...line, forkedFrom: { sessionId: SESSION } }));
    write([...copied, ...inSession(turn(2), fork)], fork);
    await stop(fork);
    write(inSession([...turn(1), ...turn(3)], SESSION));
    await stop(SESSION);
    expect(roots()).toEqual([
      ['Turn 2', fork],
      ['Turn 1', SESSION],
      ['Turn 2', SESSION],
    ]);
  });
});

describe('what is not acknowledged', () => {
  test('stays, with the reason, and is sent by the next hook', async () => {
    write([...turn(1), ...turn(2)]);
    workplace.server.misbehave = () => ({ status: 401 });
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.state[SESSION]).toMatchObject({
      last_line: 0,
      turn_count: 0,
      pending: { attempts: 1, reason: 'the server refuses the keys (401)', closed_line: 4 },
    });
    expect(messages()).toEqual(['the server refuses the keys (401)']);
    workplace.server.misbehave = () => undefined;
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 4, turn_count: 2 });
    expect(workplace.state[SESSION]).not.toHaveProperty('pending');
    expect(arrivals()).toEqual([1, 1, 1, 1]);
  });

  test('was closed by its Stop, also for a run that would not close it', async () => {
    write(turn(1));
    workplace.server.misbehave = () => ({ status: 401 });
    await workplace.hook(payload());
    workplace.server.misbehave = () => undefined;
    await workplace.hook(payload({ hook_event_name: 'SubagentStop' }));
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('of a large turn only the part that was not acknowledged is sent again', async () => {
    const big = 'x'.repeat(150_000);
    const calls = Array.from({ length: 60 }, (_, n) => [
      assistant(`m${n}`, [toolUse(`t${n}`)], { timestamp: at(n * 2) }),
      user([toolResult(`t${n}`, big)], { timestamp: at(n * 2 + 1) }),
    ]);
    write([user('go', { timestamp: at(0) }), ...calls.flat(), assistant('end', 'done', { timestamp: at(200) })]);
    workplace.server.misbehave = (_, number) => (number === 1 ? { status: 401 } : undefined);
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 0, sent_line: expect.any(Number) });
    await workplace.hook(payload());
    expect(workplace.server.observations).toHaveLength(122);
    expect(arrivals().every((times) => times === 1)).toBe(true);
    expect(workplace.server.requests.filter(({ status }) => status === 200).map(({ spans }) => spans).length).toBe(12);
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 122, turn_count: 1 });
  });

  test('though several rest on one line', async () => {
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

  test('one observation that the server cannot take is left out, named in the log, and blocks nothing', async () => {
    write([...turn(1), ...turn(2)]);
    workplace.server.misbehave = (_, __, spans) => {
      const poisoned = spans.some(
        ({ name, attributes }) => name === 'claude-opus-5' && JSON.stringify(attributes).includes('answer 1'),
      );
      return poisoned ? { status: 400 } : undefined;
    };
    await workplace.hook(payload());
    expect(names()).toEqual(['Turn 1', 'claude-opus-5', 'Turn 2']);
    expect(workplace.log).toMatchObject([
      { msg: 'the server refuses an observation, it is left out', session: SESSION },
    ]);
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 4 });
  });

  test('a server that hangs costs no more than CC_LANGFUSE_TIMEOUT', async () => {
    write(turn(1));
    workplace.server.misbehave = () => ({ delayMs: 20_000 });
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '700' };
    const { ms, ...ended } = await workplace.hook(payload());
    expect(ended).toMatchObject(quietly);
    expect(ms).toBeLessThan(1_500);
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 0, pending: { attempts: 1 } });
  });
});

describe('two hooks at once', () => {
  test('send each observation once', async () => {
    write([...turn(1), ...turn(2), ...turn(3)]);
    const hooks = Array.from({ length: 6 }, () => workplace.hook(payload()));
    for (const ended of await Promise.all(hooks)) expect(ended).toMatchObject(quietly);
    expect(arrivals()).toEqual([1, 1, 1, 1, 1, 1]);
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 6, turn_count: 3 });
    expect(
      readdirSync(workplace.stateFolder)
        .toSorted()
        .filter((name) => name !== 'cc-langfuse_compiled'),
    ).toEqual(['cc-langfuse_locks', 'cc-langfuse_state.json']);
    expect(readdirSync(join(workplace.stateFolder, 'cc-langfuse_locks'))).toEqual([]);
  });
});

describe('bad input: exit 0, nothing printed, a clear line in the log', () => {
  test.each([
    ['', 'stdin is empty'],
    ['  \n', 'stdin is empty'],
    ['{"session_id": "x"', 'stdin is not JSON'],
    ['null', 'stdin: expected a JSON object'],
    ['{"transcript_path":"/x"}', 'stdin: session_id: expected a string'],
    ['{"session_id":7,"transcript_path":"/x"}', 'stdin: session_id: expected a string'],
    ['{"session_id":"x","transcript_path":["/x"]}', 'stdin: transcript_path: expected a string'],
  ])('stdin %j', async (stdin, message) => {
    expect(await workplace.hook(stdin)).toMatchObject(quietly);
    expect(workplace.log).toMatchObject([{ level: 'error', msg: message }]);
  });

  test('stdin that is binary', async () => {
    expect(await workplace.hook(Buffer.from([0, 0xff, 0xfe, 0x7b]))).toMatchObject(quietly);
    expect(messages()).toEqual(['stdin is not JSON']);
  });

  test.each([
    ['a folder', () => mkdirSync(transcript(), { recursive: true }), 'not a regular file'],
    ['a FIFO', () => mkfifo(), 'not a regular file'],
    ['a symlink', () => symlink(), expect.stringMatching(/^ELOOP/)],
  ])('a transcript that is %s', async (_, make, reason) => {
    mkdirSync(projects(), { recursive: true });
    make();
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.log).toMatchObject([{ level: 'error', msg: reason, file: transcript() }]);
  });

  function mkfifo(): void {
    execFileSync('mkfifo', [transcript()]);
  }

  function symlink(): void {
    writeFileSync(join(projects(), 'target'), '');
    symlinkSync(join(projects(), 'target'), transcript());
  }

  test('a transcript that is empty', async () => {
    write([]);
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.server.requests).toEqual([]);
    expect(workplace.log).toMatchObject([
      { level: 'warn', msg: 'the transcript is missing or empty', file: transcript() },
    ]);
  });

  test('a transcript that does not exist; at the end of a session without a prompt that is as it should be', async () => {
    expect(await workplace.hook(payload({ hook_event_name: 'SessionEnd' }))).toMatchObject(quietly);
    expect(workplace.log).toEqual([]);
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.log).toMatchObject([{ msg: 'the transcript is missing or empty', file: transcript() }]);
  });

  test('a transcript that is not there yet: a quick first answer comes before it', async () => {
    const ended = workplace.hook(payload({ last_assistant_message: 'answer 1' }));
    await sleep(150);
    write(turn(1));
    expect(await ended).toMatchObject(quietly);
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
    expect(workplace.log).toEqual([]);
  });

  test('holes, invalid UTF-8, a byte order mark, unknown lines: the turns are had all the same', async () => {
    mkdirSync(projects(), { recursive: true });
    const [prompt = {}, answer = {}] = turn(1);
    writeFileSync(
      transcript(),
      Buffer.concat([
        Buffer.from(`\uFEFF${asLine({ type: 'brand-new', content: 'x' })}`),
        Buffer.alloc(4_096),
        Buffer.from(asLine(prompt)),
        Buffer.from([0xff, 0xfe, 0x0a]),
        Buffer.from(asLine(answer)),
        Buffer.from('{"type":"assistant","message":{"id":"m2","content":"torn'),
      ]),
    );
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
    expect(workplace.log.map(({ line }) => line)).toEqual([3, 5]);
  });

  test('the last line may lack its newline', async () => {
    mkdirSync(projects(), { recursive: true });
    writeFileSync(transcript(), turn(1).map(asLine).join('').trimEnd());
    await workplace.hook(payload());
    appendFileSync(transcript(), '\n');
    append(...turn(2));
    await workplace.hook(payload());
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
    expect(arrivals().every((times) => times === 1)).toBe(true);
  });

  test('a line of 50 MB', async () => {
    write([
      user('go', { timestamp: at(0) }),
      assistant('m1', [toolUse('t1')], { timestamp: at(1) }),
      user([toolResult('t1', 'x'.repeat(50_000_000))], { timestamp: at(2) }),
      assistant('m2', [text('done')], { timestamp: at(3) }),
    ]);
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    const tool = workplace.server.observations.find(({ type }) => type === 'tool');
    expect(tool?.metadata).toMatchObject({ output_full_chars: 50_000_000 });
    expect(String(tool?.output)).toMatch(/^x{200000}… \[49800000 more characters\]$/);
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 4 });
  });

  test('a corrupt state file is set aside, and the session exported from its beginning', async () => {
    write(turn(1));
    mkdirSync(workplace.stateFolder, { recursive: true });
    writeFileSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), '{"half":');
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
    const [entry] = workplace.log;
    expect(entry?.msg).toBe('the state file was corrupt, it is set aside');
    expect(readFileSync(String(entry?.keptAs), 'utf8')).toBe('{"half":');
  });

  test('a state file that may not be written is replaced', async () => {
    write(turn(1));
    await workplace.hook(payload());
    execFileSync('chmod', ['0400', join(workplace.stateFolder, 'cc-langfuse_state.json')]);
    append(...turn(2));
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ turn_count: 2 });
  });

  test('a state folder that cannot be: said on stderr, nothing is sent over and over, and all of it afterwards', async () => {
    write(turn(1));
    writeFileSync(workplace.stateFolder, 'a file');
    for (let n = 0; n < 2; n += 1) {
      const { exitCode, stdout, stderr } = await workplace.hook(payload());
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
      expect(stderr).toMatch(/cc-langfuse: the state folder cannot be written/);
    }
    expect(workplace.server.requests).toEqual([]);
    rmSync(workplace.stateFolder);
    await workplace.hook(payload());
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('a state file that is a folder is named', async () => {
    write(turn(1));
    mkdirSync(join(workplace.stateFolder, 'cc-langfuse_state.json'), { recursive: true });
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    const path = join(workplace.stateFolder, 'cc-langfuse_state.json');
    expect(messages()).toEqual([`the state file ${path} cannot be read: not a regular file`]);
  });

  test('a payload behind which stdin stays open, with or without a newline', async () => {
    write(turn(1));
    for (const end of ['', '\n']) {
      const { ms } = await workplace.hookWithOpenStdin(`${JSON.stringify(payload())}${end}`);
      expect(ms).toBeLessThan(2_000);
    }
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('stdin that says nothing ends the hook at its deadline', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '300' };
    const { ms, exitCode } = await workplace.hookWithOpenStdin('');
    expect(exitCode).toBe(0);
    expect(ms).toBeLessThan(1_500);
    expect(messages()).toEqual(['stdin did not end']);
  });

  test.each([
    ['20,000 calls nested in one another', [user('go'), deepCall(20_000)]],
    [
      'a turn of 5,000 lines without ids',
      [user('go'), ...Array.from({ length: 5_000 }, () => assistant(undefined, 'x'))],
    ],
    ['3,000 prompts before an answer', manyPrompts(3_000)],
    ['20,000 lines that cannot be read', [...turn(1), ...Array.from({ length: 20_000 }, () => 'no JSON')]],
  ])('%s', async (_, lines) => {
    write(lines);
    const { ms, ...ended } = await workplace.hook(payload());
    expect(ended).toMatchObject(quietly);
    expect(ms).toBeLessThan(5_000);
    expect(names().at(-1)).toBe('Turn 1');
    expect(workplace.log.length).toBeLessThan(20);
  });

  function deepCall(depth: number): string {
    const nested = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
    return JSON.stringify(assistant('m1', [toolUse('t1', 'Deep', 'HERE')])).replace('"HERE"', nested);
  }

  function manyPrompts(count: number): object[] {
    const prompts = Array.from({ length: count }, (_, n) => user(`p${n}`, { uuid: `u${n}`, parentUuid: `u${n - 1}` }));
    return [...prompts, assistant('m1', 'answer')];
  }

  test('missing keys', async () => {
    write(turn(1));
    const { LANGFUSE_SECRET_KEY: _, ...env } = workplace.env;
    workplace.env = env;
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(messages()).toEqual(['LANGFUSE_SECRET_KEY is not set']);
    expect(workplace.server.requests).toEqual([]);
  });

  test('a malformed URL', async () => {
    write(turn(1));
    const url = workplace.env.LANGFUSE_BASE_URL;
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: 'localhost:3000' };
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(messages()).toEqual(['LANGFUSE_BASE_URL: expected an http or https URL']);
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: url };
    await workplace.hook(payload());
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('keys with spaces or letters that no header can hold are refused by the server alone', async () => {
    write(turn(1));
    workplace.env = { ...workplace.env, LANGFUSE_SECRET_KEY: 'sk lf ünïcode 🔑' };
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(messages()).toEqual(['the server refuses the keys (401)']);
  });

  test('no key and no content is ever in the log or the state', async () => {
    write([...turn(1), 'secret words {']);
    workplace.server.misbehave = (_, number) => (number === 0 ? { status: 401 } : { status: 400 });
    await workplace.hook(payload());
    await workplace.hook(payload());
    await workplace.hook('secret words');
    const written = readdirSync(workplace.stateFolder)
      .filter((file) => statSync(join(workplace.stateFolder, file)).isFile())
      .map((file) => readFileSync(join(workplace.stateFolder, file), 'utf8'))
      .join('');
    expect(written).not.toMatch(/embedded|secret words|question 1|answer 1/);
    expect(workplace.log.length).toBeGreaterThan(2);
  });
});

describe('with CC_LANGFUSE_DEBUG', () => {
  test('the log counts what was never seen before, and what was exported', async () => {
    const strange = { type: 'hologram', data: 1 };
    write([
      { type: 'brand-new' },
      user('go'),
      { type: 'brand-new' },
      { type: 'mode', mode: 'normal' },
      assistant('m1', [text('ok'), strange]),
    ]);
    workplace.env = { ...workplace.env, CC_LANGFUSE_DEBUG: 'true' };
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.log).toMatchObject([
      { level: 'debug', msg: 'never seen before, left out', what: 'line brand-new', times: 2 },
      { level: 'debug', msg: 'never seen before, left out', what: 'block hologram', times: 1 },
      { level: 'debug', msg: 'exported', session: SESSION, observations: 2 },
    ]);
  });
});

describe('what is not to be traced', () => {
  test.each([undefined, '', 'false', '1', 'TRUE'])(
    'TRACE_TO_LANGFUSE=%s: it leaves at once and touches nothing',
    async (value) => {
      write(turn(1));
      const { TRACE_TO_LANGFUSE: _, ...env } = workplace.env;
      workplace.env = value === undefined ? env : { ...env, TRACE_TO_LANGFUSE: value };
      expect(await workplace.hook(payload())).toMatchObject(quietly);
      expect(workplace.server.requests).toEqual([]);
      expect(existsSync(workplace.stateFolder)).toBe(false);
    },
  );

  test('SessionStart makes a session known and sends nothing', async () => {
    write(turn(1));
    await workplace.hook(payload({ hook_event_name: 'SessionStart', source: 'startup' }));
    expect(workplace.server.requests).toEqual([]);
    expect(workplace.state[SESSION]).toMatchObject({ last_line: 0, turn_count: 0, path: transcript() });
    rmSync(transcript());
    expect(await workplace.hook(payload({ hook_event_name: 'SessionStart' }))).toMatchObject(quietly);
    expect(workplace.log).toEqual([]);
  });
});
