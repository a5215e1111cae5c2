import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ClaudeSession } from '../support/claude-session.js';
import { LangfuseServer } from '../support/langfuse-server.js';
import { type Environment, POLL, run, Workplace } from '../support/program.js';
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

describe('a destination that was misspelled', () => {
  const typos: [string, () => Environment][] = [
    ['in its URL', () => ({ LANGFUSE_BASE_URL: 'http://127.0.0.1:1', CC_LANGFUSE_TIMEOUT: '1500' })],
    ['in its public key', () => ({ LANGFUSE_PUBLIC_KEY: 'pk-lf-embeded' })],
  ];

  test.each(typos)('%s is corrected by the next run of the same session', async (_, typo) => {
    await runOnce('startup', { env: typo() });
    await runOnce('resume');
    expect(turns()).toEqual(['a Turn 1 with words', 'a Turn 2 with words']);
    expectEachSentOnce(workplace.server);
    await runOnce('startup', { env: typo() }, other);
    expect(workplace.state[session.id]).not.toHaveProperty('pending');
  });

  test.each(typos)('%s is corrected by another session in the same folder', async (_, typo) => {
    await runOnce('startup', { env: { ...typo(), ...METADATA } });
    await runOnce('startup', {}, other);
    expect(turns()).toEqual(['b Turn 1 with words', 'a Turn 1']);
    expectEachSentOnce(workplace.server);
  });

  test.each(typos)('%s is corrected by a backfill', async (_, typo) => {
    await runOnce('startup', { env: typo() });
    await backfill({});
    expect(turns()).toEqual(['a Turn 1 with words']);
    expectEachSentOnce(workplace.server);
  });

  test('is corrected for good by a backfill that also sends a turn that ran without tracing', async () => {
    const second = await LangfuseServer.start();
    try {
      await runOnce('startup', { env: OFF });
      await runOnce('resume', { env: { LANGFUSE_PUBLIC_KEY: 'pk-lf-embeded' } });
      await backfill({ LANGFUSE_BASE_URL: second.url });
      await runOnce('resume');
      workplace.letIdle();
      await runOnce('startup', {}, other);
      expect(turns(second).toSorted()).toEqual(['a Turn 1 with words', 'a Turn 2 with words']);
      expect(turns()).toEqual(['a Turn 3 with words', 'b Turn 1 with words']);
    } finally {
      await second.stop();
    }
  });

  test('is not replaced once it has acknowledged something, even of another session', async () => {
    const second = await LangfuseServer.start();
    try {
      await runOnce('startup', {}, other);
      await whileRefusing(() => runOnce('startup'));
      await runOnce('resume', { env: { LANGFUSE_BASE_URL: second.url } });
      expect(turns(second)).toEqual(['a Turn 2 with words']);
    } finally {
      await second.stop();
    }
  });

  test('is not one that --force sends everything to again', async () => {
    const second = await LangfuseServer.start();
    try {
      await runOnce('startup');
      workplace.server.misbehave = ({ url = '' }) => (url.includes('otel') ? { status: 401 } : undefined);
      await backfill({}, '--force');
      await runOnce('resume');
      await runOnce('resume', { env: { LANGFUSE_BASE_URL: second.url } });
      expect(turns(second)).toEqual(['a Turn 3 with words']);
    } finally {
      await second.stop();
    }
  });

  test('is not replaced while a run is sending to it: it may answer after all', async () => {
    const slow = await LangfuseServer.start();
    try {
      const env = { LANGFUSE_BASE_URL: slow.url };
      await hook(session.startPayload('startup'), env);
      session.addTurn();
      await whileRefusing(() => hook(session.payload('Stop'), env), slow);
      const hanging = slow.hang();
      const sending = hook(session.payload('Stop'), env);
      await expect.poll(() => hanging.count, POLL).toBe(1);
      await runOnce('resume');
      expect(turns()).toEqual(['a Turn 2 with words']);
      hanging.release();
      await sending;
      await runOnce('resume');
      expect([turns(slow), turns()]).toEqual([['a Turn 1 with words'], ['a Turn 2 with words', 'a Turn 3 with words']]);
    } finally {
      await slow.stop();
    }
  });

  test('is not that of a URL with a slash at its end: both are one place', async () => {
    const at = (path: string) => ({ env: { LANGFUSE_BASE_URL: `${workplace.server.url}${path}` } });
    await runOnce('startup', at(''));
    await whileRefusing(() => runOnce('resume', at('')));
    await runOnce('resume', at('/'));
    expect(turns()).toEqual(['a Turn 1 with words', 'a Turn 2 with words', 'a Turn 3 with words']);
    expectEachSentOnce(workplace.server);
    const { destination } = workplace.state[session.id] ?? {};
    await whileRefusing(() => runOnce('startup', at('/langfuse'), other));
    await whileRefusing(() => runOnce('resume', at('/langfuse/'), other));
    const { runs = [] } = workplace.state[other.id] ?? {};
    expect(new Set(runs.map((each) => each.destination)).size).toBe(1);
    expect(runs[0]?.destination).not.toBe(destination);
  });
});

describe('a run whose destination another session has corrected', () => {
  const NO_KEYS = { LANGFUSE_PUBLIC_KEY: undefined, LANGFUSE_SECRET_KEY: undefined };

  test.each([
    ['a typo', { LANGFUSE_PUBLIC_KEY: 'pk-lf-embeded' }],
    ['no keys', NO_KEYS],
  ])('is still that of its process, which has %s: nothing is sent twice, and its end counts', async (_, env) => {
    const second = await LangfuseServer.start();
    try {
      await hook(session.startPayload('startup'), env);
      session.addTurn();
      await hook(session.payload('Stop'), env);
      workplace.letIdle();
      await runOnce('startup', {}, other);
      session.addTurn();
      await hook(session.payload('Stop'), env);
      await hook(session.payload('SessionEnd'), env);
      await runOnce('resume', { env: OFF });
      await runOnce('resume', { env: { LANGFUSE_BASE_URL: second.url } });
      workplace.letIdle();
      await runOnce('resume', {}, other);
      expect(turns().filter((turn) => turn.startsWith('a'))).toEqual(['a Turn 1 with words', 'a Turn 2 with words']);
      expect(turns(second)).toEqual(['a Turn 4 with words']);
      for (const server of [workplace.server, second]) expectEachSentOnce(server);
    } finally {
      await second.stop();
    }
  });
});

describe('a run without keys', () => {
  const NO_KEYS = { LANGFUSE_PUBLIC_KEY: undefined, LANGFUSE_SECRET_KEY: undefined };

  test('is sent by the next run that has some, but not what ran with tracing off in between', async () => {
    await runOnce('startup', { env: NO_KEYS });
    await runOnce('resume', { env: OFF });
    await runOnce('resume');
    expect(turns()).toEqual(['a Turn 1 with words', 'a Turn 3 with words']);
  });

  test('is sent by another session in the same folder that has some', async () => {
    await runOnce('startup', { env: NO_KEYS });
    workplace.letIdle();
    await runOnce('startup', {}, other);
    expect(turns()).toEqual(['b Turn 1 with words', 'a Turn 1 with words']);
  });
});

describe('without SessionStart hooks and without the ids of prompts', () => {
  test('a run for another project does not get the turns of the runs before, though none has a SessionStart or prompt ids', async () => {
    const second = await LangfuseServer.start();
    try {
      const stop = (env?: Environment) => workplace.hookAlone(session.payload('Stop', { prompt_id: undefined }), env);
      session.addTurn();
      await stop();
      session.addTurn();
      await stop({ LANGFUSE_BASE_URL: second.url });
      expect([turns(), turns(second)]).toEqual([['a Turn 1 with words'], ['a Turn 2 with words']]);
    } finally {
      await second.stop();
    }
  });
});

describe('a session whose SessionEnd hook was killed before it had sent anything', () => {
  test('is sent by the next hook of another session', async () => {
    await hook(session.startPayload('startup'));
    session.addTurn();
    const asked = new Promise<void>((resolve) => {
      workplace.server.misbehave = () => {
        resolve();
        return { after: new Promise(() => {}) };
      };
    });
    let kill = () => {};
    const killed = run(['hook'], workplace.env, JSON.stringify(session.payload('SessionEnd')), {
      onStart: (child) => {
        kill = () => child.kill('SIGKILL');
      },
    });
    await asked;
    kill();
    await killed;
    workplace.server.misbehave = () => undefined;
    workplace.letIdle();
    await runOnce('startup', {}, other);
    expect(turns().toSorted()).toEqual(['a Turn 1 with words', 'b Turn 1 with words']);
  });
});
