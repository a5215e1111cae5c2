import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ClaudeSession } from '../support/claude-session.js';
import { LangfuseServer } from '../support/langfuse-server.js';
import { appendLines, at, user } from '../support/lines.js';
import { type Environment, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { actionsIn } from '../support/traced-runs.js';

let workplace: Workplace;
let session: ClaudeSession;
let other: ClaudeSession;

const open = (id: string) => new ClaudeSession(id, workplace.transcriptOf(id), join(workplace.home, 'work'));

beforeEach(async () => {
  workplace = await Workplace.open();
  session = open('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
  other = open('bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
});

afterEach(() => workplace.close());

const { hook, backfill, turns, whileRefusing, runOnce } = actionsIn(() => ({ workplace, session }));
const METADATA = { CC_LANGFUSE_CAPTURE: 'metadata' };
const OFF = { TRACE_TO_LANGFUSE: 'false' };

describe.each([
  ['with SessionStart hooks', true],
  ['with Stop and SessionEnd hooks only', false],
])('a turn that the server refused, %s,', (_, hasStart) => {
  test('is sent without words if its own run had them kept, though the next run sends words', async () => {
    await whileRefusing(() => runOnce('startup', { env: METADATA, hasStart }));
    await runOnce('resume', { hasStart });
    expect(turns()).toEqual(['a Turn 1', 'a Turn 2 with words']);
    expectEachSentOnce(workplace.server);
  });

  test('is sent with its words if the next run, not its own, has them kept', async () => {
    await whileRefusing(() => runOnce('startup', { hasStart }));
    await runOnce('resume', { env: METADATA, hasStart });
    expect(turns()).toEqual(['a Turn 1 with words', 'a Turn 2']);
    expectEachSentOnce(workplace.server);
  });

  test('is sent without words by the session that takes over from its own', async () => {
    await whileRefusing(() => runOnce('startup', { env: METADATA, hasStart }));
    if (hasStart) await hook(other.startPayload('clear'));
    appendLines(other.path, { ...user('question', { uuid: 'o1', timestamp: at(30) }), sessionId: session.id });
    other.addTurn();
    await hook(other.payload('Stop'));
    expect(turns()).toEqual(['a Turn 1', 'b Turn 1 with words']);
    expectEachSentOnce(workplace.server);
  });
});

describe('a session that is continued with tracing off, and then with tracing on,', () => {
  const continueTwice = async (hasStart: boolean) => {
    await runOnce('startup', { hasStart });
    await runOnce('resume', { env: OFF, hasStart });
    await runOnce('resume', { hasStart });
    workplace.letIdle();
    await runOnce('startup', { hasStart }, other);
    await hook(other.payload('SessionEnd'));
  };
  const hooksOnly = ['a Turn 1 with words', 'a Turn 3 with words', 'b Turn 1 with words'];

  test.each([
    ['', true],
    [' if there are only Stop and SessionEnd hooks', false],
  ])('keeps the turn in between from every hook, until a backfill sends it%s', async (_, hasStart) => {
    await continueTwice(hasStart);
    expect(turns()).toEqual(hooksOnly);
    const { stdout } = await backfill({}, '--json');
    expect(turns().toSorted()).toEqual([...hooksOnly, 'a Turn 2 with words'].toSorted());
    expect(JSON.parse(stdout)).toMatchObject({ total: { turns: 1, untraced: 1 } });
    expectEachSentOnce(workplace.server);
  });

  test('and once more with tracing off, is sent whole by a backfill, each turn once', async () => {
    await continueTwice(true);
    await runOnce('resume', { env: OFF });
    await backfill({});
    expect(turns().toSorted()).toEqual([...hooksOnly, 'a Turn 2 with words', 'a Turn 4 with words'].toSorted());
    expectEachSentOnce(workplace.server);
  });

  test('keeps the turns before, too, if the first run had tracing off and nothing recorded its start', async () => {
    await runOnce('startup', { env: OFF, hasStart: false });
    await runOnce('resume', { hasStart: false });
    workplace.letIdle();
    await runOnce('startup', { hasStart: false }, other);
    expect(turns()).toEqual(['a Turn 2 with words', 'b Turn 1 with words']);
  });

  test('keeps it even if the server refused the first turn, which the next run sends', async () => {
    await whileRefusing(() => runOnce('startup'));
    await runOnce('resume', { env: OFF });
    await runOnce('resume');
    expect(turns()).toEqual(['a Turn 1 with words', 'a Turn 3 with words']);
  });

  test('keeps it if the third run is killed before its Stop, and another session recovers that one', async () => {
    await runOnce('startup');
    await runOnce('resume', { env: OFF });
    await hook(session.startPayload('resume'));
    session.addTurn();
    workplace.letIdle();
    await runOnce('startup', {}, other);
    expect(turns().toSorted()).toEqual(hooksOnly.toSorted());
  });
});

describe('a session that the state does not know, and that another one takes over from,', () => {
  const takeOver = async (hasStart: boolean) => {
    await runOnce('startup', { env: OFF });
    session.addTurn();
    if (hasStart) await hook(other.startPayload('fork'));
    appendLines(other.path, { ...user('question', { uuid: 'o1', timestamp: at(30) }), sessionId: session.id });
    other.addTurn();
    await workplace.hookAlone(other.payload('Stop'));
    return turns();
  };

  test('ran with tracing off if the other one has a SessionStart: nothing of it is sent', async () => {
    expect(await takeOver(true)).toEqual(['b Turn 1 with words']);
  });

  test('stays if no SessionStart was seen of either: nothing says that it was traced', async () => {
    expect(await takeOver(false)).toEqual(['b Turn 1 with words']);
  });
});

describe('a turn of a run for another project', () => {
  let second: LangfuseServer;
  let toSecond: Environment;

  beforeEach(async () => {
    second = await LangfuseServer.start();
    toSecond = { LANGFUSE_BASE_URL: second.url };
  });

  afterEach(() => second.stop());

  const pendingForFirst = async () => {
    await runOnce('startup');
    await whileRefusing(() => runOnce('resume'));
    await runOnce('resume', { env: toSecond });
  };

  test('waits for the keys of that project, in its own session or another', async () => {
    await pendingForFirst();
    expect([turns(), turns(second)]).toEqual([['a Turn 1 with words'], ['a Turn 3 with words']]);
    await runOnce('startup', { env: toSecond }, other);
    expect([turns().length, turns(second).length]).toEqual([1, 2]);
    await runOnce('resume', {}, other);
    expect(turns()).toEqual(['a Turn 1 with words', 'b Turn 2 with words', 'a Turn 2 with words']);
    expect(turns(second)).toEqual(['a Turn 3 with words', 'b Turn 1 with words']);
    for (const server of [workplace.server, second]) expectEachSentOnce(server);
  });

  test('is sent there even if that run was killed before a Stop', async () => {
    await hook(session.startPayload('startup'));
    session.addTurn();
    await runOnce('resume', { env: toSecond });
    await runOnce('startup', {}, other);
    expect(turns()).toEqual(['b Turn 1 with words', 'a Turn 1 with words']);
    expect(turns(second)).toEqual(['a Turn 2 with words']);
  });

  test('is sent by the next run of its own session that has those keys', async () => {
    await pendingForFirst();
    await runOnce('resume');
    expect(turns()).toEqual(['a Turn 1 with words', 'a Turn 2 with words', 'a Turn 4 with words']);
    expect(turns(second)).toEqual(['a Turn 3 with words']);
    for (const server of [workplace.server, second]) expectEachSentOnce(server);
  });

  test.each([[[]], [['--force']]])('is not sent by a backfill for the second one %j', async (force) => {
    await pendingForFirst();
    const { stdout } = await backfill(toSecond, ...force);
    if (force.length === 0) expect(stdout).toContain(`– ${session.id} has other turns, which are for another project`);
    expect(turns(second)).toEqual(['a Turn 3 with words']);
    await backfill({});
    expect(turns()).toEqual(['a Turn 1 with words', 'a Turn 2 with words']);
    expectEachSentOnce(workplace.server);
  });
});

describe('tracing', () => {
  test('is off if the shell says so, whatever the settings say', async () => {
    session.addTurn();
    await hook(session.payload('Stop'), { CC_TRACE_TO_LANGFUSE: 'false' });
    expect(workplace.server.requests).toEqual([]);
    expect(existsSync(workplace.stateFolder)).toBe(false);
  });
});

describe('a redaction rule that cannot be read', () => {
  const BAD = { CC_LANGFUSE_REDACT_EXTRA: '[{"pattern": "("}]' };
  const GOOD = { CC_LANGFUSE_REDACT_EXTRA: '[{"pattern": "question"}]' };

  test('holds the turns back, and says so in the state', async () => {
    await runOnce('startup', { env: BAD });
    expect(turns()).toEqual([]);
    expect(workplace.state[session.id]).toMatchObject({
      pending: { code: 'rules', reason: 'CC_LANGFUSE_REDACT_EXTRA: rule 1 is not a valid regular expression' },
    });
  });

  test('is replaced by the one of the next run', async () => {
    await runOnce('startup', { env: BAD });
    await runOnce('resume', { env: GOOD });
    expect(turns()).toEqual(['a Turn 1 with words', 'a Turn 2 with words']);
    expect(JSON.stringify(workplace.server.roots.map(({ input }) => input))).not.toContain('question');
    expect(workplace.state[session.id]).not.toHaveProperty('pending');
  });

  test('is replaced by the one of a backfill, and by none that it does not have', async () => {
    await runOnce('startup', { env: BAD });
    await backfill({});
    expect(turns()).toEqual([]);
    await backfill(GOOD);
    expect(turns()).toEqual(['a Turn 1 with words']);
    expect(JSON.stringify(workplace.server.roots.map(({ input }) => input))).not.toContain('question');
  });
});

test('backfill --force from a bare shell keeps what the runs said about their turns', async () => {
  const described = {
    LANGFUSE_USER_ID: 'ada',
    LANGFUSE_TAGS: 'mine',
    LANGFUSE_TRACING_ENVIRONMENT: 'staging',
    LANGFUSE_RELEASE: 'r7',
    LANGFUSE_METADATA: '{"team":"x"}',
  };
  await runOnce('startup', { env: described });
  await runOnce('resume', { env: { LANGFUSE_USER_ID: 'bob' } });
  const before = workplace.server.observations;
  await backfill({}, '--force');
  expect(workplace.server.observations).toEqual(before);
  expect(before.map((observation) => workplace.server.timesSent(observation))).toEqual([2, 2, 2, 2]);
  expect(before.map(({ trace }) => trace.userId)).toEqual(['ada', 'ada', 'bob', 'bob']);
  expect(before[0]?.trace).toMatchObject({
    userId: 'ada',
    tags: ['mine', 'claude-code'],
    environment: 'staging',
    release: 'r7',
    metadata: { team: 'x' },
  });
});
