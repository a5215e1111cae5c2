import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { kill } from '../support/home-processes.js';
import { allTurns, HEADLESS, LaunchedHooks, sessionId, stopOf } from '../support/launched-hooks.js';
import { appendLines, appendTurn, assistant, at, SESSION, user } from '../support/lines.js';
import { POLL, run } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { sessionFile } from '../support/state-files.js';

let hooks: LaunchedHooks;

beforeEach(async () => {
  hooks = await LaunchedHooks.open();
});

afterEach(() => hooks.close());

describe('while the server hangs', () => {
  test('quick turns of a session leave one worker, which sends all of them', async () => {
    await hooks.start();
    const hanging = hooks.workplace.server.hang();
    await hooks.stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    for (let n = 2; n <= 20; n += 1) await hooks.stop(n);
    await expect.poll(() => hooks.waiting().length, POLL).toBe(20);
    await expect.poll(hooks.findAlive, POLL).toHaveLength(1);
    expect(hanging.count).toBe(1);
    hanging.release();
    await expect.poll(() => hooks.turns().length, POLL).toBe(20);
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 20));
    expectEachSentOnce(hooks.workplace.server);
    expect([hooks.waiting(), hooks.locks()]).toEqual([[], []]);
  });

  test('many sessions leave a few workers, which send all of them', async () => {
    const sessions = Array.from({ length: 12 }, (_, n) => sessionId(n + 1));
    for (const session of sessions) await hooks.start(session);
    const hanging = hooks.workplace.server.hang();
    for (const session of sessions) await hooks.stop(1, { session });
    await expect.poll(() => hooks.waiting().length, POLL).toBe(12);
    await expect.poll(hooks.findAlive, POLL).toHaveLength(4);
    await expect.poll(() => hanging.count, POLL).toBe(4);
    hanging.release();
    await expect.poll(() => hooks.turns(), POLL).toEqual(allTurns(sessions, 1));
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expectEachSentOnce(hooks.workplace.server);
    expect([hooks.waiting(), hooks.locks()]).toEqual([[], []]);
  });

  test('what is left contains no word of the turn, and only the user can read it', async () => {
    await hooks.start();
    const hanging = hooks.workplace.server.hang();
    await hooks.stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    await hooks.stop(2, {
      more: { last_assistant_message: 'answer 2', background_tasks: [{ id: 'a1', status: 'running' }] },
    });
    await expect.poll(() => hooks.waiting().length, POLL).toBe(2);
    const path = sessionFile(hooks.workplace.stateFolder, SESSION);
    const written = readFileSync(path, 'utf8');
    expect(written).not.toMatch(/answer 2|question|sk-lf|Basic/);
    const destination = expect.stringMatching(/^[0-9a-f]{16}$/);
    expect(JSON.parse(written).facts.at(-1)).toEqual({
      kind: 'stop',
      at: expect.any(Number),
      run: { destination, given: {} },
      bytes: statSync(hooks.workplace.transcriptOf(SESSION)).size,
      promptId: 'p2',
      answer: expect.stringMatching(/^[0-9a-f]{64}$/),
      isAfterFeedback: false,
      running: ['a1'],
    });
    expect([path, join(path, '..')].map((each) => statSync(each).mode & 0o777)).toEqual([0o600, 0o700]);
    hanging.release();
    await expect.poll(() => hooks.turns().length, POLL).toBe(2);
  });

  test('SessionEnd in front waits for the worker, and sends what others have left', async () => {
    await hooks.start();
    const hanging = hooks.workplace.server.hang();
    await hooks.stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    for (const n of [2, 3]) await hooks.stop(n);
    await expect.poll(() => hooks.waiting().length, POLL).toBe(3);
    let hasEnded = false;
    const ended = hooks.launch('SessionEnd', { env: HEADLESS }).then(() => {
      hasEnded = true;
    });
    await expect.poll(() => hooks.countStarted('hook'), POLL).toBe(1);
    await sleep(300);
    expect(hasEnded).toBe(false);
    hanging.release();
    await ended;
    expect(hooks.turns()).toEqual(allTurns([SESSION], 3));
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expectEachSentOnce(hooks.workplace.server);
    expect(hooks.waiting()).toEqual([]);
  });

  test('a run in front that has given up waiting for a worker lets the next one give up early', async () => {
    await hooks.start();
    const hanging = hooks.workplace.server.hang();
    await hooks.stop(1, { env: { ...HEADLESS, CC_LANGFUSE_TIMEOUT: '3000' } });
    await expect.poll(() => hanging.count, POLL).toBe(1);
    await hooks.launch('SessionEnd', { env: { ...HEADLESS, CC_LANGFUSE_TIMEOUT: '3000' } });
    expect(
      readdirSync(join(hooks.workplace.stateFolder, 'cc-langfuse_servers')).filter((name) => name.endsWith('.json')),
    ).toHaveLength(1);
    const another = sessionId(2);
    appendTurn(hooks.workplace.transcriptOf(another), 1);
    await hooks.launch('SessionEnd', { session: another, env: { ...HEADLESS, CC_LANGFUSE_TIMEOUT: '600000' } });
    expect(hooks.workplace.server.requests).toEqual([]);
    hanging.release();
    await expect.poll(() => hooks.turns().length, POLL).toBeGreaterThan(0);
  });
});

test('a worker that was suspended until another one took over sends nothing more', async () => {
  const { workplace } = hooks;
  await hooks.start();
  const path = workplace.transcriptOf(SESSION);
  appendLines(path, user('question 1', { uuid: 'u1', promptId: 'p1', timestamp: at(10) }));
  const payload = { session_id: SESSION, transcript_path: path, hook_event_name: 'Stop', ...stopOf(1) };
  let suspended: ChildProcess | undefined;
  const worker = run(['worker'], workplace.env, JSON.stringify(payload), {
    onStart: (child) => {
      suspended = child;
    },
  });
  // It waits for its answer.
  await expect.poll(hooks.locks, POLL).toHaveLength(2);
  suspended?.kill('SIGSTOP');
  workplace.letIdle(workplace.stateFolder);
  appendLines(path, assistant('m1', 'answer 1', { timestamp: at(15) }));
  await run(['hook'], { ...workplace.env, ...HEADLESS }, JSON.stringify(payload));
  expect(hooks.turns()).toEqual(allTurns([SESSION], 1));
  suspended?.kill('SIGCONT');
  await worker;
  expectEachSentOnce(workplace.server);
});

test('whenever launchers and workers are killed, the next event completes what they were to send', async () => {
  await hooks.start();
  hooks.workplace.server.misbehave = (_, number) => ({ delayMs: (number % 3) * 40 });
  const killed = { launchers: 0, workers: 0 };
  for (let n = 1; n <= 40; n += 1) {
    const before = hooks.countStarted('worker');
    await hooks.stop(n, {
      onStart: async (launcher) => {
        if (n % 4 !== 0) return;
        // On a busy machine, each later moment may come when the launcher has ended.
        if (n > 4) await sleep(n / 5);
        if (launcher.kill('SIGKILL')) killed.launchers += 1;
      },
    });
    if (n % 2 === 0) await sleep((n * 7) % 60);
    // The one that has just started, which may leave its turn, or any other, which may be at work.
    const alive = hooks.nodes.findAlive();
    const victim =
      n % 3 === 0 ? alive.at(-1) : n % 3 === 1 && hooks.countStarted('worker') > before ? alive[0] : undefined;
    if (victim !== undefined && kill(victim)) killed.workers += 1;
  }
  expect(killed.launchers).toBeGreaterThan(0);
  expect(killed.workers).toBeGreaterThan(5);
  await expect.poll(hooks.findAlive, POLL).toEqual([]);
  await hooks.launch('SessionEnd', { env: HEADLESS });
  expect(hooks.turns()).toEqual(allTurns([SESSION], 40));
  const ids = hooks.workplace.server.observations.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(hooks.waiting()).toEqual([]);
});
