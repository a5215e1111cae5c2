import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LangfuseServer, type Misbehaviour } from '../support/langfuse-server.js';
import { appendTurn, SESSION } from '../support/lines.js';

import { type Environment, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '25000' };
});

afterEach(() => workplace.close());

const ANOTHER = '22222222-2222-4222-8222-222222222222';
const THIRD = '33333333-3333-4333-8333-333333333333';
/** Long enough for a server that is given a fair time, also on a busy machine. */
const QUICKLY = { CC_LANGFUSE_TIMEOUT: '3000' };
/** Longer than a run waits during an outage. */
const SLOW: Misbehaviour = { delayMs: 2_500 };
const HANGS: Misbehaviour = { delayMs: 20_000 };

const servers = () => join(workplace.stateFolder, 'cc-langfuse_servers');
const outageFiles = () =>
  readdirSync(servers())
    .filter((name) => name.endsWith('.json'))
    .filter((name) => readFileSync(join(servers(), name), 'utf8').includes('"outage"'));
const readServer = () => {
  const [name = ''] = outageFiles();
  return { path: join(servers(), name), server: JSON.parse(readFileSync(join(servers(), name), 'utf8')) };
};
const outage = () => readServer().server.outage;
const change = (more: object) => {
  const { path, server } = readServer();
  writeFileSync(path, JSON.stringify({ ...server, outage: { ...server.outage, ...more } }));
};
const turns = (server = workplace.server) => server.roots.map(({ trace, name }) => `${trace.sessionId} ${name}`);

/** Ends a session of one turn, headless and in front. */
async function end(session: string, env: Environment = {}): Promise<void> {
  appendTurn(workplace.transcriptOf(session), 1);
  const before = workplace.env;
  workplace.env = { ...before, ...env };
  const { exitCode, stdout } = await workplace.hook({
    session_id: session,
    transcript_path: workplace.transcriptOf(session),
    hook_event_name: 'SessionEnd',
  });
  workplace.env = before;
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
}

/** Whether a run waits as long as it may: then a slow server gets its session. */
async function isPatient(session: string, env: Environment = {}, server = workplace.server): Promise<boolean> {
  server.misbehave = () => SLOW;
  await end(session, env);
  return turns(server).includes(`${session} Turn 1`);
}

/** Lets a run give up while the server hangs. If it waited as long as it may, the test would time out. */
async function giveUp(session: string): Promise<void> {
  workplace.server.hang();
  await end(session, { CC_LANGFUSE_TIMEOUT: '600000' });
  expect(turns()).not.toContain(`${session} Turn 1`);
}

describe('a server that is down', () => {
  test('costs the whole time once: the next run, of another session, gives up while the server still hangs', async () => {
    workplace.server.misbehave = () => HANGS;
    await end(SESSION, QUICKLY);
    await end(ANOTHER);
    // Nothing has been answered by then.
    expect(workplace.server.requests).toEqual([]);
    expect(workplace.state[ANOTHER]).toMatchObject({ pending: { attempts: 1 } });
    workplace.repairServer();
    await end(THIRD);
    expect(turns().toSorted()).toEqual([SESSION, ANOTHER, THIRD].map((session) => `${session} Turn 1`));
    expectEachSentOnce(workplace.server);
  });

  test.each<[string, Misbehaviour]>([
    ['answers 503', { status: 503 }],
    ['answers 500', { status: 500 }],
    ['resets connections', { disconnect: 'before taking' }],
  ])('is remembered if it %s, until it accepts something', async (_, fault) => {
    workplace.server.misbehave = () => fault;
    await end(SESSION);
    expect(outage()).toMatchObject({ failures: 1 });
    await giveUp(ANOTHER);
    workplace.server.misbehave = () => undefined;
    // A run that gives up before it has sent anything on a busy machine leaves it to the next one.
    while (outageFiles().length > 0) await end(SESSION);
    expect(await isPatient(THIRD)).toBe(true);
  });

  test('is not waited for less if it only refuses: the keys, or what it is sent', async () => {
    for (const status of [401, 403, 404, 400, 413, 429]) {
      workplace.server.misbehave = () => ({ status, headers: { 'retry-after': '100' } });
      await end(SESSION);
    }
    expect(await isPatient(ANOTHER)).toBe(true);
  });

  test('does not shorten what is sent to another server', async () => {
    const other = await LangfuseServer.start();
    try {
      workplace.server.misbehave = () => ({ status: 503 });
      await end(SESSION);
      expect(await isPatient(ANOTHER, { LANGFUSE_BASE_URL: other.url }, other)).toBe(true);
      expect(outageFiles()).toHaveLength(1);
      await giveUp(THIRD);
    } finally {
      await other.stop();
    }
  });

  test('is given the whole time again after some minutes', async () => {
    workplace.server.misbehave = () => ({ status: 503 });
    await end(SESSION);
    workplace.repairServer();
    expect(await isPatient(ANOTHER)).toBe(true);
  });
});

/** Accepts connections, and answers each with a few bytes. */
async function withTalker(bytes: string, work: (url: string) => Promise<void>): Promise<void> {
  const talker = createServer((socket) => {
    socket.on('error', () => {});
    socket.end(bytes);
  });
  await new Promise<void>((resolve) => talker.listen(0, '127.0.0.1', resolve));
  try {
    await work(`http://127.0.0.1:${(talker.address() as AddressInfo).port}`);
  } finally {
    talker.close();
  }
}

describe('in the terminal', () => {
  /** Returns what the next hook says, after one that has tried to send a turn. */
  async function messageAfterTurn(session: string, env: Environment = {}): Promise<string | undefined> {
    appendTurn(workplace.transcriptOf(session), 1);
    const payload = {
      session_id: session,
      transcript_path: workplace.transcriptOf(session),
      hook_event_name: 'Stop',
    };
    expect(await workplace.hook(payload, { ...env, CC_LANGFUSE_WAIT: '1' })).toMatchObject({ stdout: '' });
    const { stdout } = await workplace.hook(payload, { ...env, CLAUDE_CODE_ENTRYPOINT: 'cli' });
    return stdout === '' ? undefined : JSON.parse(stdout).systemMessage;
  }
  const expectMessage = async (url: string, problem: (host: string) => string) => {
    const message = await messageAfterTurn(SESSION, { LANGFUSE_BASE_URL: url });
    const advice = 'Nothing is exported. Run: cc-langfuse doctor';
    expect(message).toBe(`cc-langfuse: ${problem(new URL(url).host)}. ${advice}`);
  };

  test('a wrong URL is said once per session, until it is corrected', async () => {
    const { url } = workplace.server;
    await workplace.server.stop();
    await expectMessage(url, (host) => `${host} cannot be reached: ECONNREFUSED`);
    expect(await messageAfterTurn(SESSION, { LANGFUSE_BASE_URL: url })).toBeUndefined();
    expect(await messageAfterTurn(ANOTHER, { LANGFUSE_BASE_URL: url })).toContain('cannot be reached');
    const right = await LangfuseServer.start();
    expect(await messageAfterTurn(THIRD, { LANGFUSE_BASE_URL: right.url })).toBeUndefined();
    await right.stop();
  });

  test('a URL of something that is not Langfuse is said', async () => {
    await withTalker('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n', (url) =>
      expectMessage(
        url,
        (host) =>
          `sending to ${host} fails: the server has neither an OTLP endpoint nor an ingestion API (404), so it is not Langfuse; set LANGFUSE_BASE_URL to the address of your project's page in a browser`,
      ),
    );
  });

  test('a URL of something that does not speak HTTP is said', async () => {
    await withTalker('SSH-2.0-OpenSSH_9.6\r\n', (url) =>
      expectMessage(url, (host) => `${host} cannot be reached: HPE_INVALID_CONSTANT`),
    );
  });

  test('an outage of a server that has worked before is said only once it has lasted for a day', async () => {
    expect(await messageAfterTurn(SESSION)).toBeUndefined();
    workplace.server.misbehave = () => ({ disconnect: 'before taking' });
    expect(await messageAfterTurn(ANOTHER)).toBeUndefined();
    // Its worker may still write down that the server was down.
    await workplace.haveEnded();
    change({ since: Date.now() - 86_500_000 });
    // A busy machine may not see in 1.5 s that the connection breaks.
    const reason = /cannot be reached: (?:ECONNRESET|no answer within [\d.]+ s)\. Nothing is exported/;
    expect(await messageAfterTurn(THIRD)).toMatch(reason);
    workplace.repairServer();
    expect(await messageAfterTurn('44444444-4444-4444-8444-444444444444')).toBeUndefined();
  });
});
