import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type GeneratedSession, sessionIdOf, writeNthSession, writeSession } from '../support/generated.js';
import { assistant, at, jsonLines, toolResult, toolUse, user } from '../support/lines.js';
import { isTrial } from '../support/newcomer.js';
import { run, Workplace } from '../support/program.js';
import { play, recording, recordings, transcriptsOf } from '../support/recording.js';
import { expectEachSent, expectEachSentOnce } from '../support/sent-once.js';
import { describeTraces } from '../support/traces.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const write = (n: number, more: Partial<GeneratedSession> = {}) => writeNthSession(workplace.projects, n, more);
const exportedSessions = () => new Set(workplace.server.roots.map(({ trace }) => trace.sessionId));
const exportRequests = () =>
  workplace.server.requests.filter((request) => request.path.includes('otel') && !isTrial(request));

describe('a session that was never exported', () => {
  test.concurrent.each(recordings())('is sent as the hooks would have sent it: $name', async ({ name, folder }) => {
    const own = await Workplace.open();
    try {
      cpSync(join(folder, 'projects'), own.projects, { recursive: true });
      own.letIdle();
      const { exitCode, stderr } = await run(['backfill', '--yes', '--all', '--json'], own.env);
      expect({ name, exitCode, stderr }).toEqual({ name, exitCode: 0, stderr: '' });
      expect(describeTraces(own.server.observations)).toBe(readFileSync(join(folder, 'expected.json'), 'utf8'));
      expectEachSentOnce(own.server);
    } finally {
      await own.close();
    }
  });
});

describe('a session that was exported before', () => {
  test.each(['p-toolloop', 'i-queue', 'i-agentbg2'])(
    'is not sent again if the hooks have sent it: %s',
    async (name) => {
      await play(recording(name), workplace.home, async ({ payload }) => void (await workplace.hook(payload)));
      const before = exportRequests().length;
      workplace.letIdle();
      const { stdout, exitCode } = await workplace.backfill('--all');
      expect({ exitCode, sent: exportRequests().length - before }).toEqual({ exitCode: 0, sent: 0 });
      expect(stdout).toMatch(/^already there {2}\d sessions?\nhttp/);
    },
  );

  test('is not sent again by a second run; --force sends it again under the same ids', async () => {
    cpSync(join(recording('p-toolloop').folder, 'projects'), workplace.projects, { recursive: true });
    workplace.letIdle();
    await workplace.backfill('--all');
    await workplace.backfill('--all');
    expectEachSentOnce(workplace.server);
    const { stderr } = await workplace.backfill('--all', '--force');
    expect(stderr).toContain('until Langfuse merges them');
    expectEachSent(workplace.server, 2);
  });

  test('is sent again by --force alone if the server has lost it after it had answered 200', async () => {
    write(1);
    await workplace.backfill('--all');
    const sent = workplace.server.observations;
    workplace.server.loseWhatIsNotWritten();
    await workplace.backfill('--all');
    expect(workplace.server.observations).toEqual([]);
    await workplace.backfill('--all', '--force');
    expect(workplace.server.observations).toEqual(sent);
  });

  test('to another project is skipped, even with --force', async () => {
    write(1);
    await workplace.backfill('--all');
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: workplace.server.url.replace('127.0.0.1', 'localhost') };
    for (const force of [[], ['--force']]) {
      const { stdout, exitCode } = await workplace.backfill('--all', ...force);
      expect(exitCode).toBe(0);
      expect(stdout).toContain(`– ${sessionIdOf(1)} is for another project`);
    }
    expectEachSentOnce(workplace.server);
  });
});

describe('after a backfill', () => {
  const later = (n: number, turn: number) => {
    const id = sessionIdOf(n);
    const part = join(workplace.home, 'part');
    const at = { sessionId: id, cwd: '/home/dev/one', turns: 1, firstTurn: turn, startsAt: Date.now() - 7_200_000 };
    const path = join(workplace.projects, '-home-dev-one', `${id}.jsonl`);
    appendFileSync(path, readFileSync(writeSession(part, at)));
    workplace.letIdle();
  };
  const otherHook = () => {
    const path = write(99, { turns: 1, startsAt: Date.now() });
    return workplace.hook({ session_id: sessionIdOf(99), transcript_path: path, hook_event_name: 'Stop' });
  };
  const turnsOf = (n: number) =>
    workplace.server.roots.filter(({ trace }) => trace.sessionId === sessionIdOf(n)).length;

  test.each([
    ['that the state did not know', undefined],
    ['that the first cc-langfuse exported', { last_line: 16, turn_count: 2, updated: '2026-10-01T00:00:00.000Z' }],
  ])('hooks do not continue a session %s, since it may run with tracing off', async (_, entry) => {
    write(1);
    if (entry) {
      mkdirSync(workplace.stateFolder, { recursive: true });
      const file = join(workplace.stateFolder, 'cc-langfuse_state.json');
      writeFileSync(file, JSON.stringify({ [sessionIdOf(1)]: entry }));
    }
    await workplace.backfill('--all');
    const there = turnsOf(1);
    later(1, 3);
    await otherHook();
    expect(turnsOf(1)).toBe(there);
    await workplace.backfill('--all');
    expect(turnsOf(1)).toBe(there + 1);
  });

  test('hooks continue a session that was started with tracing on, even if --force has sent it again', async () => {
    const path = write(1);
    await workplace.hook({
      session_id: sessionIdOf(1),
      transcript_path: path,
      hook_event_name: 'SessionStart',
      source: 'startup',
    });
    await workplace.backfill('--all');
    await workplace.backfill('--all', '--force');
    later(1, 3);
    await otherHook();
    expect(turnsOf(1)).toBe(3);
  });

  test('a session keeps the settings that its own run had', async () => {
    const path = write(1);
    const { env } = workplace;
    workplace.env = { ...env, CC_LANGFUSE_CAPTURE: 'metadata', LANGFUSE_TAGS: 'mine' };
    await workplace.hook({ session_id: sessionIdOf(1), transcript_path: path, hook_event_name: 'Stop' });
    workplace.env = env;
    later(1, 3);
    await workplace.backfill('--all');
    expect(workplace.server.roots.map(({ input, trace }) => [input, trace.tags])).toEqual(
      Array(3).fill([undefined, ['mine', 'claude-code']]),
    );
    expect(workplace.state[sessionIdOf(1)]).toMatchObject({ runs: [{ given: { LANGFUSE_TAGS: 'mine' } }] });
  });
});

describe('two backfills and sixteen hooks at the same time', () => {
  test('send each observation once, and leave a correct state', async () => {
    const paths = Array.from({ length: 8 }, (_, n) => write(n + 1, { turns: 10 }));
    const hooks = paths.flatMap((path) =>
      [1, 2].map(() =>
        workplace.hook({ session_id: basename(path, '.jsonl'), transcript_path: path, hook_event_name: 'Stop' }),
      ),
    );
    const runs = [workplace.backfill('--all'), workplace.backfill('--all'), ...hooks];
    for (const { exitCode } of await Promise.all(runs)) expect(exitCode).toBe(0);
    expect(workplace.server.roots).toHaveLength(80);
    expectEachSentOnce(workplace.server);
    expect(Object.values(workplace.state)).toMatchObject(Array(8).fill({ turnCount: 10, lastLine: 80 }));
  });
});

describe('a fork without fork marks', () => {
  test('is exported after the session that it was forked from, at any concurrency', async () => {
    const lines = (n: number, sessionId: string) => [
      user(`q${n}`, {
        uuid: `u${n}`,
        sessionId,
        timestamp: new Date(Date.now() - 9_000_000 + n * 1_000).toISOString(),
      }),
      assistant(`m${n}`, 'a', { sessionId, timestamp: new Date(Date.now() - 8_999_500 + n * 1_000).toISOString() }),
    ];
    const [original, fork] = [sessionIdOf(1), sessionIdOf(2)];
    const folder = join(workplace.projects, '-work');
    mkdirSync(folder, { recursive: true });
    const put = (id: string, ...numbers: number[]) =>
      writeFileSync(
        join(folder, `${id}.jsonl`),
        numbers
          .flatMap((n) => lines(n, id))
          .map((line) => `${JSON.stringify(line)}\n`)
          .join(''),
      );
    put(original, 1, 2, 3);
    put(fork, 1, 2, 4);
    workplace.letIdle();
    expect(await workplace.backfill('--all', '--concurrency', '8')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(workplace.server.roots.map(({ trace, name }) => `${trace.sessionId} ${name}`)).toEqual([
      `${original} Turn 1`,
      `${original} Turn 2`,
      `${original} Turn 3`,
      `${fork} Turn 3`,
    ]);
  });
});

describe('a session that is still being written', () => {
  test('is sent without its last turn, until the session is idle or --include-open is given', async () => {
    const path = write(1);
    const now = new Date();
    utimesSync(path, now, now);
    await workplace.backfill('--all');
    expect(workplace.server.roots.map(({ name }) => name)).toEqual(['Turn 1']);
    await workplace.backfill('--all', '--include-open');
    expect(workplace.server.roots.map(({ name }) => name)).toEqual(['Turn 1', 'Turn 2']);
    expectEachSentOnce(workplace.server);
  });
});

describe('a session whose other turns were copied from another', () => {
  test('is skipped with a reason while its only own turn may continue, and if it has none', async () => {
    const folder = join(workplace.projects, '-work');
    mkdirSync(folder, { recursive: true });
    const branch = sessionIdOf(1);
    for (const path of transcriptsOf(recording('i-branch'))) cpSync(path, join(folder, basename(path)));
    const copied = copiedLines(branch);
    const own = [user('mine', { uuid: 'u1', sessionId: branch }), assistant('m1', 'an answer', { sessionId: branch })];
    const put = (lines: object[]) => writeFileSync(join(folder, `${branch}.jsonl`), jsonLines(lines));
    put([...copied, ...own]);
    expect((await workplace.backfill('--all')).stdout).toContain(
      'changed in the last 10 minutes; --include-open exports its last turn, too',
    );
    put(copied);
    workplace.letIdle();
    rmSync(join(workplace.stateFolder, 'cc-langfuse_sessions'), { recursive: true });
    expect((await workplace.backfill('--all')).stdout).toContain(
      'has only turns that were copied from another session',
    );
    expect(workplace.server.roots.filter(({ trace }) => trace.sessionId === branch)).toEqual([]);
  });

  test('is sent whole if nobody has the others any more', async () => {
    const branch = sessionIdOf(1);
    const lines = copiedLines(branch);
    writeTranscript(branch, lines);
    await workplace.backfill('--all');
    expect(exportedSessions()).toEqual(new Set([branch]));
    expect(workplace.server.roots.length).toBeGreaterThan(0);
  });

  test('is sent by its hooks without the others, which a backfill sends if nobody has them any more', async () => {
    const branch = sessionIdOf(1);
    const copied = copiedLines(branch);
    const own = [user('mine', { uuid: 'u1', sessionId: branch }), assistant('m1', 'an answer', { sessionId: branch })];
    writeTranscript(branch, [...copied, ...own]);
    const path = join(workplace.projects, '-work', `${branch}.jsonl`);
    await workplace.hook({ session_id: branch, transcript_path: path, hook_event_name: 'Stop' });
    expect(workplace.server.roots.map(({ input }) => input)).toEqual([[{ role: 'user', content: 'mine' }]]);
    await workplace.backfill('--all');
    expect(workplace.server.roots.length).toBeGreaterThan(1);
    const sent = exportRequests().length;
    await workplace.backfill('--all');
    expect(exportRequests()).toHaveLength(sent);
    expectEachSentOnce(workplace.server);
  });
});

const copiedLines = (sessionId: string) =>
  transcriptsOf(recording('i-branch'))
    .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
    .filter((line) => line.includes('forkedFrom'))
    .map((line) => ({ ...JSON.parse(line), sessionId }));

function writeTranscript(session: string, lines: object[]): void {
  const folder = join(workplace.projects, '-work');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${session}.jsonl`), jsonLines(lines));
  workplace.letIdle();
}

test.each([1, 2])(
  'of two forks without a mark, a turn is sent as the one with all of it has it, with fork %i first',
  async (n) => {
    const lines = (session: string) => {
      const more = { sessionId: session, version: '2.1.12' };
      return [
        user('invert the flag', { uuid: 'u1', timestamp: at(1), ...more }),
        assistant('p1', [toolUse('t1', 'Task')], { uuid: 'a1', parentUuid: 'u1', timestamp: at(2), ...more }),
        user([toolResult('t1', 'inverted')], { uuid: 'r1', parentUuid: 'a1', timestamp: at(3), ...more }),
        assistant('p2', 'done', { uuid: 'a2', parentUuid: 'r1', timestamp: at(4), ...more }),
      ];
    };
    writeTranscript(sessionIdOf(1), lines(sessionIdOf(1)).slice(0, 2));
    writeTranscript(sessionIdOf(2), lines(sessionIdOf(2)));
    await workplace.backfill(sessionIdOf(n));
    await workplace.backfill('--all');
    const { observations } = workplace.server;
    expect(new Set(observations.map(({ trace }) => trace.sessionId))).toEqual(new Set([sessionIdOf(2)]));
    expect(observations.flatMap(({ metadata }) => metadata.message_id ?? []).toSorted()).toEqual(['p1', 'p2']);
    expect(observations.find(({ type }) => type === 'tool')?.output).toBe('inverted');
  },
);

describe('lines that name another session', () => {
  const [own, other] = [sessionIdOf(1), sessionIdOf(2)];
  const inOther = { sessionId: other };
  const turn = (n: number, prompt: object, answer: object) => [
    user(`question ${n}`, { uuid: `u${n}`, ...prompt }),
    assistant(`m${n}`, `answer ${n}`, { uuid: `a${n}`, parentUuid: `u${n}`, ...answer }),
  ];
  const names = () => workplace.server.roots.map(({ trace, input }) => [trace.sessionId, input]);
  const prompt = (n: number) => [{ role: 'user', content: `question ${n}` }];

  test('are this one’s if that session has no such lines: its file is empty, or is not there', async () => {
    writeTranscript(own, [...turn(1, inOther, inOther), ...turn(2, inOther, inOther)]);
    writeTranscript(other, []);
    await workplace.backfill('--all');
    expect(names()).toEqual([
      [own, prompt(1)],
      [own, prompt(2)],
    ]);
  });

  test('are this one’s if its file begins in the middle of a turn of that session, which is gone', async () => {
    writeTranscript(own, [...turn(1, inOther, inOther).slice(1), ...turn(2, inOther, inOther)]);
    await workplace.backfill('--all');
    expect(workplace.server.roots.map(({ output }) => output)).toEqual(
      [1, 2].map((n) => ({ role: 'assistant', name: 'Claude', content: `answer ${n}` })),
    );
  });

  test('are counted, wherever the user looks, if their prompt is in no file', async () => {
    writeTranscript(own, [...turn(1, inOther, inOther).slice(1), ...turn(2, inOther, inOther)]);
    const said = 'the prompt or call of 1 part is in no file; such parts are sent all the same';
    const { stdout } = await workplace.backfill('--all');
    expect(stdout).toContain(`1 session: ${said}\n`);
    const { stdout: sessions } = await run(['sessions'], workplace.env);
    expect(sessions.replace(/\s+/g, ' ')).toContain(`exported (${said})`);
    const { stdout: json } = await run(['sessions', '--json'], workplace.env);
    expect(JSON.parse(json)).toMatchObject([{ state: 'exported', reason: said }]);
    expect(workplace.log).toMatchObject([
      { msg: 'parts whose prompt or call is in no file are sent all the same', parts: 1 },
    ]);
    // It is said once.
    await workplace.backfill('--all');
    expect(workplace.log).toHaveLength(1);
  });

  test('are this one’s if only a prompt names that session, which does not have it', async () => {
    writeTranscript(other, turn(0, inOther, inOther));
    writeTranscript(own, [...turn(1, inOther, { sessionId: own }), ...turn(2, { sessionId: own }, { sessionId: own })]);
    await workplace.backfill('--all');
    expect(names()).toEqual(
      expect.arrayContaining([
        [other, prompt(0)],
        [own, prompt(1)],
        [own, prompt(2)],
      ]),
    );
    expectEachSentOnce(workplace.server);
  });

  test.each([own, other])('are sent once, as that session’s, if it has them, with %s first', async (first) => {
    writeTranscript(other, turn(1, inOther, inOther));
    writeTranscript(own, [...turn(1, inOther, inOther), ...turn(2, { sessionId: own }, { sessionId: own })]);
    // In whichever order.
    if (first === own) await workplace.backfill(own);
    await workplace.backfill('--all');
    expect(names().toSorted()).toEqual([
      [own, prompt(2)],
      [other, prompt(1)],
    ]);
    expectEachSentOnce(workplace.server);
  });
});

describe('a server that fails', () => {
  test('and sends Retry-After is not asked again by any request before that time', async () => {
    for (let n = 1; n <= 4; n += 1) write(n);
    let refused = 0;
    workplace.server.misbehave = ({ method }) => {
      if (method === 'GET' || refused === 4) return undefined;
      refused += 1;
      return { status: 429, headers: { 'retry-after': '1' } };
    };
    const { exitCode, ms } = await workplace.backfill('--all');
    expect(exitCode).toBe(0);
    expect(ms).toBeGreaterThan(1_000);
    expect(workplace.server.roots).toHaveLength(8);
    expectEachSentOnce(workplace.server);
  });

  test('for some sessions, and files that cannot be read, do not stop the others', async () => {
    for (let n = 1; n <= 12; n += 1) write(n);
    for (let n = 6; n <= 12; n += 1) rmSync(write(n));
    for (let n = 6; n <= 12; n += 1) mkdirSync(join(workplace.projects, '-home-dev-one', `${sessionIdOf(n)}.jsonl`));
    workplace.server.misbehave = (_, __, spans) =>
      JSON.stringify(spans).includes(sessionIdOf(4)) || JSON.stringify(spans).includes(sessionIdOf(5))
        ? { status: 413 }
        : undefined;
    const { exitCode, stdout } = await workplace.backfill('--all', '--concurrency', '1');
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^exported {2}3 sessions\nfailed {4}2 sessions\n/);
  });

  test('gets what can be read of transcripts in which a line has no end', async () => {
    write(1);
    for (const n of [2, 3, 4]) {
      const path = write(n);
      writeFileSync(path, jsonLines([{ type: 'mode', mode: 'default', sessionId: sessionIdOf(n) }]));
      truncateSync(path, 300_000_000);
      workplace.letIdle(path);
    }
    const { exitCode, stdout } = await workplace.backfill('--all', '--concurrency', '1');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^exported {3}1 session\nskipped {3}3 sessions\n/);
    expect(stdout).toContain(`– ${sessionIdOf(2)} has no answered turn\n`);
    expect(exportedSessions()).toEqual(new Set([sessionIdOf(1)]));
  });

  test('for several sessions in a row is not asked for the others: the next run sends them', async () => {
    for (let n = 1; n <= 9; n += 1) write(n);
    workplace.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
    const { exitCode, stdout } = await workplace.backfill('--all', '--concurrency', '1');
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^failed {5}[345] sessions\nnot tried {2}[456] sessions\n/);
    expect(stdout).toContain(`✗ ${sessionIdOf(9)} the server answers 418\n`);
    expect(stdout).toContain('To go on, run the same command again.');
    workplace.server.misbehave = () => undefined;
    expect((await workplace.backfill('--all')).exitCode).toBe(0);
    expect(exportedSessions().size).toBe(9);
  });

  test('because it refuses the keys is named before any session is read', async () => {
    write(1);
    workplace.env = { ...workplace.env, LANGFUSE_SECRET_KEY: 'sk-lf-secret-of-mine' };
    const { exitCode, stdout, stderr } = await workplace.backfill('--all');
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toBe(
      `cc-langfuse: Langfuse refused the keys (401) at 127.0.0.1:${workplace.server.port}: "Invalid credentials. Confirm that you've configured the correct host"; make new ones for "cc-langfuse install", or for the plugin\n`,
    );
    expect(workplace.server.requests.map(isTrial)).toEqual([true, true]);
  });

  test('because it cannot be reached is named before any session is read', async () => {
    write(1);
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: 'http://127.0.0.1:1' };
    expect(await workplace.backfill('--all')).toMatchObject({
      exitCode: 1,
      stderr: 'cc-langfuse: 127.0.0.1:1 cannot be reached: ECONNREFUSED\n',
    });
  });
});

test('keys are read from the env block of the user settings, unless the shell sets them', async () => {
  write(1);
  const { LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL, HOME } = workplace.env;
  const env = { LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL: 'http://127.0.0.1:1' };
  writeFileSync(join(workplace.home, '.claude', 'settings.json'), JSON.stringify({ env }));
  expect(await run(['backfill', '--yes', '--all'], { HOME })).toMatchObject({ exitCode: 1 });
  expect(await run(['backfill', '--yes', '--all'], { HOME, LANGFUSE_BASE_URL })).toMatchObject({ exitCode: 0 });
  expect(workplace.server.roots).toHaveLength(2);
});
