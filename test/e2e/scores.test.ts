import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LangfuseServer, type Misbehaviour } from '../support/langfuse-server.js';
import { appendLines, appendTurn as appendTurnTo, assistant, at } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { sessionFile } from '../support/state-files.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, CC_LANGFUSE_SCORES: 'true' };
});

afterEach(() => workplace.close());

const A = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
const B = 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb';
const pathOf = (session: string) => workplace.transcriptOf(session);
const appendTurn = (session: string, n: number) => appendTurnTo(pathOf(session), n);

const hook = (session: string, event = 'Stop') =>
  workplace.hook({ session_id: session, transcript_path: pathOf(session), hook_event_name: event });
const scores = () => [...workplace.server.api.scores.values()];
const times = () =>
  scores()
    .map(({ name, timestamp }) => `${name} ${timestamp}`)
    .toSorted();
const roots = () => workplace.server.observations.filter(({ parentId }) => parentId === undefined);
const messages = () => workplace.log.map(({ msg }) => msg);

function misbehaveWithScores(misbehaviour: Misbehaviour | undefined): void {
  workplace.server.misbehave = ({ url }) => (/\/(?:scores|ingestion)$/.test(url ?? '') ? misbehaviour : undefined);
}

describe('scores', () => {
  test('are sent once if CC_LANGFUSE_SCORES is true, with the times at which their turns ended', async () => {
    appendTurn(A, 1);
    appendTurn(A, 2);
    await hook(A);
    await hook(A, 'SessionEnd');
    expect(times()).toEqual(
      ['lines_added', 'lines_removed'].flatMap((name) => [`${name} ${at(15)}`, `${name} ${at(25)}`]),
    );
    expect(new Set(scores().map(({ traceId }) => traceId))).toEqual(new Set(roots().map(({ traceId }) => traceId)));
    expect(workplace.server.api.scoresTaken).toBe(4);
    expect(workplace.state[A]).toMatchObject({ turnCount: 2, scores: {} });
    expect(workplace.log).toEqual([]);
  });

  test('of a turn that continues are replaced', async () => {
    appendTurn(A, 1);
    await hook(A);
    appendLines(pathOf(A), assistant('more', 'more', { timestamp: at(19) }));
    await hook(A);
    expect(times()).toEqual([`lines_added ${at(19)}`, `lines_removed ${at(19)}`]);
    expect(workplace.server.api.scoresTaken).toBe(4);
  });

  test.each([
    ['has no ingestion API', { status: 404, headers: { 'content-type': 'text/html' } }],
    ['accepts no events there', { status: 207, body: '{"successes":[],"errors":[{"status":400}]}' }],
  ])('are sent by the other API, with the time at which they arrive, if the server %s', async (_, answer) => {
    workplace.server.misbehave = ({ url }) => (url === '/api/public/ingestion' ? answer : undefined);
    appendTurn(A, 1);
    const before = new Date().toISOString();
    await hook(A);
    const arrived = scores().filter(({ timestamp }) => timestamp >= before);
    expect(arrived.map(({ name, value }) => [name, value])).toEqual([
      ['lines_added', 0],
      ['lines_removed', 0],
    ]);
    expect(workplace.state[A]).toMatchObject({ scores: {} });
    expect(workplace.log).toEqual([]);
  });

  test('that an older version has left in the state are sent, except for those that are no longer sent', async () => {
    misbehaveWithScores({ status: 500 });
    appendTurn(A, 1);
    await hook(A);
    const path = sessionFile(workplace.stateFolder, A, `${workplace.state[A]?.destination}.json`);
    const figures = '"figures":{"interrupted":0,"lines_added":3,"lines_removed":1,"turn_seconds":5}';
    const text = readFileSync(path, 'utf8').replace(/"endTime":\d+,"figures":\{[^}]*\}/, figures);
    expect(text).toContain(figures);
    writeFileSync(path, text);
    misbehaveWithScores(undefined);
    await hook(A, 'SessionEnd');
    expect(scores().map(({ name, value }) => [name, value])).toEqual([
      ['lines_added', 3],
      ['lines_removed', 1],
    ]);
  });

  test('that are due at a server stay due there, and never go to another one', async () => {
    const other = await LangfuseServer.start();
    const own = workplace.env;
    try {
      misbehaveWithScores({ status: 500 });
      appendTurn(A, 1);
      await hook(A);
      workplace.env = { ...own, LANGFUSE_BASE_URL: other.url };
      await hook(A, 'SessionEnd');
      expect([...other.api.scores.values()]).toEqual([]);
      appendTurn(A, 2);
      await hook(A);
      const arrived = [...other.api.scores.values()].map(({ traceId }) => traceId);
      expect(new Set(arrived)).toEqual(new Set(other.roots.map(({ traceId }) => traceId)));
      misbehaveWithScores(undefined);
      workplace.env = own;
      await hook(A, 'SessionEnd');
      expect(times()).toEqual([`lines_added ${at(15)}`, `lines_removed ${at(15)}`]);
    } finally {
      await other.stop();
    }
  });

  test('are not sent by default', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_SCORES: undefined };
    appendTurn(A, 1);
    await hook(A);
    expect(scores()).toEqual([]);
    expect(workplace.state[A]).not.toHaveProperty('scores');
  });

  test.each([
    ['answers 500', { status: 500 }, 'scores were not sent: the server answers 500 to scores'],
    ['answers 404', { status: 404 }, 'scores were not sent: the server answers 404 to scores'],
    ['disconnects', { disconnect: 'before taking' }, 'scores were not sent: HOST cannot be reached: ECONNRESET'],
    [
      'answers with a web page',
      { headers: { 'content-type': 'text/html' } },
      'scores were not sent: this is not Langfuse: it answered a score with a web page',
    ],
  ] as const)('delay no turn if the server %s, which is logged, and are sent later', async (_, answer, reason) => {
    const message = reason.replace('HOST', new URL(workplace.server.url).host);
    misbehaveWithScores(answer);
    appendTurn(A, 1);
    await hook(A);
    appendTurn(A, 2);
    await hook(A);
    expect(roots().map(({ name }) => name)).toEqual(['Turn 1', 'Turn 2']);
    expect(workplace.state[A]).toMatchObject({ turnCount: 2, pending: { attempts: 2, reason: message } });
    expect(messages()).toEqual([message, message]);
    workplace.server.api.scores.clear();
    misbehaveWithScores(undefined);
    appendTurn(B, 1);
    await hook(B);
    expect(scores()).toHaveLength(6);
    expect(workplace.state[A]).not.toHaveProperty('pending');
    expectEachSentOnce(workplace.server);
  });

  test('that the server refuses because of their content are logged and skipped', async () => {
    misbehaveWithScores({ status: 400 });
    appendTurn(A, 1);
    await hook(A);
    expect(workplace.state[A]).toMatchObject({ turnCount: 1, scores: {} });
    expect(workplace.state[A]).not.toHaveProperty('pending');
    expect(messages()).toEqual(Array(2).fill('the server refuses a score, it is skipped'));
    expect(workplace.log[0]).toMatchObject({ score: `score lines_added of trace ${roots()[0]?.traceId}` });
  });

  test('do not wait longer for a silent server than CC_LANGFUSE_TIMEOUT', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '1500' };
    misbehaveWithScores({ delayMs: 60_000 });
    appendTurn(A, 1);
    await hook(A);
    expect(workplace.state[A]).toMatchObject({ turnCount: 1, pending: { attempts: 1 } });
    expect(messages()).toEqual([
      expect.stringMatching(/^scores were not sent: 127\.0\.0\.1:\d+ cannot be reached: no answer within/),
    ]);
  });

  test('of a session that another run sends depend on the settings of its own runs', async () => {
    workplace.server.misbehave = () => ({ status: 401 });
    appendTurn(A, 1);
    await hook(A);
    workplace.server.misbehave = () => undefined;
    workplace.env = { ...workplace.env, CC_LANGFUSE_SCORES: 'false' };
    appendTurn(B, 1);
    await hook(B);
    const own = roots().find(({ trace }) => trace.sessionId === A)?.traceId;
    expect(new Set(scores().map(({ traceId }) => traceId))).toEqual(new Set([own]));
  });

  test('are sent by a backfill, but not with --dry-run', async () => {
    appendTurn(A, 1);
    const backfill = (...args: string[]) =>
      run(['backfill', '--yes', pathOf(A), '--include-open', ...args], workplace.env);
    expect(await backfill('--dry-run')).toMatchObject({ exitCode: 0 });
    expect(scores()).toEqual([]);
    expect(await backfill()).toMatchObject({ exitCode: 0 });
    expect(times()).toEqual([`lines_added ${at(15)}`, `lines_removed ${at(15)}`]);
    misbehaveWithScores({ status: 503 });
    const again = await backfill('--force');
    expect(again).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('scores were not sent') });
  });
});
