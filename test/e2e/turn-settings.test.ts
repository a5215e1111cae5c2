import { existsSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LangfuseServer } from '../support/langfuse-server.js';
import { appendLines, at, user } from '../support/lines.js';
import type { Environment } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { TracedRuns } from '../support/traced-runs.js';

let runs: TracedRuns;

beforeEach(async () => {
  runs = await TracedRuns.open();
});

afterEach(() => runs.close());

const METADATA = { CC_LANGFUSE_CAPTURE: 'metadata' };
const OFF = { TRACE_TO_LANGFUSE: 'false' };

describe.each([
  ['with SessionStart hooks', true],
  ['with Stop and SessionEnd hooks only', false],
])('a turn that the server refused, %s,', (_, hasStart) => {
  test('is sent without words if its own run had them kept, though the next run sends words', async () => {
    await runs.whileRefusing(() => runs.once('startup', { env: METADATA, hasStart }));
    await runs.once('resume', { hasStart });
    expect(runs.turns()).toEqual(['a Turn 1', 'a Turn 2 with words']);
    expectEachSentOnce(runs.server);
  });

  test('is sent with its words if the next run, not its own, has them kept', async () => {
    await runs.whileRefusing(() => runs.once('startup', { hasStart }));
    await runs.once('resume', { env: METADATA, hasStart });
    expect(runs.turns()).toEqual(['a Turn 1 with words', 'a Turn 2']);
    expectEachSentOnce(runs.server);
  });

  test('is sent without words by the session that takes over from its own', async () => {
    await runs.whileRefusing(() => runs.once('startup', { env: METADATA, hasStart }));
    if (hasStart) await runs.hook(runs.other.startPayload('clear'));
    appendLines(runs.other.path, {
      ...user('question', { uuid: 'o1', timestamp: at(30) }),
      sessionId: runs.session.id,
    });
    runs.other.addTurn();
    await runs.hook(runs.other.payload('Stop'));
    expect(runs.turns()).toEqual(['a Turn 1', 'b Turn 1 with words']);
    expectEachSentOnce(runs.server);
  });
});

describe('a session that is continued with tracing off, and then with tracing on,', () => {
  const continueTwice = async (hasStart: boolean) => {
    await runs.once('startup', { hasStart });
    await runs.once('resume', { env: OFF, hasStart });
    await runs.once('resume', { hasStart });
    runs.letIdle();
    await runs.once('startup', { hasStart }, runs.other);
    await runs.hook(runs.other.payload('SessionEnd'));
  };
  const hooksOnly = ['a Turn 1 with words', 'a Turn 3 with words', 'b Turn 1 with words'];

  test.each([
    ['', true],
    [' if there are only Stop and SessionEnd hooks', false],
  ])('keeps the turn in between from every hook, until a backfill sends it%s', async (_, hasStart) => {
    await continueTwice(hasStart);
    expect(runs.turns()).toEqual(hooksOnly);
    const { stdout } = await runs.backfillAll({}, '--json');
    expect(runs.turns().toSorted()).toEqual([...hooksOnly, 'a Turn 2 with words'].toSorted());
    expect(JSON.parse(stdout)).toMatchObject({ total: { turns: 1, untraced: 1 } });
    expectEachSentOnce(runs.server);
  });

  test('and once more with tracing off, is sent whole by a backfill, each turn once', async () => {
    await continueTwice(true);
    await runs.once('resume', { env: OFF });
    await runs.backfillAll({});
    expect(runs.turns().toSorted()).toEqual([...hooksOnly, 'a Turn 2 with words', 'a Turn 4 with words'].toSorted());
    expectEachSentOnce(runs.server);
  });

  test('keeps the turns before, too, if the first run had tracing off and nothing recorded its start', async () => {
    await runs.once('startup', { env: OFF, hasStart: false });
    await runs.once('resume', { hasStart: false });
    runs.letIdle();
    await runs.once('startup', { hasStart: false }, runs.other);
    expect(runs.turns()).toEqual(['a Turn 2 with words', 'b Turn 1 with words']);
  });

  test('keeps it even if the server refused the first turn, which the next run sends', async () => {
    await runs.whileRefusing(() => runs.once('startup'));
    await runs.once('resume', { env: OFF });
    await runs.once('resume');
    expect(runs.turns()).toEqual(['a Turn 1 with words', 'a Turn 3 with words']);
  });

  test('keeps it if the third run is killed before its Stop, and another session recovers that one', async () => {
    await runs.once('startup');
    await runs.once('resume', { env: OFF });
    await runs.hook(runs.session.startPayload('resume'));
    runs.session.addTurn();
    runs.letIdle();
    await runs.once('startup', {}, runs.other);
    expect(runs.turns().toSorted()).toEqual(hooksOnly.toSorted());
  });
});

describe('a session that the state does not know, and that another one takes over from,', () => {
  const takeOver = async (hasStart: boolean) => {
    await runs.once('startup', { env: OFF });
    runs.session.addTurn();
    if (hasStart) await runs.hook(runs.other.startPayload('fork'));
    appendLines(runs.other.path, {
      ...user('question', { uuid: 'o1', timestamp: at(30) }),
      sessionId: runs.session.id,
    });
    runs.other.addTurn();
    await runs.hookAlone(runs.other.payload('Stop'));
    return runs.turns();
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
    second = await runs.startServer();
    toSecond = { LANGFUSE_BASE_URL: second.url };
  });

  const pendingForFirst = async () => {
    await runs.once('startup');
    await runs.whileRefusing(() => runs.once('resume'));
    await runs.once('resume', { env: toSecond });
  };

  test('waits for the keys of that project, in its own session or another', async () => {
    await pendingForFirst();
    expect([runs.turns(), runs.turns(second)]).toEqual([['a Turn 1 with words'], ['a Turn 3 with words']]);
    await runs.once('startup', { env: toSecond }, runs.other);
    expect([runs.turns().length, runs.turns(second).length]).toEqual([1, 2]);
    await runs.once('resume', {}, runs.other);
    expect(runs.turns()).toEqual(['a Turn 1 with words', 'b Turn 2 with words', 'a Turn 2 with words']);
    expect(runs.turns(second)).toEqual(['a Turn 3 with words', 'b Turn 1 with words']);
    for (const server of [runs.server, second]) expectEachSentOnce(server);
  });

  test('is sent there even if that run was killed before a Stop', async () => {
    await runs.hook(runs.session.startPayload('startup'));
    runs.session.addTurn();
    await runs.once('resume', { env: toSecond });
    await runs.once('startup', {}, runs.other);
    expect(runs.turns()).toEqual(['b Turn 1 with words', 'a Turn 1 with words']);
    expect(runs.turns(second)).toEqual(['a Turn 2 with words']);
  });

  test('is sent by the next run of its own session that has those keys', async () => {
    await pendingForFirst();
    await runs.once('resume');
    expect(runs.turns()).toEqual(['a Turn 1 with words', 'a Turn 2 with words', 'a Turn 4 with words']);
    expect(runs.turns(second)).toEqual(['a Turn 3 with words']);
    for (const server of [runs.server, second]) expectEachSentOnce(server);
  });

  test.each([[[]], [['--force']]])('is not sent by a backfill for the second one %j', async (force) => {
    await pendingForFirst();
    const { stdout } = await runs.backfillAll(toSecond, ...force);
    if (force.length === 0)
      expect(stdout).toContain(`– ${runs.session.id} has other turns, which are for another project`);
    expect(runs.turns(second)).toEqual(['a Turn 3 with words']);
    await runs.backfillAll({});
    expect(runs.turns()).toEqual(['a Turn 1 with words', 'a Turn 2 with words']);
    expectEachSentOnce(runs.server);
  });
});

describe('tracing', () => {
  test('is off if the shell says so, whatever the settings say', async () => {
    runs.session.addTurn();
    await runs.hook(runs.session.payload('Stop'), { CC_TRACE_TO_LANGFUSE: 'false' });
    expect(runs.server.requests).toEqual([]);
    expect(existsSync(runs.stateFolder)).toBe(false);
  });
});

describe('a redaction rule that cannot be read', () => {
  const BAD = { CC_LANGFUSE_REDACT_EXTRA: '[{"pattern": "("}]' };
  const GOOD = { CC_LANGFUSE_REDACT_EXTRA: '[{"pattern": "question"}]' };

  test('holds the turns back, and says so in the state', async () => {
    await runs.once('startup', { env: BAD });
    expect(runs.turns()).toEqual([]);
    expect(runs.state[runs.session.id]).toMatchObject({
      pending: { code: 'rules', reason: 'CC_LANGFUSE_REDACT_EXTRA: rule 1 is not a valid regular expression' },
    });
  });

  test('is replaced by the one of the next run', async () => {
    await runs.once('startup', { env: BAD });
    await runs.once('resume', { env: GOOD });
    expect(runs.turns()).toEqual(['a Turn 1 with words', 'a Turn 2 with words']);
    expect(JSON.stringify(runs.server.roots.map(({ input }) => input))).not.toContain('question');
    expect(runs.state[runs.session.id]).not.toHaveProperty('pending');
  });

  test('is replaced by the one of a backfill, and by none that it does not have', async () => {
    await runs.once('startup', { env: BAD });
    await runs.backfillAll({});
    expect(runs.turns()).toEqual([]);
    await runs.backfillAll(GOOD);
    expect(runs.turns()).toEqual(['a Turn 1 with words']);
    expect(JSON.stringify(runs.server.roots.map(({ input }) => input))).not.toContain('question');
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
  await runs.once('startup', { env: described });
  await runs.once('resume', { env: { LANGFUSE_USER_ID: 'bob' } });
  const before = runs.server.observations;
  await runs.backfillAll({}, '--force');
  expect(runs.server.observations).toEqual(before);
  expect(before.map((observation) => runs.server.timesSent(observation))).toEqual([2, 2, 2, 2]);
  expect(before.map(({ trace }) => trace.userId)).toEqual(['ada', 'ada', 'bob', 'bob']);
  expect(before[0]?.trace).toMatchObject({
    userId: 'ada',
    tags: ['mine', 'claude-code'],
    environment: 'staging',
    release: 'r7',
    metadata: { team: 'x' },
  });
});
