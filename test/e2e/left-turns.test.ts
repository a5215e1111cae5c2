import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Places } from '../../src/transcript/file/place.js';
import { kill } from '../support/home-processes.js';
import type { Hanging } from '../support/langfuse-server.js';
import { allTurns, HEADLESS, LaunchedHooks, sessionId, stopOf } from '../support/launched-hooks.js';
import {
  appendLines,
  appendTurn,
  assistant,
  at,
  SESSION,
  text,
  toolResult,
  toolUse,
  turnLines,
  user,
} from '../support/lines.js';
import { POLL } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { sessionFile } from '../support/state-files.js';

let hooks: LaunchedHooks;

beforeEach(async () => {
  hooks = await LaunchedHooks.open();
});

afterEach(() => hooks.close());

const chain = (uuid: string, parentUuid: string, second: number) => ({ uuid, parentUuid, timestamp: at(second) });

/** Starts a session whose first turn is being sent to a server that hangs, so that further events are left to its worker. */
async function occupyWorker(): Promise<Hanging> {
  await hooks.start();
  const hanging = hooks.workplace.server.hang();
  await hooks.stop(1);
  await expect.poll(() => hanging.count, POLL).toBe(1);
  return hanging;
}

/** Waits until so many Stops have been written down whose turns have not been sent. */
const expectWaiting = (count: number) => expect.poll(() => hooks.waiting().length, POLL).toBe(count);

/** Sets the time of a session's last Stop to now, so that an export waits for the lines of its turn. */
function renewLastStop(session = SESSION): void {
  const path = sessionFile(hooks.workplace.stateFolder, session);
  const known = JSON.parse(readFileSync(path, 'utf8'));
  const facts = known.facts.with(-1, { ...known.facts.at(-1), at: Date.now() });
  writeFileSync(path, JSON.stringify({ ...known, facts }));
}

/** Waits for what must not happen. */
async function waitBriefly(condition: () => boolean): Promise<void> {
  for (const until = Date.now() + 300; !condition() && Date.now() < until; ) await sleep(1);
}

describe('a turn that was left', () => {
  /** The tag of the user's of each turn, and whether its content was kept back. */
  const describeTurns = () =>
    Object.fromEntries(
      hooks.workplace.server.roots.map(({ name, trace, input }) => {
        const tags = (trace.tags as string[]).filter((tag) => tag !== 'claude-code');
        return [name, [...tags, ...(input === undefined ? ['metadata'] : [])].join(', ')];
      }),
    );

  test('is sent under the settings of its own run, not of the worker that sends it', async () => {
    const [first, second] = [{ LANGFUSE_TAGS: 'first' }, { LANGFUSE_TAGS: 'second', CC_LANGFUSE_CAPTURE: 'metadata' }];
    await hooks.start(SESSION, first);
    const hanging = hooks.workplace.server.hang();
    await hooks.stop(1, { env: first });
    await expect.poll(() => hanging.count, POLL).toBe(1);
    await hooks.launch('SessionStart', { env: second, more: { source: 'resume' } });
    await expect.poll(() => hooks.workplace.state[SESSION]?.runs, POLL).toHaveLength(2);
    for (const n of [2, 3]) await hooks.stop(n, { env: second });
    await expectWaiting(3);
    hanging.release();
    await expect.poll(() => hooks.turns().length, POLL).toBe(3);
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(describeTurns()).toEqual({ 'Turn 1': 'first', 'Turn 2': 'second, metadata', 'Turn 3': 'second, metadata' });
    expectEachSentOnce(hooks.workplace.server);
  });

  test('is not one of another run, which the state does not know yet: its worker waits', async () => {
    const hanging = await occupyWorker();
    await hooks.stop(2, { env: { LANGFUSE_TAGS: 'another', CC_LANGFUSE_CAPTURE: 'metadata' } });
    await expect.poll(() => hooks.countStarted('worker'), POLL).toBe(3);
    hanging.release();
    await expect.poll(() => hooks.turns().length, POLL).toBe(2);
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(describeTurns()).toEqual({ 'Turn 1': '', 'Turn 2': 'another, metadata' });
    expectEachSentOnce(hooks.workplace.server);
  });

  test('is sent even if the other worker has read past where the transcript ended, but not as far as its answer', async () => {
    await hooks.start();
    const transcript = hooks.workplace.transcriptOf(SESSION);
    const [question, answer] = turnLines(1, { promptId: 'p1' }) as [object, object];
    const [nextQuestion, nextAnswer] = turnLines(2, { promptId: 'p2' }) as [object, object];
    appendLines(transcript, question);
    await hooks.launch('Stop', { more: stopOf(1) });
    // It is at work, and waits for its answer.
    await expect.poll(hooks.locks, POLL).toContainEqual(expect.stringMatching(/^[0-9a-f]{16}\.lock$/));
    await hooks.launch('Stop', { more: stopOf(2) });
    await expectWaiting(2);
    const hanging = hooks.workplace.server.hang();
    // Claude Code writes both at once, some time after its hooks have started.
    appendLines(transcript, answer, nextQuestion);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    appendLines(transcript, nextAnswer);
    hanging.release();
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 2));
    expectEachSentOnce(hooks.workplace.server);
    expect(hooks.waiting()).toEqual([]);
  });

  test('does not close a turn that has begun since', async () => {
    const hanging = await occupyWorker();
    await hooks.stop(2);
    await expectWaiting(2);
    const begun = [
      user('question 3', { uuid: 'u3', promptId: 'p3', timestamp: at(30) }),
      assistant('m3', 'I will see', { timestamp: at(31) }),
    ];
    appendLines(hooks.workplace.transcriptOf(SESSION), ...begun);
    hanging.release();
    await expect.poll(() => hooks.turns().length, POLL).toBe(2);
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 2));
    expectEachSentOnce(hooks.workplace.server);
  });

  test('is sent by the next run of any session if the worker was killed, and not to another server', async () => {
    await hooks.start();
    await hooks.start(sessionId(2));
    const hanging = hooks.workplace.server.hang();
    await hooks.stop(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    for (const n of [2, 3]) await hooks.stop(n);
    await expectWaiting(3);
    await expect.poll(hooks.findAlive, POLL).toHaveLength(1);
    for (const pid of hooks.findAlive()) kill(pid);
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    const { length: before } = hooks.workplace.server.requests;
    hanging.release();
    await expect.poll(() => hooks.workplace.server.requests.length, POLL).toBeGreaterThanOrEqual(before);
    hooks.workplace.server.misbehave = () => undefined;
    const elsewhere = { LANGFUSE_PUBLIC_KEY: 'pk-lf-another' };
    await hooks.stop(1, { session: sessionId(3), env: { ...elsewhere, ...HEADLESS, CC_LANGFUSE_WAIT: '1' } });
    expect(hooks.waiting().filter((session) => session === SESSION)).toHaveLength(3);
    await hooks.stop(1, { session: sessionId(2) });
    await expect.poll(hooks.waiting, POLL).toEqual([]);
    const own = hooks.turns().filter((turn) => !turn.startsWith(sessionId(3)));
    expect(own.toSorted()).toEqual([...allTurns([SESSION], 3), ...allTurns([sessionId(2)], 1)].toSorted());
  });

  // Claude Code 2.1.50 to at least 2.1.90: fixtures/recorded/v2.1.90-simple/hooks.log.
  test('is sent if Claude Code names no prompts', async () => {
    await hooks.start();
    const hanging = hooks.workplace.server.hang();
    const path = hooks.workplace.transcriptOf(SESSION);
    const end = async (n: number) => {
      appendTurn(path, n);
      await hooks.launch('Stop', { more: { last_assistant_message: `answer ${n}` } });
    };
    await end(1);
    await expect.poll(() => hanging.count, POLL).toBe(1);
    await end(2);
    await expectWaiting(2);
    hanging.release();
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.waiting()).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 2));
    expectEachSentOnce(hooks.workplace.server);
  });

  test('is sent if its answer is that of the turn before, which was left, too', async () => {
    const path = hooks.workplace.transcriptOf(SESSION);
    const hanging = await occupyWorker();
    const error = 'API Error: 401 invalid x-api-key';
    const lines = (n: number) => {
      const [question = {}] = turnLines(n, { promptId: `p${n}` });
      const more = { uuid: `a${n}`, parentUuid: `u${n}`, timestamp: at(n * 10 + 5), isApiErrorMessage: true };
      return [question, assistant(`e${n}`, [text(error)], more)];
    };
    appendLines(path, ...lines(2));
    await hooks.launch('StopFailure', { more: stopOf(2, { last_assistant_message: error }) });
    await expectWaiting(2);
    await hooks.launch('StopFailure', { more: stopOf(3, { last_assistant_message: error }) });
    await expectWaiting(3);
    renewLastStop();
    hanging.release();
    await waitBriefly(() => hooks.waiting().length < 3);
    // Claude Code writes the lines of the last turn some time after its hooks have started.
    appendLines(path, ...lines(3));
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.waiting()).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 3));
    expectEachSentOnce(hooks.workplace.server);
  });

  // Claude Code before 2.1.50, and any version if the last block is no text.
  test('without an answer in its event, does not close a turn that has begun since', async () => {
    const path = hooks.workplace.transcriptOf(SESSION);
    const hanging = await occupyWorker();
    await hooks.stop(2, { more: { last_assistant_message: undefined } });
    await expectWaiting(2);
    appendLines(
      path,
      user('question 3', { uuid: 'u3', promptId: 'p3', timestamp: at(30) }),
      assistant('m3', [text('I will see')], { timestamp: at(31) }),
    );
    hanging.release();
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 2));
    appendLines(
      path,
      assistant('m3', [toolUse('t3')], { timestamp: at(32) }),
      user([toolResult('t3')], { promptId: 'p3', timestamp: at(33) }),
      assistant('m4', 'answer 3', { timestamp: at(35) }),
    );
    await hooks.launch('Stop', { more: stopOf(3) });
    await expect.poll(() => hooks.turns().length, POLL).toBe(3);
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expectEachSentOnce(hooks.workplace.server);
  });

  test('is sent if its transcript appears a moment after its event', async () => {
    const others = [1, 2, 3, 4].map((n) => sessionId(n + 1));
    for (const session of [SESSION, ...others]) await hooks.start(session);
    const hanging = hooks.workplace.server.hang();
    for (const session of others) await hooks.stop(1, { session });
    await expect.poll(() => hanging.count, POLL).toBe(4);
    await hooks.launch('Stop', { more: stopOf(1) });
    await expectWaiting(5);
    renewLastStop();
    hanging.release();
    await sleep(100);
    appendTurn(hooks.workplace.transcriptOf(SESSION), 1, { promptId: 'p1' });
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.waiting()).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION, ...others], 1));
  });

  test('is sent although the follower of its session is at work when it is tried', async () => {
    const others = [1, 2, 3, 4].map((n) => sessionId(n + 1));
    const live = { CC_LANGFUSE_LIVE: 'true' };
    for (const session of [SESSION, ...others]) await hooks.start(session, session === SESSION ? live : {});
    const path = hooks.workplace.transcriptOf(SESSION);
    const hanging = hooks.workplace.server.hang();
    for (const session of others) await hooks.stop(1, { session });
    await expect.poll(() => hanging.count, POLL).toBe(4);
    const hangingFollower = hooks.workplace.server.hang();
    await hooks.launch('UserPromptSubmit', { env: live, more: { prompt: 'question' } });
    appendLines(
      path,
      user('question 1', { uuid: 'u1', promptId: 'p1', timestamp: at(10) }),
      assistant('m1', [toolUse('t1')], { timestamp: at(11) }),
      user([toolResult('t1')], { promptId: 'p1', timestamp: at(12) }),
      assistant('m2', 'answer 1', { timestamp: at(13) }),
    );
    await hooks.launch('Stop', { env: live, more: stopOf(1) });
    await expectWaiting(5);
    await expect.poll(() => hangingFollower.count, POLL).toBe(1);
    hooks.workplace.server.misbehave = () => undefined;
    hanging.release();
    // The worker that takes the event leaves it to the follower.
    await expect.poll(() => hooks.turns().length, POLL).toBe(4);
    await waitBriefly(() => hooks.findAlive().length === 1);
    hangingFollower.release();
    // The follower goes on.
    await expect.poll(() => hooks.findAlive().length, POLL).toBe(1);
    await expect.poll(hooks.waiting, POLL).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION, ...others], 1));
  });

  // What /clear does that was queued during the turn: docs/claude-code.md.
  test('is sent with its answer if the session has ended before that was written', async () => {
    const path = hooks.workplace.transcriptOf(SESSION);
    const hanging = await occupyWorker();
    appendLines(
      path,
      user('question 2', { promptId: 'p2', ...chain('u2', 'a1', 20) }),
      assistant('m2', [toolUse('t2')], chain('a2', 'u2', 21)),
      user([toolResult('t2')], { promptId: 'p2', ...chain('r2', 'a2', 22) }),
    );
    await hooks.launch('Stop', { more: stopOf(2) });
    await expectWaiting(2);
    renewLastStop();
    await hooks.launch('SessionEnd', { more: { reason: 'clear' } });
    await expect.poll(() => hooks.readRuns()?.[0]?.to, POLL).toBeDefined();
    hanging.release();
    await waitBriefly(() => hooks.waiting().length < 2);
    appendLines(path, assistant('m3', 'answer 2', chain('a3', 'r2', 25)));
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 2));
    expectEachSentOnce(hooks.workplace.server);
  });

  test('is not sent as long as it goes on because a Stop hook has objected', async () => {
    const path = hooks.workplace.transcriptOf(SESSION);
    const hanging = await occupyWorker();
    appendLines(
      path,
      user('question 2', { promptId: 'p2', ...chain('u2', 'a1', 20) }),
      assistant('m2', 'answer 2', chain('a2', 'u2', 21)),
    );
    await hooks.launch('Stop', { more: stopOf(2) });
    await expectWaiting(2);
    appendLines(
      path,
      user('Stop hook feedback:\nmore', { isMeta: true, promptId: 'p2', ...chain('f2', 'a2', 22) }),
      assistant('m3', [text('I will')], chain('a3', 'f2', 23)),
    );
    hanging.release();
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 1));
    appendLines(
      path,
      assistant('m3', [toolUse('t3')], chain('a4', 'a3', 24)),
      user([toolResult('t3')], { promptId: 'p2', ...chain('r4', 'a4', 25) }),
      assistant('m4', 'answer 2b', chain('a5', 'r4', 26)),
    );
    await hooks.launch('Stop', { more: stopOf(2, { last_assistant_message: 'answer 2b', stop_hook_active: true }) });
    await expect.poll(() => hooks.turns().length, POLL).toBe(2);
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expectEachSentOnce(hooks.workplace.server);
  });

  test('is sent although its transcript has moved to a worktree since', async () => {
    const path = hooks.workplace.transcriptOf(SESSION);
    const hanging = await occupyWorker();
    await hooks.stop(2);
    await expectWaiting(2);
    // EnterWorktree in the next turn.
    appendLines(
      path,
      user('question 3', { uuid: 'u3', promptId: 'p3', timestamp: at(30) }),
      assistant('m3', [toolUse('t3', 'EnterWorktree')], { timestamp: at(31) }),
    );
    const there = join(hooks.workplace.projects, '-work--claude-worktrees-x');
    mkdirSync(there, { recursive: true });
    renameSync(path, join(there, basename(path)));
    hanging.release();
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.waiting()).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 2));
  });

  // docs/claude-code.md: it has the old promptId, but an answer and a Stop of its own.
  test('does not close a turn that a message of a teammate has begun since', async () => {
    const path = hooks.workplace.transcriptOf(SESSION);
    const hanging = await occupyWorker();
    await hooks.stop(2);
    await expectWaiting(2);
    appendLines(
      path,
      user('<teammate-message>done</teammate-message>', { uuid: 'u3', promptId: 'p2', timestamp: at(30) }),
      assistant('m3', [text('I will see'), toolUse('t3')], { timestamp: at(31) }),
    );
    hanging.release();
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 2));
  });
});

describe('a Stop after a Stop hook has blocked', () => {
  test('does not close the next turn if the hook has blocked again', async () => {
    await hooks.start();
    const path = hooks.workplace.transcriptOf(SESSION);
    const feedback = (uuid: string, parentUuid: string, second: number) =>
      user('Stop hook feedback:\nmore', { isMeta: true, promptId: 'p1', ...chain(uuid, parentUuid, second) });
    appendLines(
      path,
      user('question 1', { promptId: 'p1', ...chain('u1', 'a0', 10) }),
      assistant('m1', 'answer 1', chain('a1', 'u1', 11)),
      feedback('f1', 'a1', 12),
      assistant('m2', 'answer 1b', chain('a2', 'f1', 13)),
      // The hook that blocks is faster than this one. Claude Code writes its feedback together with the answer.
      feedback('f2', 'a2', 14),
    );
    await hooks.launch('Stop', { more: stopOf(1, { last_assistant_message: 'answer 1b', stop_hook_active: true }) });
    appendLines(
      path,
      assistant('m3', 'answer 1c', chain('a3', 'f2', 15)),
      user('question 2', { promptId: 'p2', ...chain('u2', 'a3', 20) }),
      assistant('m4', [toolUse('t4')], chain('a4', 'u2', 21)),
    );
    await expect.poll(() => hooks.countStarted('worker'), POLL).toBe(2);
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(hooks.turns()).toEqual(allTurns([SESSION], 1));
  });
});

describe('a SessionEnd', () => {
  test('does not close a turn of the run that has resumed the session since', async () => {
    const live = { CC_LANGFUSE_LIVE: 'true' };
    await hooks.start(SESSION, live);
    const path = hooks.workplace.transcriptOf(SESSION);
    const hanging = hooks.workplace.server.hang();
    await hooks.launch('UserPromptSubmit', { env: live, more: { prompt: 'question' } });
    appendLines(
      path,
      user('question 1', { promptId: 'p1', ...chain('u1', 'a0', 10) }),
      assistant('m1', [toolUse('t1')], chain('a1', 'u1', 11)),
      user([toolResult('t1')], { promptId: 'p1', ...chain('r1', 'a1', 12) }),
    );
    await expect.poll(() => hanging.count, POLL).toBe(1);
    appendLines(path, user('[Request interrupted by user]', { promptId: 'p1', ...chain('i1', 'r1', 13) }));
    // Its worker waits for the follower, whose request has no answer yet.
    await hooks.launch('SessionEnd', { env: live, more: { reason: 'prompt_input_exit' } });
    await expect.poll(() => hooks.readRuns()?.[0]?.to, POLL).toEqual(new Places(path).at());
    await hooks.launch('SessionStart', { env: live, more: { source: 'resume' } });
    await expect.poll(hooks.readRuns, POLL).toHaveLength(2);
    appendLines(
      path,
      user('question 2', { promptId: 'p2', ...chain('u2', 'i1', 20) }),
      assistant('m2', [toolUse('t2')], chain('a2', 'u2', 21)),
    );
    hanging.release();
    // The follower goes on.
    await expect.poll(() => hooks.findAlive().length, POLL).toBe(1);
    await expect.poll(hooks.turns, POLL).toEqual(allTurns([SESSION], 1));
  });
});
