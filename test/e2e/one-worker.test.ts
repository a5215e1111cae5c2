import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendLines, appendTurn, assistant, at, SESSION, turnLines, user } from '../support/lines.js';
import { type Environment, LAUNCHER, POLL, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { StartedNodes } from '../support/started-nodes.js';

let workplace: Workplace;
let nodes: StartedNodes;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, CLAUDE_CODE_ENTRYPOINT: 'cli' };
  nodes = new StartedNodes();
});

afterEach(async () => {
  await nodes.remove();
  await workplace.close();
});

const findAlive = () => nodes.findAlive();
const countStarted = (command: string) => nodes.commands.filter((each) => each === command).length;
const left = () => {
  const folder = join(workplace.stateFolder, 'cc-langfuse_left');
  // A worker that was killed while it wrote has left a part of another name.
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
  return names.map((name) => join(folder, name));
};
const locks = () => readdirSync(join(workplace.stateFolder, 'cc-langfuse_locks'));
const turns = () => workplace.server.roots.map(({ trace, name }) => `${trace.sessionId} ${name}`);
const sessionId = (n: number) => `${SESSION.slice(0, -2)}${String(n).padStart(2, '0')}`;
const HEADLESS = { CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' };

interface How {
  readonly session?: string;
  readonly env?: Environment;
  readonly more?: object;
  readonly onStart?: (launcher: ChildProcess) => void;
}

function launch(event: string, { session = SESSION, env, more, onStart = () => {} }: How = {}): Promise<void> {
  const payload = { session_id: session, transcript_path: workplace.transcriptOf(session), hook_event_name: event };
  return new Promise((resolve) => {
    const all = { PATH: process.env.PATH, ...workplace.env, CLAUDE_CODE_SESSION_ID: session, ...env };
    const launcher = spawn(LAUNCHER, [event, nodes.path], { env: all, detached: true });
    let output = '';
    launcher.stdout.on('data', (chunk: Buffer) => {
      output += chunk;
    });
    launcher.stdin.on('error', () => {});
    launcher.stdin.end(JSON.stringify({ ...payload, ...more }));
    launcher.on('close', (exitCode, signal) => {
      expect({ exitCode: signal === null ? exitCode : 0, output }).toEqual({ exitCode: 0, output: '' });
      resolve();
    });
    onStart(launcher);
  });
}

/** Starts a session, and waits until its run is recorded. */
async function start(session = SESSION, env: Environment = {}): Promise<void> {
  await launch('SessionStart', { session, env, more: { source: 'startup' } });
  await expect.poll(() => readState()[session]?.runs, POLL).toBeDefined();
}

const readState = () => {
  try {
    return workplace.state;
  } catch {
    return {};
  }
};

/** Ends the nth turn of a session. */
async function stop(n: number, how: How = {}): Promise<void> {
  appendTurn(workplace.transcriptOf(how.session ?? SESSION), n, { promptId: `p${n}` });
  const more = { prompt_id: `p${n}`, last_assistant_message: `answer ${n}`, background_tasks: [], ...how.more };
  await launch('Stop', { ...how, more });
}

const allTurns = (sessions: readonly string[], count: number) =>
  sessions.flatMap((session) => Array.from({ length: count }, (_, n) => `${session} Turn ${n + 1}`)).toSorted();

describe('while the server hangs', () => {
  test('quick turns of a session leave one worker, which sends all of them', async () => {
    await start();
    const hanging = workplace.server.hang();
    await stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    for (let n = 2; n <= 20; n += 1) await stop(n);
    await expect.poll(() => left().length, POLL).toBe(19);
    await expect.poll(findAlive, POLL).toHaveLength(1);
    expect(hanging.count).toBe(1);
    hanging.release();
    await expect.poll(() => turns().length, POLL).toBe(20);
    await expect.poll(findAlive, POLL).toEqual([]);
    expect(turns().toSorted()).toEqual(allTurns([SESSION], 20));
    expectEachSentOnce(workplace.server);
    expect([left(), locks()]).toEqual([[], []]);
  });

  test('many sessions leave a few workers, which send all of them', async () => {
    const sessions = Array.from({ length: 12 }, (_, n) => sessionId(n + 1));
    for (const session of sessions) await start(session);
    const hanging = workplace.server.hang();
    for (const session of sessions) await stop(1, { session });
    await expect.poll(() => left().length, POLL).toBe(8);
    await expect.poll(findAlive, POLL).toHaveLength(4);
    expect(hanging.count).toBe(4);
    hanging.release();
    await expect.poll(() => turns().toSorted(), POLL).toEqual(allTurns(sessions, 1));
    await expect.poll(findAlive, POLL).toEqual([]);
    expectEachSentOnce(workplace.server);
    expect([left(), locks()]).toEqual([[], []]);
  });

  test('what is left contains no word of the turn, and only the user can read it', async () => {
    await start();
    const hanging = workplace.server.hang();
    await stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    await stop(2, {
      more: { last_assistant_message: 'answer 2', background_tasks: [{ id: 'a1', status: 'running' }] },
    });
    await expect.poll(() => left().length, POLL).toBe(1);
    const [file = ''] = left();
    const text = readFileSync(file, 'utf8');
    expect(text).not.toMatch(/answer 2|question|sk-lf|Basic/);
    expect(JSON.parse(text)).toEqual({
      sessionId: SESSION,
      path: workplace.transcriptOf(SESSION),
      name: 'Stop',
      at: expect.any(Number),
      bytes: statSync(workplace.transcriptOf(SESSION)).size,
      promptId: 'p2',
      answer: { hash: expect.stringMatching(/^[0-9a-f]{64}$/), isAfterFeedback: false },
      running: ['a1'],
      identity: { destination: workplace.state[SESSION]?.destination ?? expect.any(String), given: {} },
    });
    expect([file, join(file, '..')].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o700]);
    hanging.release();
    await expect.poll(() => turns().length, POLL).toBe(2);
  });

  test('SessionEnd in front waits for the worker, and sends what others have left', async () => {
    await start();
    const hanging = workplace.server.hang();
    await stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    for (const n of [2, 3]) await stop(n);
    await expect.poll(() => left().length, POLL).toBe(2);
    let hasEnded = false;
    const ended = launch('SessionEnd', { env: HEADLESS }).then(() => {
      hasEnded = true;
    });
    await expect.poll(() => countStarted('hook'), POLL).toBe(1);
    await sleep(300);
    expect(hasEnded).toBe(false);
    hanging.release();
    await ended;
    expect(turns()).toEqual(allTurns([SESSION], 3));
    await expect.poll(findAlive, POLL).toEqual([]);
    expectEachSentOnce(workplace.server);
    expect(left()).toEqual([]);
  });

  test('a run in front that has given up waiting for a worker lets the next one give up early', async () => {
    await start();
    const hanging = workplace.server.hang();
    await stop(1, { env: { ...HEADLESS, CC_LANGFUSE_TIMEOUT: '3000' } });
    await expect.poll(() => hanging.count, POLL).toBe(1);
    await launch('SessionEnd', { env: { ...HEADLESS, CC_LANGFUSE_TIMEOUT: '3000' } });
    expect(readdirSync(join(workplace.stateFolder, 'cc-langfuse_outages'))).toHaveLength(1);
    const another = sessionId(2);
    appendTurn(workplace.transcriptOf(another), 1);
    await launch('SessionEnd', { session: another, env: { ...HEADLESS, CC_LANGFUSE_TIMEOUT: '600000' } });
    expect(workplace.server.requests).toEqual([]);
    hanging.release();
    await expect.poll(() => turns().length, POLL).toBeGreaterThan(0);
  });
});

describe('a turn that was left', () => {
  /** The tag of the user's of each turn, and whether its content was kept back. */
  const describeTurns = () =>
    Object.fromEntries(
      workplace.server.roots.map(({ name, trace, input }) => {
        const tags = (trace.tags as string[]).filter((tag) => tag !== 'claude-code');
        return [name, [...tags, ...(input === undefined ? ['metadata'] : [])].join(', ')];
      }),
    );

  test('is sent under the settings of its own run, not of the worker that sends it', async () => {
    const [first, second] = [{ LANGFUSE_TAGS: 'first' }, { LANGFUSE_TAGS: 'second', CC_LANGFUSE_CAPTURE: 'metadata' }];
    await start(SESSION, first);
    const hanging = workplace.server.hang();
    await stop(1, { env: first });
    await expect.poll(() => hanging.count, POLL).toBe(1);
    await launch('SessionStart', { env: second, more: { source: 'resume' } });
    await expect.poll(() => workplace.state[SESSION]?.runs, POLL).toHaveLength(2);
    for (const n of [2, 3]) await stop(n, { env: second });
    await expect.poll(() => left().length, POLL).toBe(2);
    hanging.release();
    await expect.poll(() => turns().length, POLL).toBe(3);
    await expect.poll(findAlive, POLL).toEqual([]);
    expect(describeTurns()).toEqual({ 'Turn 1': 'first', 'Turn 2': 'second, metadata', 'Turn 3': 'second, metadata' });
    expectEachSentOnce(workplace.server);
  });

  test('is not one of another run, which the state does not know yet: its worker waits', async () => {
    await start();
    const hanging = workplace.server.hang();
    await stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    await stop(2, { env: { LANGFUSE_TAGS: 'another', CC_LANGFUSE_CAPTURE: 'metadata' } });
    await expect.poll(() => countStarted('worker'), POLL).toBe(3);
    hanging.release();
    await expect.poll(() => turns().length, POLL).toBe(2);
    await expect.poll(findAlive, POLL).toEqual([]);
    expect(describeTurns()).toEqual({ 'Turn 1': '', 'Turn 2': 'another, metadata' });
    expectEachSentOnce(workplace.server);
  });

  test('is sent even if the other worker has read past where the transcript ended, but not as far as its answer', async () => {
    await start();
    const transcript = workplace.transcriptOf(SESSION);
    const [question, answer] = turnLines(1, { promptId: 'p1' }) as [object, object];
    const [nextQuestion, nextAnswer] = turnLines(2, { promptId: 'p2' }) as [object, object];
    appendLines(transcript, question);
    await launch('Stop', { more: { prompt_id: 'p1', last_assistant_message: 'answer 1', background_tasks: [] } });
    await expect.poll(() => countStarted('worker'), POLL).toBe(2);
    await launch('Stop', { more: { prompt_id: 'p2', last_assistant_message: 'answer 2', background_tasks: [] } });
    await expect.poll(() => left().length, POLL).toBe(1);
    const hanging = workplace.server.hang();
    // Claude Code writes both at once, some time after its hooks have started.
    appendLines(transcript, answer, nextQuestion);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    appendLines(transcript, nextAnswer);
    hanging.release();
    await expect.poll(findAlive, POLL).toEqual([]);
    expect(turns()).toEqual(allTurns([SESSION], 2));
    expectEachSentOnce(workplace.server);
    expect(left()).toEqual([]);
  });

  test('does not close a turn that has begun since', async () => {
    await start();
    const hanging = workplace.server.hang();
    await stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    await stop(2);
    await expect.poll(() => left().length, POLL).toBe(1);
    const begun = [
      user('question 3', { uuid: 'u3', promptId: 'p3', timestamp: at(30) }),
      assistant('m3', 'I will see', { timestamp: at(31) }),
    ];
    appendLines(workplace.transcriptOf(SESSION), ...begun);
    hanging.release();
    await expect.poll(() => turns().length, POLL).toBe(2);
    await expect.poll(findAlive, POLL).toEqual([]);
    expect(turns()).toEqual(allTurns([SESSION], 2));
    expectEachSentOnce(workplace.server);
  });

  test('is sent by the next run of any session if the worker was killed, and not to another server', async () => {
    await start();
    await start(sessionId(2));
    const hanging = workplace.server.hang();
    await stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    for (const n of [2, 3]) await stop(n);
    await expect.poll(() => left().length, POLL).toBe(2);
    await expect.poll(findAlive, POLL).toHaveLength(1);
    for (const pid of findAlive()) nodes.kill(pid);
    await expect.poll(findAlive, POLL).toEqual([]);
    const { length: before } = workplace.server.requests;
    hanging.release();
    await expect.poll(() => workplace.server.requests.length, POLL).toBeGreaterThanOrEqual(before);
    workplace.server.misbehave = () => undefined;
    const elsewhere = { LANGFUSE_PUBLIC_KEY: 'pk-lf-another' };
    await stop(1, { session: sessionId(3), env: { ...elsewhere, ...HEADLESS, CC_LANGFUSE_WAIT: '1' } });
    expect(left()).toHaveLength(2);
    await stop(1, { session: sessionId(2) });
    await expect.poll(left, POLL).toEqual([]);
    const own = turns().filter((turn) => !turn.startsWith(sessionId(3)));
    expect(own.toSorted()).toEqual([...allTurns([SESSION], 3), ...allTurns([sessionId(2)], 1)].toSorted());
  });

  test('is not lost to a file that is corrupt, which is removed', async () => {
    await start();
    const hanging = workplace.server.hang();
    await stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    for (const n of [2, 3]) await stop(n);
    await expect.poll(() => left().length, POLL).toBe(2);
    for (const file of left()) writeFileSync(file, readFileSync(file, 'utf8').slice(0, 40));
    hanging.release();
    await expect.poll(findAlive, POLL).toEqual([]);
    expect(left()).toEqual([]);
    await launch('SessionEnd', { env: HEADLESS });
    expect(turns().toSorted()).toEqual(allTurns([SESSION], 3));
    expectEachSentOnce(workplace.server);
  });
});

test('whenever launchers and workers are killed, the next event completes what they were to send', async () => {
  await start();
  workplace.server.misbehave = (_, number) => ({ delayMs: (number % 3) * 40 });
  const killed = { launchers: 0, workers: 0 };
  for (let n = 1; n <= 40; n += 1) {
    const before = countStarted('worker');
    await stop(n, {
      onStart: async (launcher) => {
        if (n % 4 !== 0) return;
        await sleep(n / 5);
        if (launcher.kill('SIGKILL')) killed.launchers += 1;
      },
    });
    if (n % 2 === 0) await sleep((n * 7) % 60);
    // The one that has just started, which may leave its turn, or any other, which may be at work.
    const alive = findAlive();
    const victim = n % 3 === 0 ? alive.at(-1) : n % 3 === 1 && countStarted('worker') > before ? alive[0] : undefined;
    if (victim !== undefined && nodes.kill(victim)) killed.workers += 1;
  }
  expect(killed.launchers).toBeGreaterThan(0);
  expect(killed.workers).toBeGreaterThan(5);
  await expect.poll(findAlive, POLL).toEqual([]);
  await launch('SessionEnd', { env: HEADLESS });
  expect(turns().toSorted()).toEqual(allTurns([SESSION], 40));
  const ids = workplace.server.observations.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(left()).toEqual([]);
}, 120_000);
