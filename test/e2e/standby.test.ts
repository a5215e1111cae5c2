import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendLines, appendTurn, assistant, at, SESSION, user } from '../support/lines.js';
import { type Environment, LAUNCHER, POLL, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { StartedNodes } from '../support/started-nodes.js';

let workplace: Workplace;
let nodes: StartedNodes;
/** Stands for the process of Claude Code, which starts the launchers. */
let claude: ChildProcess;

beforeEach(async () => {
  workplace = await Workplace.open();
  nodes = new StartedNodes();
  claude = spawn('sleep', ['600']);
});

afterEach(async () => {
  claude.kill();
  await nodes.remove();
  await workplace.close();
});

interface How {
  readonly session?: string;
  readonly env?: Environment;
  readonly more?: object;
  readonly shell?: readonly string[];
  readonly payload?: string;
}

/** Starts the launcher as a headless Claude Code does. Resolves when it has ended in silence and its pipes are closed. */
function launch(event: string, { session = SESSION, env, more, shell = [], payload }: How = {}): Promise<void> {
  const fields = { session_id: session, transcript_path: workplace.transcriptOf(session), hook_event_name: event };
  const [command = '', ...args] = [...shell, LAUNCHER, event, nodes.path];
  return new Promise((resolve) => {
    const own = { CLAUDE_CODE_ENTRYPOINT: 'sdk-cli', CLAUDE_CODE_SESSION_ID: session, CLAUDE_PID: `${claude.pid}` };
    const launcher = spawn(command, args, {
      env: { PATH: process.env.PATH, ...workplace.env, ...own, ...env },
      detached: true,
    });
    let output = '';
    for (const stream of [launcher.stdout, launcher.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk;
      });
    launcher.stdin.on('error', () => {});
    launcher.stdin.end(payload ?? JSON.stringify({ ...fields, ...more }));
    launcher.on('close', (exitCode) => {
      expect({ exitCode, output }).toEqual({ exitCode: 0, output: '' });
      resolve();
    });
  });
}

/** Starts a session, and waits until its run is recorded. */
async function start(how: How = {}): Promise<void> {
  const { session = SESSION } = how;
  await launch('SessionStart', { more: { source: 'startup' }, ...how });
  await expect.poll(() => readState()[session]?.runs, POLL).toBeDefined();
}

/** Ends the nth turn. */
async function stop(n: number, how: How = {}): Promise<void> {
  appendTurn(workplace.transcriptOf(how.session ?? SESSION), n, { promptId: `p${n}` });
  await launch('Stop', { more: { prompt_id: `p${n}`, last_assistant_message: `answer ${n}` }, ...how });
}

const NEVER = new Promise(() => {});

const readState = () => {
  try {
    return workplace.state;
  } catch {
    return {};
  }
};
const turns = () => workplace.server.roots.map(({ name }) => name);
const folder = () => join(workplace.stateFolder, 'cc-langfuse_standby');
const pipes = () => (existsSync(folder()) ? readdirSync(folder()) : []);
const hasProgram = (name: string) => spawnSync(name, ['--help']).error === undefined;

describe.each([
  ['sh', ['/bin/sh']],
  ['dash', ['dash']],
  ['bash', ['bash', '--posix']],
  ['busybox', ['busybox', 'sh']],
])('with %s', (name, shell) => {
  const inShell = test.skipIf(!hasProgram(shell[0] ?? name));

  inShell('a headless run starts Node once, and all is sent when SessionEnd returns', async () => {
    await start({ shell });
    for (const n of [1, 2, 3]) await stop(n, { shell });
    await launch('SessionEnd', { shell });
    expect(turns().toSorted()).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
    expectEachSentOnce(workplace.server);
    expect(nodes.commands).toEqual(['standby']);
    await expect.poll(() => nodes.findAlive(), POLL).toEqual([]);
    expect(pipes()).toEqual([]);
    expect(readState()[SESSION]?.runs).toMatchObject([{ from_line: 1, to_line: 6 }]);
  });

  inShell('if the worker was killed, each event starts another one, and SessionEnd waits in front', async () => {
    await start({ shell });
    for (const pid of nodes.findAlive()) nodes.kill(pid);
    await expect.poll(() => nodes.findAlive(), POLL).toEqual([]);
    await stop(1, { shell });
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
    appendTurn(workplace.transcriptOf(SESSION), 2);
    await launch('SessionEnd', { shell });
    expect(turns()).toEqual(['Turn 1', 'Turn 2']);
    expect(nodes.commands).toEqual(['standby', 'worker', 'hook']);
  });

  inShell('if the worker is killed while SessionEnd waits for it, another one sends the turn', async () => {
    await start({ shell });
    let requests = 0;
    workplace.server.misbehave = () => {
      requests += 1;
      return requests === 1 ? { after: NEVER } : undefined;
    };
    await stop(1, { shell });
    await expect.poll(() => requests, POLL).toBe(1);
    const ended = launch('SessionEnd', { shell });
    await sleep(300);
    for (const pid of nodes.findAlive()) nodes.kill(pid);
    await ended;
    expect(turns()).toEqual(['Turn 1']);
    expect(nodes.commands).toEqual(['standby', 'hook']);
  });

  inShell('a payload that no pipe can hold arrives', async () => {
    await start({ shell });
    const answer = `${'é "quoted" \\ $HOME '.repeat(50_000)}end`;
    const path = workplace.transcriptOf(SESSION);
    appendLines(path, user('question 1', { promptId: 'p1' }), assistant('m1', answer, { timestamp: at(5) }));
    await launch('Stop', { shell, more: { prompt_id: 'p1', last_assistant_message: answer } });
    await launch('SessionEnd', { shell });
    expect(turns()).toEqual(['Turn 1']);
    expect(nodes.commands).toEqual(['standby']);
  });
});

test('each event is handled with its own environment', async () => {
  await start();
  const changed = { CC_LANGFUSE_CAPTURE: 'metadata', CC_LANGFUSE_USER_ID: 'one\nB=2' };
  for (const [n, env] of [{}, changed, {}].entries()) {
    await stop(n + 1, { env });
    await expect.poll(turns, POLL).toHaveLength(n + 1);
  }
  await launch('SessionEnd');
  expect(nodes.commands).toEqual(['standby']);
  const described = workplace.server.roots
    .toSorted((a, b) => a.name.localeCompare(b.name))
    .map(({ name, input, trace }) => ({ name, hasInput: input !== undefined, user: trace.userId }));
  expect(described).toEqual([
    { name: 'Turn 1', hasInput: true, user: undefined },
    { name: 'Turn 2', hasInput: false, user: 'one\nB=2' },
    { name: 'Turn 3', hasInput: true, user: undefined },
  ]);
});

test('with tracing off, an event goes to no worker that stands by', async () => {
  await start();
  await stop(1);
  await expect.poll(turns, POLL).toEqual(['Turn 1']);
  await stop(2, { env: { TRACE_TO_LANGFUSE: 'false' } });
  await expect.poll(() => readState()[SESSION]?.runs, POLL).toMatchObject([{ to_line: 2 }]);
  expect(nodes.commands).toEqual(['standby', 'worker']);
  claude.kill();
  await expect.poll(() => nodes.findAlive(), POLL).toEqual([]);
  expect(turns()).toEqual(['Turn 1']);
});

test('it ends with Claude Code, and sends the events that came before', async () => {
  await start();
  let answer = () => {};
  const told = new Promise<void>((resolve) => {
    answer = resolve;
  });
  workplace.server.misbehave = () => ({ after: told });
  await stop(1);
  await stop(2);
  claude.kill('SIGKILL');
  await expect.poll(pipes, POLL).toEqual([]);
  answer();
  await expect.poll(() => nodes.findAlive(), POLL).toEqual([]);
  expect(turns().toSorted()).toEqual(['Turn 1', 'Turn 2']);
  expectEachSentOnce(workplace.server);
});

test('nobody but the user can open its pipes', async () => {
  await start();
  expect(pipes().toSorted()).toEqual([`${SESSION}.${claude.pid}.in`, `${SESSION}.${claude.pid}.out`]);
  const modes = [folder(), ...pipes().map((name) => join(folder(), name))].map((path) => statSync(path).mode & 0o777);
  expect(modes).toEqual([0o700, 0o600, 0o600]);
});

test('a run that starts again, as after a compaction, keeps its worker', async () => {
  await start();
  await stop(1);
  await launch('SessionStart', { more: { source: 'compact' } });
  await stop(2);
  await launch('SessionEnd');
  expect(turns().toSorted()).toEqual(['Turn 1', 'Turn 2']);
  expect(nodes.commands.toSorted()).toEqual(['standby', 'worker']);
});

test('only a few runs have one at a time; in others each event starts a worker', async () => {
  const sessions = Array.from({ length: 5 }, (_, n) => `${SESSION.slice(0, -1)}${n + 2}`);
  for (const session of sessions) await start({ session });
  await expect.poll(() => pipes().length, POLL).toBe(8);
  await expect.poll(() => nodes.findAlive().length, POLL).toBe(4);
  for (const session of sessions) await stop(1, { session });
  for (const session of sessions) await launch('SessionEnd', { session });
  expect(turns()).toEqual(sessions.map(() => 'Turn 1'));
  expect(nodes.commands.filter((command) => command !== 'standby')).toEqual(['worker', 'hook']);
});

test('pipes that a killed worker has left are removed by the next one', async () => {
  mkdirSync(folder(), { recursive: true });
  const gone = spawn('true');
  await once(gone, 'exit');
  for (const ending of ['in', 'out']) spawnSync('mkfifo', [join(folder(), `another.${gone.pid}.${ending}`)]);
  await start();
  await expect.poll(pipes, POLL).toHaveLength(2);
});

test('while the server hangs, SessionEnd waits as long as CC_LANGFUSE_TIMEOUT, and the turn arrives nevertheless', async () => {
  const env = { CC_LANGFUSE_TIMEOUT: '2000' };
  await start({ env });
  let answer = () => {};
  const told = new Promise<void>((resolve) => {
    answer = resolve;
  });
  workplace.server.misbehave = () => ({ after: told });
  await stop(1, { env });
  const startedAt = Date.now();
  await launch('SessionEnd', { env });
  expect(Date.now() - startedAt).toBeGreaterThan(1_900);
  expect(nodes.findAlive()).toHaveLength(1);
  expect(turns()).toEqual([]);
  answer();
  await expect.poll(turns, POLL).toEqual(['Turn 1']);
  await expect.poll(() => nodes.findAlive(), POLL).toEqual([]);
});

test.each([
  '\0ev',
  '\0event\0CC_LANGFUSE_CAPTURE=metadata\0CC_LANG',
  '\0event\0CC_LANGFUSE_CAPTURE=metadata\0pay',
  '\0event\0CC_LANGFUSE_CAPTURE=metadata\0payload\0{"session_id":"1',
])('an event whose launcher was killed while it passed it on spoils no other one: %j', async (part) => {
  await start();
  writeFileSync(join(folder(), `${SESSION}.${claude.pid}.in`), part, { flag: 'a' });
  await stop(1);
  await launch('SessionEnd');
  expect(workplace.server.roots).toMatchObject([{ name: 'Turn 1', input: [{ content: 'question 1' }] }]);
});

test.each(['', 'no json', '{"session_id":'])('a payload that is none ends it: %j', async (payload) => {
  await start();
  await launch('Stop', { payload });
  await expect.poll(() => nodes.findAlive(), POLL).toEqual([]);
  await stop(1);
  await launch('SessionEnd');
  expect(turns()).toEqual(['Turn 1']);
});

test.each<[string, Environment]>([
  ['Claude Code does not name its process', { CLAUDE_PID: undefined }],
  ['the name of its process is none', { CLAUDE_PID: '1 2' }],
  ['Claude Code does not name the session', { CLAUDE_CODE_SESSION_ID: undefined }],
  ['nobody waits for SessionEnd', { CLAUDE_CODE_ENTRYPOINT: 'cli' }],
  ['a project may have chosen the folder of the state', { CC_LANGFUSE_STATE_DIR: '$HOME/.claude/state' }],
  ['a project may have chosen the folder of Claude Code', { CLAUDE_CONFIG_DIR: '$HOME/.claude' }],
])('there is none if %s', async (_, variables) => {
  const values = Object.entries(variables).map(([name, value]) => [name, value?.replace('$HOME', workplace.home)]);
  const env = Object.fromEntries(values);
  await start({ env });
  await stop(1, { env });
  await expect.poll(turns, POLL).toEqual(['Turn 1']);
  await launch('SessionEnd', { env });
  await expect.poll(() => readState()[SESSION]?.runs, POLL).toMatchObject([{ to_line: 2 }]);
  expect(nodes.commands).not.toContain('standby');
  expect(pipes()).toEqual([]);
});
