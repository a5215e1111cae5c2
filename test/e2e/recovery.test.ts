import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendLines, assistant, at, jsonLines, SESSION, toolResult, toolUse, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { changeState, sessionFile } from '../support/state-files.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const A = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
const B = 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb';
const pathOf = (session: string, project = '-work') =>
  join(workplace.home, '.claude', 'projects', project, `${session}.jsonl`);

/** Appends a turn of two lines to a session's transcript. */
function append(session: string, n: number, path = pathOf(session)): void {
  const lines = [
    user(`question ${n} of ${session}`, { uuid: `${session}-${n}`, promptId: `p${n}`, timestamp: at(n * 10) }),
    assistant(`${session}-m${n}`, `answer ${n}`, { timestamp: at(n * 10 + 5) }),
  ];
  appendLines(path, ...lines);
}

/** Changes a session as if its runs had been for another destination, which works. */
function sendElsewhere(session: string): void {
  const { facts = [], destination = '' } = workplace.state[session] ?? {};
  const adopt = { kind: 'adopt', at: Date.now(), wrong: destination, right: 'another' };
  changeState(workplace.stateFolder, session, { facts: [...facts, adopt] });
  const due = join(workplace.stateFolder, 'cc-langfuse_due');
  renameSync(join(due, `${destination}.${session}`), join(due, `another.${session}`));
  mkdirSync(join(workplace.stateFolder, 'cc-langfuse_servers'), { recursive: true });
  writeFileSync(join(workplace.stateFolder, 'cc-langfuse_servers', 'another.json'), '{"acknowledged":true}');
}

/** Adds a session that is known as another one is, with another path. */
function copySession(from: string, to: string, path: string): void {
  const folder = (session: string) => sessionFile(workplace.stateFolder, session, '');
  cpSync(folder(from), folder(to), { recursive: true });
  changeState(workplace.stateFolder, to, { id: to, path });
  const due = join(workplace.stateFolder, 'cc-langfuse_due');
  for (const name of readdirSync(due).filter((each) => each.endsWith(from)))
    writeFileSync(join(due, name.replace(from, to)), JSON.stringify({ sessionId: to, path }));
}

function letIdle(path: string): void {
  const before = new Date(Date.now() - 11 * 60_000);
  utimesSync(path, before, before);
}

const hook = (session: string, event = 'Stop', path = pathOf(session)) =>
  workplace.hook({ session_id: session, transcript_path: path, hook_event_name: event });
const start = (session: string, source: 'startup' | 'resume' = 'startup') =>
  workplace.hook({
    session_id: session,
    transcript_path: pathOf(session),
    hook_event_name: 'SessionStart',
    source,
  });
const roots = () =>
  workplace.server.observations
    .filter(({ parentId }) => parentId === undefined)
    .map(({ trace, name }) => `${trace.sessionId} ${name}`);

/** Runs a session's first Stop while the server refuses everything. */
async function failOn(session: string): Promise<void> {
  append(session, 1);
  workplace.server.misbehave = () => ({ status: 401 });
  await hook(session);
  workplace.server.misbehave = () => undefined;
}

describe('a session whose last run failed', () => {
  test('is sent by the next hook of any other session, even of another project', async () => {
    await failOn(A);
    append(B, 1, pathOf(B, '-elsewhere'));
    await hook(B, 'Stop', pathOf(B, '-elsewhere'));
    expect(roots()).toEqual([`${B} Turn 1`, `${A} Turn 1`]);
    expect(workplace.state[A]).not.toHaveProperty('pending');
    await hook(B, 'SessionEnd', pathOf(B, '-elsewhere'));
    expectEachSentOnce(workplace.server);
  });

  test('and fails again does not block the session of the hook', async () => {
    append(A, 1);
    workplace.server.misbehave = (_, __, spans) => (JSON.stringify(spans).includes(A) ? { status: 401 } : undefined);
    await hook(A);
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`]);
    expect(workplace.state[A]).toMatchObject({ pending: { attempts: 2 } });
  });

  test('is not tried again by a hook whose own session fails', async () => {
    append(A, 1);
    append(B, 1);
    workplace.server.misbehave = () => ({ status: 401 });
    await hook(A);
    await hook(B);
    expect(workplace.state[A]).toMatchObject({ pending: { attempts: 1 } });
  });

  test('to another destination is not sent', async () => {
    await failOn(A);
    sendElsewhere(A);
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`]);
  });
});

describe('another session whose last run failed', () => {
  test('is skipped while a process is working on it', async () => {
    await failOn(A);
    const lock = sessionFile(workplace.stateFolder, A, `${workplace.state[A]?.destination}.lock`);
    writeFileSync(lock, `${process.pid} ${hostname()} x`);
    append(B, 1);
    // If the hook waited for the lock until its deadline, the test would time out.
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '600000' };
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`]);
    expect(workplace.log.map(({ msg }) => msg)).toEqual([
      'the server refuses the keys (401); make new ones for "cc-langfuse install", or for the plugin',
    ]);
  });

  test('is sent with the settings of its own run, not with those of the run that sends it', async () => {
    const own = { CC_LANGFUSE_CAPTURE: 'metadata', LANGFUSE_TAGS: 'of-a', LANGFUSE_TRACING_ENVIRONMENT: 'prod' };
    const { env } = workplace;
    workplace.env = { ...env, ...own };
    await failOn(A);
    workplace.env = { ...env, LANGFUSE_TAGS: 'of-b', LANGFUSE_USER_ID: 'b' };
    append(B, 1);
    await hook(B);
    const [b, a] = workplace.server.observations.filter(({ parentId }) => parentId === undefined);
    expect(b).toMatchObject({
      input: [{ content: `question 1 of ${B}` }],
      trace: { tags: ['of-b', 'claude-code'], userId: 'b' },
    });
    expect(a).toMatchObject({
      input: undefined,
      trace: { tags: ['of-a', 'claude-code'], environment: 'prod', userId: undefined },
    });
  });

  test('does not keep others from being tried if it fails each time', async () => {
    const sessions = Array.from({ length: 13 }, (_, n) => `cccccccc-cccc-4ccc-8ccc-${String(n).padStart(12, '0')}`);
    const isOf = (spans: unknown, some: readonly string[]) => some.some((id) => JSON.stringify(spans).includes(id));
    workplace.server.misbehave = (_, __, spans) => (isOf(spans, sessions) ? { status: 418 } : undefined);
    for (const session of sessions) {
      append(session, 1);
      await hook(session);
    }
    append(B, 1);
    // Since such an answer may be about the server itself, each run tries one of them.
    for (let times = 0; times < 13; times += 1) await hook(B);
    const attemptsOf = (id: string) => (workplace.state[id]?.pending as { attempts?: number } | undefined)?.attempts;
    expect(sessions.filter((id) => (attemptsOf(id) ?? 0) > 1)).toEqual(sessions);
  });
});

/** Sessions that wait since an outage, as if the first hook of each had failed like that of `A`. */
async function failOnMany(count: number): Promise<string[]> {
  await failOn(A);
  const sessions = Array.from({ length: count }, (_, n) => `cccccccc-cccc-4ccc-8ccc-${String(n).padStart(12, '0')}`);
  for (const session of sessions) {
    append(session, 1);
    copySession(A, session, pathOf(session));
  }
  return [A, ...sessions];
}

describe('after an outage', () => {
  test('one run sends all sessions that wait, if it has the time', async () => {
    const sessions = await failOnMany(200);
    append(B, 1);
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '600000' };
    await hook(B);
    expect(new Set(roots())).toEqual(new Set([B, ...sessions].map((session) => `${session} Turn 1`)));
    expectEachSentOnce(workplace.server);
  });

  test('a run that finds the server at fault again stops at once', async () => {
    await failOnMany(20);
    append(B, 1);
    const before = workplace.server.requests.length;
    workplace.server.misbehave = (_, number) => (number > before ? { status: 401 } : undefined);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`]);
    // The last one has no observations, and asks for the server's words.
    expect(workplace.server.requests.slice(before).map(({ spans }) => spans > 0)).toEqual([true, true, false]);
  });

  test('a session in which a line has no end does not keep the others from being sent', async () => {
    await failOnMany(2);
    rmSync(pathOf(A));
    writeFileSync(pathOf(A), jsonLines([{ type: 'mode', mode: 'default', sessionId: A }]));
    truncateSync(pathOf(A), 300_000_000);
    await hook(B, 'SessionEnd');
    expect(roots()).toEqual([0, 1].map((n) => `cccccccc-cccc-4ccc-8ccc-00000000000${n} Turn 1`));
  });

  test('a session that is refused each time does not keep one that was killed from being sent', async () => {
    append(A, 1);
    workplace.server.misbehave = (_, __, spans) => (JSON.stringify(spans).includes(A) ? { status: 418 } : undefined);
    await hook(A);
    const killed = 'dddddddd-dddd-4ddd-8ddd-dddddddddddd';
    await start(killed);
    append(killed, 1);
    letIdle(pathOf(killed));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`, `${killed} Turn 1`]);
  });
});

describe('a hook sends another session whose last run failed', () => {
  test('even if its transcript has been moved to another folder', async () => {
    await failOn(A);
    mkdirSync(dirname(pathOf(A, '-worktree')));
    renameSync(pathOf(A), pathOf(A, '-worktree'));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`, `${A} Turn 1`]);
  });

  test("even if the hook's own session has no transcript", async () => {
    await failOn(A);
    await hook(B, 'SessionEnd');
    expect(roots()).toEqual([`${A} Turn 1`]);
  });

  test("even if an observation of the hook's own session is too large for the server", async () => {
    await failOn(A);
    append(B, 1);
    workplace.server.misbehave = (_, __, spans) => (JSON.stringify(spans).includes(B) ? { status: 413 } : undefined);
    await hook(B);
    expect(roots()).toEqual([`${A} Turn 1`]);
  });

  test('only up to its end if it was continued with tracing off', async () => {
    append(A, 1);
    workplace.server.misbehave = () => ({ status: 401 });
    await hook(A, 'SessionEnd');
    workplace.server.misbehave = () => undefined;
    append(A, 2);
    letIdle(pathOf(A));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`, `${A} Turn 1`]);
    await hook(B, 'SessionEnd');
    expect(roots()).toHaveLength(2);
  });

  test('even if the path of a third one cannot be read', async () => {
    await failOn(A);
    copySession(A, SESSION, `/${'x'.repeat(5_000)}/y.jsonl`);
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`, `${A} Turn 1`]);
  });
});

describe('a session that got no Stop', () => {
  test('because its hook was killed is sent by a hook in any other folder', async () => {
    await start(A);
    append(A, 1);
    letIdle(pathOf(A));
    append(B, 1, pathOf(B, '-elsewhere'));
    await hook(B, 'Stop', pathOf(B, '-elsewhere'));
    expect(roots()).toEqual([`${B} Turn 1`, `${A} Turn 1`]);
  });

  test('and was started again for another destination is not sent to the first', async () => {
    append(A, 1);
    await hook(A);
    const { env } = workplace;
    workplace.env = { ...env, LANGFUSE_BASE_URL: workplace.server.url.replace('127.0.0.1', 'localhost') };
    await start(A, 'resume');
    append(A, 2);
    letIdle(pathOf(A));
    workplace.env = env;
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${A} Turn 1`, `${B} Turn 1`]);
  });

  test('for its last turn, which had begun when the one before was exported, is sent once it is idle', async () => {
    append(A, 1);
    append(A, 2);
    await workplace.hook({
      session_id: A,
      transcript_path: pathOf(A),
      hook_event_name: 'Stop',
      prompt_id: 'p1',
      last_assistant_message: 'answer 1',
    });
    expect(roots()).toEqual([`${A} Turn 1`]);
    letIdle(pathOf(A));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${A} Turn 1`, `${B} Turn 1`, `${A} Turn 2`]);
  });

  test('after its background agent continued is sent with what the agent did', async () => {
    const folder = join(dirname(pathOf(A)), A, 'subagents');
    const agent = join(folder, 'agent-x1.jsonl');
    mkdirSync(folder, { recursive: true });
    const lines = [
      user('go', { uuid: `${A}-1`, timestamp: at(10) }),
      assistant(`${A}-m1`, [toolUse('t1', 'Agent', { subagent_type: 'explorer' })], { timestamp: at(11) }),
      user([toolResult('t1', 'Async agent launched')], {
        timestamp: at(12),
        toolUseResult: { isAsync: true, agentId: 'x1' },
      }),
      assistant(`${A}-m2`, 'started', { timestamp: at(13) }),
    ];
    writeFileSync(pathOf(A), jsonLines(lines));
    const said = (n: number) =>
      `${JSON.stringify(assistant(`x-m${n}`, 'looking', { isSidechain: true, agentId: 'x1', timestamp: at(12 + n) }))}\n`;
    writeFileSync(
      agent,
      `${JSON.stringify(user('look', { uuid: 'x-u', isSidechain: true, agentId: 'x1', timestamp: at(12) }))}\n${said(1)}`,
    );
    writeFileSync(agent.replace('.jsonl', '.meta.json'), JSON.stringify({ agentType: 'explorer', toolUseId: 't1' }));
    const running = [{ id: 'x1', status: 'running' }];
    const stop = { session_id: A, transcript_path: pathOf(A), hook_event_name: 'Stop', background_tasks: running };
    await workplace.hook(stop);
    appendFileSync(agent, said(2));
    letIdle(pathOf(A));
    letIdle(agent);
    const { facts = [] } = workplace.state[A] ?? {};
    const longAgo = facts.map((fact) => ({ ...fact, at: fact.at - 11 * 60_000 }));
    changeState(workplace.stateFolder, A, { facts: longAgo });
    append(B, 1);
    await hook(B);
    const ofAgent = workplace.server.observations.filter(({ metadata }) =>
      String(metadata.message_id).startsWith('x-m'),
    );
    expect(ofAgent.map(({ metadata }) => metadata.message_id)).toEqual(['x-m1', 'x-m2']);
    const { length } = workplace.server.requests;
    await hook(B, 'SessionEnd');
    expect(workplace.server.requests).toHaveLength(length);
  });

  test('is sent once its transcript is idle, by a hook in the same folder', async () => {
    await start(A);
    append(A, 1);
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`]);
    letIdle(pathOf(A));
    await hook(B, 'SessionEnd');
    expect(roots()).toEqual([`${B} Turn 1`, `${A} Turn 1`]);
    const { length } = workplace.server.requests;
    await hook(B, 'SessionEnd');
    expect(workplace.server.requests).toHaveLength(length);
  });

  test('and whose last line has no newline is read only once', async () => {
    await start(A);
    append(A, 1);
    appendFileSync(pathOf(A), '{"type":"user","mess');
    letIdle(pathOf(A));
    append(B, 1);
    await hook(B);
    expect(workplace.state[A]).toMatchObject({ turnCount: 1, bytes: statSync(pathOf(A)).size });
  });

  test('for its last turn only is sent without the turns before', async () => {
    append(A, 1);
    await hook(A);
    append(A, 2);
    letIdle(pathOf(A));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${A} Turn 1`, `${B} Turn 1`, `${A} Turn 2`]);
    expectEachSentOnce(workplace.server);
  });

  test('because it was continued with tracing off is never sent, but what follows with tracing on is', async () => {
    append(A, 1);
    await hook(A);
    await hook(A, 'SessionEnd');
    append(A, 2);
    letIdle(pathOf(A));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${A} Turn 1`, `${B} Turn 1`]);
    await start(A, 'resume');
    letIdle(pathOf(A));
    await hook(B);
    expect(roots()).toEqual([`${A} Turn 1`, `${B} Turn 1`]);
    append(A, 3);
    await hook(A);
    expect(roots()).toEqual([`${A} Turn 1`, `${B} Turn 1`, `${A} Turn 3`]);
  });

  test('and whose transcript has been gone for a week is removed from the state, within a day', async () => {
    append(A, 1);
    append(B, 1);
    await hook(A);
    rmSync(pathOf(A));
    await hook(B);
    expect(Object.keys(workplace.state)).toContain(A);
    const weekAgo = new Date(Date.now() - 8 * 86_400_000);
    utimesSync(sessionFile(workplace.stateFolder, A, ''), weekAgo, weekAgo);
    append(B, 2);
    await hook(B);
    expect(Object.keys(workplace.state)).toContain(A);
    // It is looked for once a day.
    rmSync(join(workplace.stateFolder, 'cc-langfuse_sessions', '.looked'));
    append(B, 3);
    await hook(B);
    expect(Object.keys(workplace.state)).toEqual([B]);
  });

  test('and is not in the state is not sent', async () => {
    append(A, 1);
    letIdle(pathOf(A));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`]);
  });
});
