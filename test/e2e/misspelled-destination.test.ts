import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Environment, POLL, run } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { TracedRuns } from '../support/traced-runs.js';

let runs: TracedRuns;

beforeEach(async () => {
  runs = await TracedRuns.open();
});

afterEach(() => runs.close());

const METADATA = { CC_LANGFUSE_CAPTURE: 'metadata' };
const OFF = { TRACE_TO_LANGFUSE: 'false' };

describe('a destination that was misspelled', () => {
  const typos: [string, () => Environment][] = [
    ['in its URL', () => ({ LANGFUSE_BASE_URL: 'http://127.0.0.1:1', CC_LANGFUSE_TIMEOUT: '1500' })],
    ['in its public key', () => ({ LANGFUSE_PUBLIC_KEY: 'pk-lf-embeded' })],
  ];

  test.each(typos)('%s is corrected by the next run of the same session', async (_, typo) => {
    await runs.once('startup', { env: typo() });
    await runs.once('resume');
    expect(runs.turns()).toEqual(['a Turn 1 with words', 'a Turn 2 with words']);
    expectEachSentOnce(runs.server);
    await runs.once('startup', { env: typo() }, runs.other);
    expect(runs.state[runs.session.id]).not.toHaveProperty('pending');
  });

  test.each(typos)('%s is corrected by another session in the same folder', async (_, typo) => {
    await runs.once('startup', { env: { ...typo(), ...METADATA } });
    await runs.once('startup', {}, runs.other);
    expect(runs.turns()).toEqual(['b Turn 1 with words', 'a Turn 1']);
    expectEachSentOnce(runs.server);
  });

  test.each(typos)('%s is corrected by a backfill', async (_, typo) => {
    await runs.once('startup', { env: typo() });
    await runs.backfillAll({});
    expect(runs.turns()).toEqual(['a Turn 1 with words']);
    expectEachSentOnce(runs.server);
  });

  test('is corrected for good by a backfill that also sends a turn that ran without tracing', async () => {
    const second = await runs.startServer();
    await runs.once('startup', { env: OFF });
    await runs.once('resume', { env: { LANGFUSE_PUBLIC_KEY: 'pk-lf-embeded' } });
    await runs.backfillAll({ LANGFUSE_BASE_URL: second.url });
    await runs.once('resume');
    runs.letIdle();
    await runs.once('startup', {}, runs.other);
    expect(runs.turns(second).toSorted()).toEqual(['a Turn 1 with words', 'a Turn 2 with words']);
    expect(runs.turns()).toEqual(['a Turn 3 with words', 'b Turn 1 with words']);
  });

  test('is not replaced once it has acknowledged something, even of another session', async () => {
    const second = await runs.startServer();
    await runs.once('startup', {}, runs.other);
    await runs.whileRefusing(() => runs.once('startup'));
    await runs.once('resume', { env: { LANGFUSE_BASE_URL: second.url } });
    expect(runs.turns(second)).toEqual(['a Turn 2 with words']);
  });

  test('is not one that --force sends everything to again', async () => {
    const second = await runs.startServer();
    await runs.once('startup');
    runs.server.misbehave = ({ url = '' }) => (url.includes('otel') ? { status: 401 } : undefined);
    await runs.backfillAll({}, '--force');
    await runs.once('resume');
    await runs.once('resume', { env: { LANGFUSE_BASE_URL: second.url } });
    expect(runs.turns(second)).toEqual(['a Turn 3 with words']);
  });

  test('is not replaced while a run is sending to it: it may answer after all', async () => {
    const slow = await runs.startServer();
    const env = { LANGFUSE_BASE_URL: slow.url };
    await runs.hook(runs.session.startPayload('startup'), env);
    runs.session.addTurn();
    await runs.whileRefusing(() => runs.hook(runs.session.payload('Stop'), env), slow);
    const hanging = slow.hang();
    const sending = runs.hook(runs.session.payload('Stop'), env);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    await runs.once('resume');
    expect(runs.turns()).toEqual(['a Turn 2 with words']);
    hanging.release();
    await sending;
    await runs.once('resume');
    expect([runs.turns(slow), runs.turns()]).toEqual([
      ['a Turn 1 with words'],
      ['a Turn 2 with words', 'a Turn 3 with words'],
    ]);
  });

  test('is not that of a URL with a slash at its end: both are one place', async () => {
    const at = (path: string) => ({ env: { LANGFUSE_BASE_URL: `${runs.server.url}${path}` } });
    await runs.once('startup', at(''));
    await runs.whileRefusing(() => runs.once('resume', at('')));
    await runs.once('resume', at('/'));
    expect(runs.turns()).toEqual(['a Turn 1 with words', 'a Turn 2 with words', 'a Turn 3 with words']);
    expectEachSentOnce(runs.server);
    const { destination } = runs.state[runs.session.id] ?? {};
    await runs.whileRefusing(() => runs.once('startup', at('/langfuse'), runs.other));
    await runs.whileRefusing(() => runs.once('resume', at('/langfuse/'), runs.other));
    const { runs: known = [] } = runs.state[runs.other.id] ?? {};
    expect(new Set(known.map((each) => each.destination)).size).toBe(1);
    expect(known[0]?.destination).not.toBe(destination);
  });
});

describe('a run whose destination another session has corrected', () => {
  const NO_KEYS = { LANGFUSE_PUBLIC_KEY: undefined, LANGFUSE_SECRET_KEY: undefined };

  test.each([
    ['a typo', { LANGFUSE_PUBLIC_KEY: 'pk-lf-embeded' }],
    ['no keys', NO_KEYS],
  ])('is still that of its process, which has %s: nothing is sent twice, and its end counts', async (_, env) => {
    const second = await runs.startServer();
    await runs.hook(runs.session.startPayload('startup'), env);
    runs.session.addTurn();
    await runs.hook(runs.session.payload('Stop'), env);
    runs.letIdle();
    await runs.once('startup', {}, runs.other);
    runs.session.addTurn();
    await runs.hook(runs.session.payload('Stop'), env);
    await runs.hook(runs.session.payload('SessionEnd'), env);
    await runs.once('resume', { env: OFF });
    await runs.once('resume', { env: { LANGFUSE_BASE_URL: second.url } });
    runs.letIdle();
    await runs.once('resume', {}, runs.other);
    expect(runs.turns().filter((turn) => turn.startsWith('a'))).toEqual(['a Turn 1 with words', 'a Turn 2 with words']);
    expect(runs.turns(second)).toEqual(['a Turn 4 with words']);
    for (const server of [runs.server, second]) expectEachSentOnce(server);
  });
});

describe('a run without keys', () => {
  const NO_KEYS = { LANGFUSE_PUBLIC_KEY: undefined, LANGFUSE_SECRET_KEY: undefined };

  test('is sent by the next run that has some, but not what ran with tracing off in between', async () => {
    await runs.once('startup', { env: NO_KEYS });
    await runs.once('resume', { env: OFF });
    await runs.once('resume');
    expect(runs.turns()).toEqual(['a Turn 1 with words', 'a Turn 3 with words']);
  });

  test('is sent by another session in the same folder that has some', async () => {
    await runs.once('startup', { env: NO_KEYS });
    runs.letIdle();
    await runs.once('startup', {}, runs.other);
    expect(runs.turns()).toEqual(['b Turn 1 with words', 'a Turn 1 with words']);
  });
});

describe('without SessionStart hooks and without the ids of prompts', () => {
  test('a run for another project does not get the turns of the runs before, though none has a SessionStart or prompt ids', async () => {
    const second = await runs.startServer();
    const stop = (env?: Environment) => runs.hookAlone(runs.session.payload('Stop', { prompt_id: undefined }), env);
    runs.session.addTurn();
    await stop();
    runs.session.addTurn();
    await stop({ LANGFUSE_BASE_URL: second.url });
    expect([runs.turns(), runs.turns(second)]).toEqual([['a Turn 1 with words'], ['a Turn 2 with words']]);
  });
});

describe('a session whose SessionEnd hook was killed before it had sent anything', () => {
  test('is sent by the next hook of another session', async () => {
    await runs.hook(runs.session.startPayload('startup'));
    runs.session.addTurn();
    const asked = new Promise<void>((resolve) => {
      runs.server.misbehave = () => {
        resolve();
        return { after: new Promise(() => {}) };
      };
    });
    let kill = () => {};
    const killed = run(['hook'], runs.env, JSON.stringify(runs.session.payload('SessionEnd')), {
      onStart: (child) => {
        kill = () => child.kill('SIGKILL');
      },
    });
    await asked;
    kill();
    await killed;
    runs.server.misbehave = () => undefined;
    runs.letIdle();
    await runs.once('startup', {}, runs.other);
    expect(runs.turns().toSorted()).toEqual(['a Turn 1 with words', 'b Turn 1 with words']);
  });
});
