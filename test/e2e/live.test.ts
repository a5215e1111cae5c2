import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeFolderSettings } from '../support/claude-session.js';
import { kill } from '../support/home-processes.js';
import { LangfuseServer } from '../support/langfuse-server.js';
import { LaunchedHooks } from '../support/launched-hooks.js';
import { appendLines, assistant, at, SESSION, text, toolResult, toolUse, user } from '../support/lines.js';
import { type Environment, POLL, run, type Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import type { StartedNodes } from '../support/started-nodes.js';

let hooks: LaunchedHooks;
let workplace: Workplace;
let nodes: StartedNodes;
/** A process in place of Claude Code. */
let claude: ChildProcess;

beforeEach(async () => {
  hooks = await LaunchedHooks.open();
  ({ workplace, nodes } = hooks);
  claude = spawn('sleep', ['600']);
  workplace.env = {
    ...workplace.env,
    CC_LANGFUSE_LIVE: 'true',
    CLAUDE_PID: `${claude.pid}`,
  };
});

afterEach(async () => {
  claude.kill('SIGKILL');
  await hooks.close();
});

const path = () => workplace.transcriptOf(SESSION);
const append = (...lines: object[]) => appendLines(path(), ...lines);
const result = (id: string, second: number) => user([toolResult(id)], { timestamp: at(second) });
const shown = () =>
  workplace.server.observations
    .map(({ type, name, metadata }) => `${type} ${metadata.tool_id ?? metadata.message_id ?? name}`)
    .toSorted();

const launch = (event: string, more: object = {}, env: Environment = {}) => hooks.launch(event, { more, env });

/** Starts a session, and gives its first prompt. */
async function begin(env: Environment = {}): Promise<void> {
  await launch('SessionStart', { source: 'startup' }, env);
  await expect.poll(hooks.readRuns, POLL).toBeDefined();
  expect(await launch('UserPromptSubmit', { prompt: 'question' }, env)).toEqual({ exitCode: 0, output: '' });
  append(user('question', { uuid: 'u1', promptId: 'p1', timestamp: at(0) }));
}

async function end(env: Environment = {}): Promise<void> {
  append(assistant('m9', [text('the answer')], { timestamp: at(90) }));
  await launch('Stop', { prompt_id: 'p1', last_assistant_message: 'the answer', background_tasks: [] }, env);
}

describe('a turn that is followed', () => {
  test('is shown while it runs, and each of its observations is sent once', async () => {
    await begin();
    append(assistant('m1', [toolUse('a')], { timestamp: at(1) }), result('a', 5));
    await expect.poll(shown, POLL).toEqual(['tool a']);
    append(assistant('m2', [toolUse('b')], { timestamp: at(7) }));
    await expect.poll(shown, POLL).toEqual(['generation m1', 'tool a']);
    append(result('b', 8));
    await expect.poll(shown, POLL).toEqual(['generation m1', 'tool a', 'tool b']);
    await end();
    const all = ['agent Turn 1', 'generation m1', 'generation m2', 'generation m9', 'tool a', 'tool b'];
    await expect.poll(shown, POLL).toEqual(all);
    expectEachSentOnce(workplace.server);
    expect(workplace.log).toEqual([]);
  });

  test('goes on to be shown after its follower was killed and another prompt came', async () => {
    await begin();
    append(assistant('m1', [toolUse('a')], { timestamp: at(1) }), result('a', 5));
    await expect.poll(shown, POLL).toEqual(['tool a']);
    // Killed before, it would not know that the server has acknowledged it.
    await expect.poll(() => workplace.state[SESSION]?.sentLine, POLL).toBe(3);
    for (const pid of nodes.findAlive()) kill(pid);
    await launch('UserPromptSubmit', { prompt: 'and this' });
    append(assistant('m2', [toolUse('b')], { timestamp: at(7) }), result('b', 8));
    await expect.poll(shown, POLL).toEqual(['generation m1', 'tool a', 'tool b']);
    await expect.poll(() => workplace.state[SESSION]?.sentLine, POLL).toBe(5);
    for (const pid of nodes.findAlive()) kill(pid);
    await end();
    await expect.poll(() => shown().length, POLL).toBe(6);
    expectEachSentOnce(workplace.server);
  });

  test('has one follower, however many prompts are given', async () => {
    await begin();
    await launch('UserPromptSubmit');
    await launch('UserPromptSubmit');
    await expect.poll(() => nodes.commands, POLL).toEqual(['worker', 'follow', 'follow', 'follow']);
    await expect.poll(() => hooks.findAlive().length, POLL).toBe(1);
    append(assistant('m1', [toolUse('a')], { timestamp: at(1) }), result('a', 5));
    await expect.poll(shown, POLL).toEqual(['tool a']);
  });

  test('loses its follower with Claude Code, which first sends what there is', async () => {
    await begin();
    append(assistant('m1', [toolUse('a')], { timestamp: at(1) }), result('a', 5));
    await expect.poll(shown, POLL).toEqual(['tool a']);
    append(assistant('m2', [toolUse('b')], { timestamp: at(7) }), result('b', 8));
    claude.kill('SIGKILL');
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    expect(shown()).toEqual(['generation m1', 'tool a', 'tool b']);
    expect(hooks.locks()).toEqual([]);
  });

  test('loses a follower, too, that has waited for another one when Claude Code ended', async () => {
    await begin();
    await expect.poll(hooks.locks, POLL).toHaveLength(1);
    append(assistant('m1', 'answer', { timestamp: at(1) }));
    await launch('UserPromptSubmit', { prompt: 'and this' });
    await expect.poll(() => nodes.commands, POLL).toEqual(['worker', 'follow', 'follow']);
    // It has looked whether Claude Code is alive, and waits.
    await sleep(2_000);
    claude.kill('SIGKILL');
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
  });

  test('is shown no further once it is muted', async () => {
    await begin();
    append(assistant('m1', [toolUse('a')], { timestamp: at(1) }), result('a', 5));
    await expect.poll(shown, POLL).toEqual(['tool a']);
    await run(['mute', SESSION], workplace.env);
    append(assistant('m2', [toolUse('b')], { timestamp: at(7) }), result('b', 8));
    await end();
    await expect.poll(() => hooks.findAlive().length, POLL).toBeLessThan(2);
    // Longer than the follower waits.
    await sleep(3_000);
    expect(shown()).toEqual(['tool a']);
  });

  test('is shown no further once tracing is turned off in its settings', async () => {
    const env = { CLAUDE_PROJECT_DIR: workplace.home };
    await begin(env);
    append(assistant('m1', [toolUse('a')], { timestamp: at(1) }), result('a', 5));
    await expect.poll(shown, POLL).toEqual(['tool a']);
    appendLines(join(workplace.home, '.claude', 'settings.json'), { env: { TRACE_TO_LANGFUSE: 'false' } });
    append(assistant('m2', [toolUse('b')], { timestamp: at(7) }), result('b', 8));
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    await end(env);
    await expect.poll(hooks.findAlive, POLL).toEqual([]);
    await expect.poll(hooks.readRuns, POLL).toMatchObject([{ to: expect.anything() }]);
    // Nor when tracing is on again.
    rmSync(join(workplace.home, '.claude', 'settings.json'));
    workplace.letIdle();
    await run(['hook'], { ...workplace.env, CC_LANGFUSE_WAIT: '1' }, JSON.stringify(OTHER_END));
    expect(shown()).toEqual(['tool a']);
  });

  test('gives no key of the user to a server that only the project names', async () => {
    const theirs = await LangfuseServer.start();
    try {
      const settings = { LANGFUSE_BASE_URL: theirs.url };
      const project = join(workplace.home, 'work');
      writeFolderSettings(project, settings);
      await begin({ ...settings, CLAUDE_PROJECT_DIR: project });
      append(assistant('m1', [toolUse('a')], { timestamp: at(1) }), result('a', 5));
      await expect.poll(() => nodes.commands, POLL).toContain('follow');
      await expect.poll(hooks.findAlive, POLL).toEqual([]);
      expect(theirs.requests).toEqual([]);
    } finally {
      await theirs.stop();
    }
  });

  test('is shown once the server works again, and its Stop never waits for the follower', async () => {
    workplace.server.misbehave = () => ({ status: 503 });
    await begin();
    append(assistant('m1', [toolUse('a')], { timestamp: at(1) }), result('a', 5));
    await expect.poll(() => workplace.server.requests.length, POLL).toBeGreaterThan(0);
    await expect.poll(() => readdirSync(workplace.stateFolder), POLL).toContain('cc-langfuse_servers');
    workplace.server.misbehave = () => undefined;
    await end();
    await expect.poll(shown, POLL).toEqual(['agent Turn 1', 'generation m1', 'generation m9', 'tool a']);
    expectEachSentOnce(workplace.server);
  });

  test('shows what an agent does that it waits for', async () => {
    await begin();
    append(assistant('m1', [toolUse('call', 'Agent', { subagent_type: 'Explore' })], { timestamp: at(1) }));
    const file = join(path().replace('.jsonl', ''), 'subagents', 'agent-x1.jsonl');
    appendLines(file.replace('.jsonl', '.meta.json'), { agentType: 'Explore', toolUseId: 'call' });
    const own = { isSidechain: true, agentId: 'x1' };
    const ask = user('look', { ...own, uuid: 'x', timestamp: at(2) });
    appendLines(file, ask, assistant('n1', [toolUse('c')], { ...own, timestamp: at(3) }));
    appendLines(file, user([toolResult('c')], { ...own, timestamp: at(4) }));
    await expect.poll(shown, POLL).toEqual(['tool c']);
    appendLines(file, assistant('n2', [text('found')], { ...own, timestamp: at(6) }));
    await expect.poll(shown, POLL).toEqual(['generation n1', 'tool c']);
    append(result('call', 7));
    await end();
    await expect.poll(() => shown().length, POLL).toBe(8);
    expect(workplace.server.observations.find(({ name }) => name === 'Explore')?.parentId).toBe(
      workplace.server.observations.find(({ metadata }) => metadata.tool_id === 'call')?.id,
    );
    expectEachSentOnce(workplace.server);
  });
});

test.each([
  ['CC_LANGFUSE_LIVE is not true', { CC_LANGFUSE_LIVE: undefined }],
  ['tracing is off', { TRACE_TO_LANGFUSE: 'false' }],
])('nothing is started for a prompt if %s', async (_, env) => {
  expect(await launch('UserPromptSubmit', {}, env)).toEqual({ exitCode: 0, output: '' });
  await workplace.haveEnded();
  expect(nodes.commands).toEqual([]);
});

test.each([
  ['someone waits for each turn', { CC_LANGFUSE_WAIT: '1' }],
  ['keys are missing', { LANGFUSE_SECRET_KEY: undefined }],
])('nothing is printed for a prompt, and nobody waits, if %s', async (_, env) => {
  expect(await launch('UserPromptSubmit', {}, env)).toEqual({ exitCode: 0, output: '' });
  expect(
    await run(['hook'], { ...workplace.env, ...env }, JSON.stringify({ ...PROMPT, transcript_path: path() })),
  ).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
});

const OTHER_END = { session_id: 'other', transcript_path: '/none.jsonl', hook_event_name: 'SessionEnd' };
const PROMPT = { session_id: SESSION, hook_event_name: 'UserPromptSubmit', prompt: 'question' };
