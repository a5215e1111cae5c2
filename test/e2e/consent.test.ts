import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nameProcess } from '../../src/state/lock.js';
import { LangfuseServer } from '../support/langfuse-server.js';
import { appendLines, appendTurn, assistant, at, SESSION, toolResult, toolUse, user } from '../support/lines.js';
import { type Environment, type HookEvent, POLL, run, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { listLocks, sessionFile } from '../support/state-files.js';

// What was to stay stays: a turn leaves only if its prompt was given in a run that a hook has recorded, or if its own Stop names it.

const OTHER = '22222222-2222-4222-8222-222222222222';
const FORK = '33333333-3333-4333-8333-333333333333';
const OFF = { TRACE_TO_LANGFUSE: 'false' };

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const path = (session = SESSION) => workplace.transcriptOf(session);
/** The prompts of turns and agents that a server has. */
const words = (server = workplace.server) =>
  server.observations
    .filter(({ type }) => type === 'agent')
    .map(({ input }) => promptOf(input))
    .toSorted();
const promptOf = (input: unknown) => (input as { content: string }[]).map(({ content }) => content).join();
const everything = () => JSON.stringify(workplace.server.observations);
const command = (...args: string[]) => run(args, workplace.env, '', { cwd: workplace.home });

const hook = (event: string, more?: HookEvent) => workplace.callHook(event, more);

function say(n: number, more: object = {}, session = SESSION): void {
  appendTurn(path(session), n, { promptId: `p${n}`, cwd: workplace.home, ...more });
}

const stop = (n: number, more: HookEvent = {}) =>
  hook('Stop', { prompt_id: `p${n}`, last_assistant_message: `answer ${n}`, ...more });

/** Hooks of another session, which recover what this one has left. */
async function recover(n = 90): Promise<void> {
  workplace.letIdle();
  await hook('SessionStart', { session: OTHER, source: 'startup' });
  say(n, {}, OTHER);
  await stop(n, { session: OTHER });
}

/** What an agent writes, beside the transcript of its session. */
function agentSays(text: string, timestamp = at(12), session = SESSION): void {
  const file = join(workplace.projects, '-work', session, 'subagents', 'agent-a1.jsonl');
  const own = { isSidechain: true, agentId: 'a1', sessionId: session, timestamp };
  const isNew = !existsSync(file);
  mkdirSync(dirname(file), { recursive: true });
  if (isNew) appendLines(file, user('look around', { ...own, uuid: 'a1-prompt' }));
  appendLines(file, assistant(`a1-${text}`, text, { ...own, uuid: `a1-${text}` }));
  const meta = { agentType: 'Explore', toolUseId: 'call-a1', requestShape: 'background' };
  writeFileSync(file.replace('.jsonl', '.meta.json'), JSON.stringify(meta));
}

/** A turn that starts an agent in the background. */
function sayWithAgent(n: number): void {
  const launched = { isAsync: true, status: 'async_launched', agentId: 'a1' };
  appendLines(
    path(),
    user(`question ${n}`, { uuid: `${SESSION}-${n}`, promptId: `p${n}`, timestamp: at(n * 10), cwd: workplace.home }),
    assistant(`${SESSION}-l${n}`, [toolUse('call-a1', 'Agent')], { timestamp: at(n * 10 + 1) }),
    user([toolResult('call-a1', 'Async agent launched successfully.')], {
      uuid: `${SESSION}-r${n}`,
      promptId: `p${n}`,
      timestamp: at(n * 10 + 2),
      toolUseResult: launched,
    }),
    assistant(`${SESSION}-m${n}`, `answer ${n}`, { timestamp: at(n * 10 + 5) }),
  );
}

describe('what ran with tracing off stays, although the session is resumed with tracing on', () => {
  beforeEach(() => {
    say(1);
    sayWithAgent(2);
    agentSays('agent found a secret');
  });

  test.each<[string, () => Promise<unknown>]>([
    ['and left', () => hook('SessionEnd', { reason: 'prompt_input_exit' })],
    [
      'and cleared',
      async () => {
        await hook('SessionEnd', { reason: 'clear' });
        await hook('SessionStart', { session: OTHER, source: 'clear' });
        await hook('SessionEnd', { session: OTHER, reason: 'other' });
      },
    ],
    [
      'and left after a command that asks no model',
      () => {
        appendLines(path(), user('<command-name>/cost</command-name>', { uuid: 'cost', timestamp: at(30) }), {
          type: 'system',
          subtype: 'local_command',
          content: '<local-command-stdout>$1</local-command-stdout>',
        });
        return hook('SessionEnd', { reason: 'other' });
      },
    ],
    [
      'and left after Esc before an answer',
      async () => {
        appendLines(
          path(),
          user('never mind', { uuid: 'esc', promptId: 'p3', timestamp: at(30) }),
          user([{ type: 'text', text: '[Request interrupted by user]' }], { promptId: 'p3', timestamp: at(31) }),
        );
        await hook('SessionEnd', { reason: 'other' });
      },
    ],
    ['and stopped without an answer', () => hook('Stop', { prompt_id: 'p3' })],
    ['and stopped with an answer that has not been written', () => stop(3)],
    ['and compacted', () => hook('SessionStart', { source: 'compact' })],
  ])('%s', async (_, leave) => {
    await hook('SessionStart', { source: 'resume' });
    await leave();
    await recover();
    expect(words().filter((each) => !/question 90|never mind/.test(each))).toEqual([]);
    expect(everything()).not.toContain('secret');
  });

  test('and its end is the first event that a hook sees', async () => {
    await hook('SessionEnd', { reason: 'other' });
    await recover();
    expect(words()).toEqual(['question 90']);
  });

  test('and a Stop names a prompt from before the start, as a teammate’s message can', async () => {
    await hook('SessionStart', { source: 'resume' });
    await stop(2);
    expect(words()).toEqual([]);
  });

  test('and the server is down, so that another session sends what is left', async () => {
    await hook('SessionStart', { source: 'resume' });
    workplace.server.misbehave = () => ({ status: 503 });
    await hook('SessionEnd', { reason: 'other' });
    workplace.repairServer();
    await recover();
    expect(words()).toEqual(['question 90']);
  });

  test('status and sessions say so, and a backfill sends it', async () => {
    await hook('SessionStart', { source: 'resume' });
    say(3);
    await stop(3);
    await hook('SessionEnd', { reason: 'other' });
    expect(words()).toEqual(['question 3']);
    const stays = '2 turns stay on this machine: nothing says that tracing was on';
    expect((await command('status')).stdout.replaceAll(/\s+/g, ' ')).toContain(
      `${stays} → cc-langfuse backfill ${SESSION}`,
    );
    expect((await command('sessions')).stdout.replaceAll(/\s+/g, ' ')).toContain(
      `partly exported (${stays}; backfill sends them)`,
    );
    workplace.letIdle();
    await workplace.backfill('--all', '--include-open');
    expect(words()).toEqual(['look around', 'question 1', 'question 2', 'question 3']);
    expect((await command('status')).stdout).not.toContain('stay');
    expect((await command('sessions')).stdout).toContain(' · exported · ');
  });
});

describe('without a SessionStart', () => {
  test('a Stop sends the turn that it names, and neither those before nor an interrupted one', async () => {
    say(1);
    appendLines(
      path(),
      user('question 2', { uuid: 'esc', promptId: 'p2', timestamp: at(20) }),
      assistant('m2', 'half an', { timestamp: at(21) }),
      user([{ type: 'text', text: '[Request interrupted by user]' }], { promptId: 'p2', timestamp: at(22) }),
    );
    say(3);
    await stop(3);
    await hook('SessionEnd', { reason: 'other' });
    expect(words()).toEqual(['question 3']);
  });

  test('a Stop that names no prompt sends the last turn that began before it', async () => {
    say(1, { promptId: undefined });
    say(2, { promptId: undefined });
    await hook('Stop');
    expect(words()).toEqual(['question 2']);
  });
});

describe('while a session is muted', () => {
  const now = () => new Date().toISOString();

  test('nothing stays of what an agent writes in the background, neither for a recovery nor for a backfill', async () => {
    await hook('SessionStart', { source: 'startup' });
    sayWithAgent(1);
    await stop(1, { background_tasks: [{ id: 'a1', status: 'running' }] });
    await command('mute', SESSION);
    agentSays('said while muted', now());
    await command('unmute', SESSION);
    agentSays('said afterwards', new Date(Date.now() + 50).toISOString());
    await hook('SessionEnd', { reason: 'other' });
    await recover();
    await workplace.backfill('--all', '--include-open');
    await workplace.backfill('--all', '--include-open', '--force');
    expect(words()).toContain('question 1');
    expect(everything()).not.toContain('said');
  });

  test('a turn that waits for a tool stays, even if it writes nothing more', async () => {
    await hook('SessionStart', { source: 'startup' });
    say(1);
    appendLines(
      path(),
      user('question 2', { uuid: 'u2', promptId: 'p2', timestamp: at(20) }),
      assistant('m2', [toolUse('t2')], { timestamp: at(21) }),
    );
    await command('mute', SESSION);
    await hook('Stop', { prompt_id: 'p2' });
    await hook('SessionEnd', { reason: 'other' });
    await command('unmute', SESSION);
    await recover();
    expect(words()).toEqual(['question 1', 'question 90']);
  });

  test('nothing is lost if nothing is said', async () => {
    await hook('SessionStart', { source: 'startup' });
    say(1);
    await stop(1);
    await command('mute', SESSION);
    await command('unmute', SESSION);
    say(2);
    await stop(2);
    expect(words()).toEqual(['question 1', 'question 2']);
  });

  test('from its first moment, its turns stay: by its id', async () => {
    expect(await command('mute', SESSION)).toMatchObject({
      exitCode: 0,
      stdout: `muted: (no prompt) (${SESSION}). Nothing more of the session is sent, including the turn under way.\n`,
    });
    await hook('SessionStart', { source: 'startup' });
    say(1);
    await stop(1);
    expect(words()).toEqual([]);
    await command('unmute', SESSION);
    say(2);
    await stop(2);
    expect(words()).toEqual(['question 2']);
  });

  test.each([
    ['with a SessionStart', true],
    ['without one', false],
  ])('from its first moment, its turns stay: by CC_LANGFUSE_MUTE, %s', async (_, hasStart) => {
    const env = { CC_LANGFUSE_MUTE: 'true' };
    if (hasStart) await hook('SessionStart', { source: 'startup', env });
    say(1);
    await stop(1, { env });
    expect(words()).toEqual([]);
    expect((await command('sessions')).stdout).toContain(' · muted · ');
    await command('unmute', SESSION);
    say(2);
    await stop(2, { env });
    expect(words()).toEqual(['question 2']);
    await workplace.backfill('--all', '--include-open');
    expect(words()).toEqual(['question 2']);
  });
});

describe('two processes in one session', () => {
  /** A process of Claude Code that is alive, and one that is gone. */
  const alive = { CLAUDE_PID: String(process.pid) };
  const other = { CLAUDE_PID: String(process.ppid) };
  const gone = { CLAUDE_PID: String(spawnSync('true').pid) };

  test('the untraced one’s turn stays, although the other one’s run goes on', async () => {
    await hook('SessionStart', { source: 'startup', env: alive });
    say(1);
    await stop(1, { env: alive });
    await hook('SessionStart', { source: 'resume', env: { ...other, ...OFF } });
    say(2, { timestamp: at(20) });
    await stop(2, { env: { ...other, ...OFF } });
    say(3);
    await stop(3, { env: alive });
    say(4);
    await stop(4, { env: { ...other, ...OFF } });
    await hook('SessionEnd', { reason: 'other', env: alive });
    await recover();
    expect(words()).toEqual(['question 1', 'question 3', 'question 90']);
  });

  test.each([
    ['first', alive, other],
    ['second', other, alive],
  ])('the end of the %s is not the end of the other one, and after both nothing is sent', async (_, one, another) => {
    await hook('SessionStart', { source: 'startup', env: alive });
    await hook('SessionStart', { source: 'resume', env: other });
    await hook('SessionEnd', { reason: 'other', env: one });
    say(1);
    await hook('SessionEnd', { reason: 'other', env: another });
    say(2);
    await recover();
    expect(words()).toEqual(['question 1', 'question 90']);
  });

  test('each turn goes under the settings of the one whose Stop names it, and one that no Stop names stays', async () => {
    const [x, y] = [
      { ...alive, LANGFUSE_TAGS: 'x' },
      { ...other, LANGFUSE_TAGS: 'y' },
    ];
    await hook('SessionStart', { source: 'startup', env: x });
    await hook('SessionStart', { source: 'resume', env: y });
    say(1);
    await stop(1, { env: x });
    say(2);
    await stop(2, { env: y });
    say(3);
    await hook('SessionEnd', { reason: 'other', env: y });
    await hook('SessionEnd', { reason: 'other', env: x });
    const tags = workplace.server.roots.map(({ input, trace }) => [
      promptOf(input),
      (trace.tags as string[]).filter((tag) => tag.length === 1),
    ]);
    expect(tags).toEqual([
      ['question 1', ['x']],
      ['question 2', ['y']],
    ]);
  });

  test('a turn of the traced one is not lost if its destination was corrected before the other one’s event', async () => {
    const env = { LANGFUSE_PUBLIC_KEY: 'pk-lf-typo' };
    await hook('SessionStart', { source: 'startup', env });
    say(1);
    await stop(1, { env });
    await recover(90);
    say(2);
    await stop(2, { env });
    await hook('SessionEnd', { reason: 'other', env: OFF });
    await recover(91);
    expect(words()).toEqual(['question 1', 'question 2', 'question 90', 'question 91']);
  });

  /** What one of them writes in the nth turn, after the end of another one, while the other one writes, too. */
  const interleaved = (n: number, after: string) => {
    let last = after;
    const add = (line: object) => {
      const parentUuid = last;
      last = `${n}-${statSync(path()).size}`;
      appendLines(path(), { ...line, uuid: last, parentUuid, timestamp: at(statSync(path()).size / 100) });
    };
    return {
      ask: () => add(user(`question ${n}`, { promptId: `p${n}`, cwd: workplace.home })),
      call(tool: string) {
        add(assistant(`m-${tool}`, [toolUse(tool)]));
        add(user([toolResult(tool)], { promptId: `p${n}` }));
      },
      answer: () => add(assistant(`m-${n}`, `answer ${n}`)),
    };
  };
  const whole = ['1', '2', 'a', 'b'].map((id) => `m-${id}`);

  test.each([
    ['traced: then it is sent with the Stop of its own', {}, [...whole, 'm-3', 'm-c', 'm-d'].toSorted()],
    ['not traced: then it stays', OFF, whole],
  ])('the Stop of one does not send the turn of the other that goes on meanwhile, which is %s', async (_, env, all) => {
    await hook('SessionStart', { source: 'startup', env: alive });
    appendLines(
      path(),
      user('question 1', { uuid: 'u1', promptId: 'p1', timestamp: at(1), cwd: workplace.home }),
      assistant('m-1', 'answer 1', { uuid: 'a1', parentUuid: 'u1', timestamp: at(2) }),
    );
    await stop(1, { env: alive });
    const [own, others] = [interleaved(2, 'a1'), interleaved(3, 'a1')];
    const third = { ...other, ...env, LANGFUSE_TAGS: 'y' };
    await hook('SessionStart', { source: 'resume', env: third });
    const messages = () =>
      workplace.server.observations.flatMap(({ metadata }) => metadata.message_id ?? []).toSorted();
    own.ask();
    others.ask();
    own.call('a');
    others.call('c');
    own.call('b');
    others.call('d');
    own.answer();
    await stop(2, { env: alive });
    expect(messages()).toEqual(whole);
    others.answer();
    await stop(3, { env: third });
    await hook('SessionEnd', { reason: 'other', env: third });
    await hook('SessionEnd', { reason: 'other', env: alive });
    expect(messages()).toEqual(all);
    expectEachSentOnce(workplace.server);
  });

  test('a process that is gone shares nothing', async () => {
    await hook('SessionStart', { source: 'startup', env: { ...gone, LANGFUSE_TAGS: 'x' } });
    await hook('SessionStart', { source: 'resume', env: { ...other, LANGFUSE_TAGS: 'y' } });
    say(1);
    await hook('SessionEnd', { reason: 'other', env: { ...other, LANGFUSE_TAGS: 'y' } });
    expect(words()).toEqual(['question 1']);
  });
});

describe('a Stop whose turn nobody has sent when its session ends', () => {
  beforeEach(async () => {
    await hook('SessionStart', { source: 'startup' });
    say(1);
    await stop(1);
  });

  test('claims its turn, although the prompt was written after the end', async () => {
    const { destination } = workplace.state[SESSION] ?? {};
    const lock = sessionFile(workplace.stateFolder, SESSION, `${destination}.lock`);
    writeFileSync(lock, nameProcess(process.pid));
    const env = { CC_LANGFUSE_TIMEOUT: '60000' };
    const stopped = stop(2, { env });
    await expect.poll(() => workplace.state[SESSION]?.stops?.at(-1)?.promptId, POLL).toBe('p2');
    const ended = hook('SessionEnd', { env });
    await expect.poll(() => workplace.readRuns()?.[0]?.to, POLL).toBeDefined();
    say(2);
    // Both have been waiting for it.
    rmSync(lock);
    await Promise.all([stopped, ended]);
    expect(words()).toEqual(['question 1', 'question 2']);
  });

  test('does not claim a message with the id of its prompt that was written with tracing off', async () => {
    workplace.server.misbehave = () => ({ status: 503 });
    say(2);
    await stop(2);
    await hook('SessionEnd');
    workplace.repairServer();
    appendLines(
      path(),
      user('<teammate-message>done</teammate-message>', { uuid: 'u3', promptId: 'p2', timestamp: at(30) }),
      assistant('m3', 'answer 3', { timestamp: at(31) }),
    );
    await recover();
    expect(words()).toEqual(['question 1', 'question 2', 'question 90']);
  });
});

test('what was written with tracing off before a run was known to have ended is in no later request', async () => {
  await hook('SessionStart', { source: 'startup' });
  const answers = Array.from({ length: 40 }, (_, n) =>
    assistant(`m${n}`, `${n}`.repeat(20_000), { timestamp: at(10 + n / 10) }),
  );
  // More than one request.
  appendLines(path(), user('question 1', { uuid: 'u1', promptId: 'p1', timestamp: at(10) }), ...answers);
  const bytes = statSync(path()).size;
  say(2);
  appendLines(path(), user('question 3', { uuid: 'u3', promptId: 'p3', timestamp: at(30) }));
  const hanging = workplace.server.hang();
  const payload = { session_id: SESSION, transcript_path: path(), hook_event_name: 'Stop', prompt_id: 'p1' };
  const worker = run(['worker', `${bytes}`], workplace.env, JSON.stringify(payload));
  await expect.poll(() => hanging.count, POLL).toBe(1);
  await stop(2, { env: OFF });
  hanging.release();
  await worker;
  await recover();
  expect(words()).toEqual(['question 1', 'question 90']);
});

describe('a fork without a mark sends nothing of what it copied', () => {
  /** As Claude Code up to 2.1.197 wrote it: all lines with the same uuids and times. */
  const fork = () => {
    mkdirSync(dirname(path(FORK)), { recursive: true });
    copyFileSync(path(), path(FORK));
  };
  const version = { version: '2.1.197' };

  test.each(['fork', 'resume'])('and was not traced, if it starts with the source %s', async (source) => {
    say(1, version);
    await hook('SessionStart', { session: FORK, source });
    fork();
    say(2, version, FORK);
    await stop(2, { session: FORK });
    await hook('SessionEnd', { session: FORK, reason: 'other' });
    expect(words()).toEqual(['question 2']);
  });

  test('and was for another destination', async () => {
    const server = await LangfuseServer.start();
    try {
      const env = { LANGFUSE_BASE_URL: server.url };
      await hook('SessionStart', { source: 'startup', env });
      say(1, version);
      await stop(1, { env });
      server.misbehave = () => ({ status: 503 });
      say(2, version);
      await stop(2, { env });
      await hook('SessionStart', { session: FORK, source: 'fork' });
      fork();
      say(3, version, FORK);
      await stop(3, { session: FORK });
      expect(words()).toEqual(['question 3']);
    } finally {
      await server.stop();
    }
  });

  test('if only its Stop is seen, which names the prompt that the copies have, too', async () => {
    say(1, { ...version, promptId: 'same' });
    fork();
    say(2, { ...version, promptId: 'same' }, FORK);
    await stop(2, { session: FORK, prompt_id: 'same' });
    expect(words()).toEqual(['question 2']);
  });
});

describe('a fork that has an answer which its original had only in memory', () => {
  const written = (n: number) => new Date(Date.now() - 10_000 + n).toISOString();
  const lines = () => [
    user('question 1', { uuid: 'l1', promptId: 'p1', timestamp: written(1) }),
    assistant('m1', [toolUse('t1')], { uuid: 'l2', parentUuid: 'l1', timestamp: written(2) }),
    user([toolResult('t1')], { uuid: 'l3', parentUuid: 'l2', promptId: 'p1', timestamp: written(3) }),
    assistant('m2', 'answer 1', { uuid: 'l4', parentUuid: 'l3', timestamp: written(4) }),
  ];

  async function branch(env: Environment = {}): Promise<object[]> {
    const all = lines();
    appendLines(path(), ...all.slice(0, 3).map((line) => ({ ...line, sessionId: SESSION })));
    await hook('SessionEnd', { reason: 'resume', env });
    await hook('SessionStart', { session: FORK, source: 'fork' });
    const mark = (uuid: unknown) => ({ sessionId: FORK, forkedFrom: { sessionId: SESSION, messageUuid: uuid } });
    appendLines(path(FORK), ...all.map((line) => ({ ...line, ...mark((line as { uuid?: string }).uuid) })));
    say(2, { timestamp: written(20_000) }, FORK);
    await stop(2, { session: FORK });
    return all.slice(3);
  }

  test.each<[string, Environment, () => unknown]>([
    ['muted', {}, () => command('mute', SESSION)],
    ['not traced', OFF, () => undefined],
  ])('does not send it if the original was %s', async (_, env, mute) => {
    await hook('SessionStart', { source: 'startup', env });
    await mute();
    await branch(env);
    await hook('SessionEnd', { session: FORK, reason: 'other' });
    expect(everything()).toContain('answer 2');
    expect(everything()).not.toContain('answer 1');
  });

  test('leaves it to the original, which writes it later', async () => {
    await hook('SessionStart', { source: 'startup' });
    appendLines(path(), ...(await branch()).map((line) => ({ ...line, sessionId: SESSION })));
    await hook('SessionStart', { source: 'resume' });
    say(3);
    await stop(3);
    const answers = workplace.server.observations.filter(({ metadata }) => metadata.message_id === 'm2');
    expect(answers.map(({ trace }) => trace?.sessionId)).toEqual([SESSION]);
  });
});

test('a worker that hangs does not hold up the session’s turns for another destination', async () => {
  const hanging = await LangfuseServer.start();
  const first = hanging.hang();
  try {
    const env = { LANGFUSE_BASE_URL: hanging.url };
    await hook('SessionStart', { source: 'startup', env });
    say(1);
    const payload = { session_id: SESSION, transcript_path: path(), hook_event_name: 'Stop', prompt_id: 'p1' };
    const worker = run(['worker'], { ...workplace.env, ...env }, JSON.stringify(payload));
    await expect.poll(() => first.count, POLL).toBe(1);
    await hook('SessionStart', { source: 'resume' });
    say(2);
    await run(['worker'], workplace.env, JSON.stringify({ ...payload, prompt_id: 'p2' }));
    expect(words()).toEqual(['question 2']);
    first.release();
    await worker;
    expect(words(hanging)).toEqual(['question 1']);
  } finally {
    first.release();
    await hanging.stop();
  }
});

test('a run that is resumed while its transcript is in another folder claims nothing that was there before', async () => {
  say(1);
  const moved = join(workplace.projects, '-work--claude-worktrees-x', `${SESSION}.jsonl`);
  await hook('SessionStart', { source: 'resume', transcript_path: moved });
  mkdirSync(dirname(moved));
  renameSync(path(), moved);
  appendTurn(moved, 2, { cwd: workplace.home });
  await hook('SessionEnd', { transcript_path: moved });
  expect(words()).toEqual(['question 2']);
});

test('a FIFO among what is due blocks no worker', async () => {
  await hook('SessionStart', { source: 'startup' });
  const folder = join(workplace.stateFolder, 'cc-langfuse_due');
  const [name = ''] = readdirSync(folder);
  spawnSync('mkfifo', [join(folder, name.replace(SESSION, 'another'))]);
  say(1);
  const payload = { session_id: SESSION, transcript_path: path(), hook_event_name: 'Stop', prompt_id: 'p1' };
  await run(['worker'], workplace.env, JSON.stringify(payload));
  expect(words()).toEqual(['question 1']);
});

test('a session that is muted while a Stop waits for its answer is sent no further', async () => {
  await hook('SessionStart', { source: 'startup' });
  appendLines(path(), user('question 1', { uuid: 'u1', promptId: 'p1', timestamp: at(10) }));
  const stopped = stop(1);
  await expect.poll(() => listLocks(workplace.stateFolder), POLL).toHaveLength(1);
  await command('mute', SESSION);
  appendLines(path(), assistant('m1', 'answer 1', { timestamp: at(15) }));
  await stopped;
  expect(words()).toEqual([]);
});

describe('a transcript that was rewritten keeps what was to stay', () => {
  const linesOf = () => readFileSync(path(), 'utf8').split('\n').slice(0, -1);
  const rewrite = (lines: readonly string[]) => writeFileSync(path(), `${lines.join('\n')}\n`);
  const other = (n: number) => JSON.stringify({ type: 'system', subtype: 'informational', content: `note ${n}` });

  /** Three turns, of which the second ran with tracing off. */
  beforeEach(async () => {
    await hook('SessionStart', { source: 'startup' });
    say(1);
    await stop(1);
    await hook('SessionEnd');
    await hook('SessionStart', { source: 'resume', env: OFF });
    say(2);
    await hook('SessionEnd', { env: OFF });
    await hook('SessionStart', { source: 'resume' });
    say(3);
    await stop(3);
    expect(words()).toEqual(['question 1', 'question 3']);
  });

  const removed = () => rewrite(linesOf().slice(2));
  const added = () => rewrite([other(1), other(2), ...linesOf()]);
  const moved = () => rewrite([...linesOf().slice(2), ...linesOf().slice(0, 2)]);
  const cut = () =>
    rewrite([...linesOf().slice(0, 2), other(1), ...linesOf().slice(2, 4), other(2), other(3), other(4)]);

  test.each([
    ['its first lines were removed', removed],
    ['lines were added before it', added],
    ['its lines are in another order', moved],
    ['it was cut, and has grown again', cut],
  ])('if %s', async (_, change) => {
    change();
    say(4);
    await stop(4);
    await hook('SessionEnd');
    await recover();
    expect(words()).not.toContain('question 2');
    expect(words()).toContain('question 4');
    expect(everything()).not.toContain('answer 2');
  });

  test('and what has taken the place of a turn that a Stop had named', async () => {
    const session = { session: OTHER };
    for (const n of [1, 2, 3]) say(n, {}, OTHER);
    await stop(3, session);
    const lines = readFileSync(path(OTHER), 'utf8').split('\n');
    writeFileSync(path(OTHER), lines.slice(2).join('\n'));
    say(4, {}, OTHER);
    say(5, {}, OTHER);
    await stop(5, session);
    expect(words()).toEqual(['question 1', 'question 3', 'question 3', 'question 5']);
  });

  test('and what was muted', async () => {
    await command('mute', SESSION);
    say(4, { timestamp: new Date().toISOString() });
    await command('unmute', SESSION);
    say(5);
    await stop(5);
    removed();
    say(6);
    await stop(6);
    await command('backfill', SESSION, '--yes', '--force');
    expect(words()).not.toContain('question 4');
    expect(words()).toContain('question 6');
  });
});

describe('an event in the middle of a line', () => {
  /** Writes the first half of a turn's lines, lets something happen, then writes the rest. */
  async function interrupted(n: number, event: () => Promise<unknown>): Promise<void> {
    const before = existsSync(path()) ? readFileSync(path()) : Buffer.alloc(0);
    say(n);
    const whole = readFileSync(path());
    writeFileSync(path(), whole.subarray(0, before.length + 20));
    await event();
    writeFileSync(path(), whole);
  }

  test('that begins a run, or ends one with tracing off, does not claim the line', async () => {
    await hook('SessionStart', { source: 'startup' });
    say(1);
    await stop(1);
    await hook('SessionEnd');
    await interrupted(2, () => hook('SessionStart', { source: 'resume' }));
    say(3);
    await stop(3);
    await hook('SessionEnd');
    await recover();
    expect(words()).toEqual(['question 1', 'question 3', 'question 90']);
  });

  test('that ends a run does not take the line from it', async () => {
    await hook('SessionStart', { source: 'startup' });
    await interrupted(1, () => hook('SessionEnd'));
    say(2);
    await hook('SessionStart', { source: 'resume' });
    say(3);
    await stop(3);
    expect(words()).toEqual(['question 1', 'question 3']);
  });

  test('that unmutes the session does not send the turn of the line', async () => {
    await hook('SessionStart', { source: 'startup' });
    say(1);
    await stop(1);
    await command('mute', SESSION);
    await interrupted(2, () => command('unmute', SESSION));
    await stop(2);
    say(3);
    await stop(3);
    expect(words()).toEqual(['question 1', 'question 3']);
  });

  test('that mutes the session mutes the turn of the line', async () => {
    await hook('SessionStart', { source: 'startup' });
    say(1);
    await stop(1);
    await interrupted(2, () => command('mute', SESSION));
    await stop(2);
    await command('unmute', SESSION);
    say(3);
    await stop(3);
    expect(words()).toEqual(['question 1', 'question 3']);
  });
});

describe('a turn that was not sent although a later one was', () => {
  test('is sent once its run is known: the worker that records a start can be the last one', async () => {
    say(1);
    say(2);
    await stop(2);
    expect(words()).toEqual(['question 2']);
    await hook('SessionStart', { source: 'startup' });
    say(3);
    await stop(3);
    expect(words()).toEqual(['question 1', 'question 2', 'question 3']);
  });

  test('since its folder was excluded, is sent by a backfill once it no longer is', async () => {
    const [one, two] = [join(workplace.home, 'one'), join(workplace.home, 'two')];
    for (const folder of [one, two]) mkdirSync(folder, { recursive: true });
    const settings = join(workplace.home, '.claude', 'settings.json');
    workplace.server.misbehave = () => ({ status: 503 });
    await hook('SessionStart', { source: 'startup', cwd: one });
    say(1);
    await stop(1, { cwd: one });
    await hook('SessionEnd', { cwd: one });
    workplace.repairServer();
    writeFileSync(settings, JSON.stringify({ env: { CC_LANGFUSE_EXCLUDE: one } }));
    await hook('SessionStart', { source: 'resume', cwd: two });
    say(2);
    await stop(2, { cwd: two });
    expect(words()).toEqual(['question 2']);
    rmSync(settings);
    say(3);
    await stop(3, { cwd: two });
    expect(words()).toEqual(['question 2', 'question 3']);
    await command('backfill', SESSION, '--yes');
    expect(words()).toEqual(['question 1', 'question 2', 'question 3']);
    await command('backfill', SESSION, '--yes');
    expectEachSentOnce(workplace.server);
  });
});

test('what an agent writes beside a turn with tracing off stays, if no start was seen and Stops name no prompts', async () => {
  sayWithAgent(1);
  agentSays('found something', at(12));
  await hook('Stop', { last_assistant_message: 'answer 1' });
  say(2, { promptId: undefined });
  await hook('Stop', { env: OFF, last_assistant_message: 'answer 2' });
  agentSays('found a secret', at(26));
  await hook('SessionEnd', { env: OFF });
  await recover();
  expect(words()).toContain('question 1');
  expect(words()).not.toContain('question 2');
  expect(everything()).not.toContain('found a secret');
});
