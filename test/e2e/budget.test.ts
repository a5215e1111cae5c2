import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeFolderSettings } from '../support/claude-session.js';
import { LaunchedHooks, sessionId } from '../support/launched-hooks.js';
import { appendLines, assistant, SESSION, toolResult, toolUse, user } from '../support/lines.js';
import { atNoonZone, NOON_ZONE } from '../support/noon.js';
import { type Environment, LAUNCHER, POLL, type Workplace } from '../support/program.js';
import { startHook } from '../support/start-hook.js';

let hooks: LaunchedHooks;
let workplace: Workplace;
/** A process in place of Claude Code. */
let claude: ChildProcess;

beforeEach(async () => {
  hooks = await LaunchedHooks.open();
  ({ workplace } = hooks);
  claude = spawn('sleep', ['600']);
  workplace.env = { ...workplace.env, TZ: NOON_ZONE, CLAUDE_PID: `${claude.pid}` };
});

afterEach(async () => {
  claude.kill('SIGKILL');
  await hooks.close();
});

const NOW = new Date().toISOString();
const SHOWN = atNoonZone(NOW);
const DAY = SHOWN.slice(0, '2026-11-20'.length);
const MINUTE = SHOWN.slice('2026-11-20T'.length, '2026-11-20T12:00'.length);
/** Opus 5 costs 25 dollars for a million tokens of output. */
const DOLLAR = 40_000;

const pathOf = (session: string) => workplace.transcriptOf(session);
const turn = (n: number) => user(`question ${n}`, { uuid: `u${n}`, promptId: `p${n}`, timestamp: NOW });
const answer = (id: string, outputTokens: number, content: unknown = 'done', model = 'claude-opus-5') => ({
  ...assistant(id, content, { timestamp: NOW, uuid: id }),
  message: { role: 'assistant', model, id, content, usage: { input_tokens: 0, output_tokens: outputTokens } },
});
const LATER = new Date(Date.parse(NOW) + 60_000).toISOString();
const NEXT_TURN = [turn(2), answer('m2', 9 * DOLLAR)].map((line) => ({ ...line, timestamp: LATER }));

/** Starts a hook as Claude Code does, and returns what it says in the terminal. */
async function launch(event: string, more: object = {}, env: Environment = {}, session = SESSION): Promise<string> {
  const payload = { session_id: session, transcript_path: pathOf(session), hook_event_name: event, ...more };
  const all = { PATH: process.env.PATH, ...workplace.env, CLAUDE_CODE_SESSION_ID: session, ...env };
  const how = { env: all, cwd: workplace.home, detached: true };
  const { exitCode, output } = await startHook([LAUNCHER, event, hooks.nodes.path], payload, how);
  expect(exitCode).toBe(0);
  if (output === '') return '';
  const { systemMessage, ...others } = JSON.parse(output);
  expect(others).toEqual({});
  return systemMessage;
}

async function begin(env: Environment, session = SESSION): Promise<void> {
  expect(await launch('SessionStart', { source: 'startup' }, env, session)).toBe('');
  await expect.poll(() => hooks.readRuns(session), POLL).toBeDefined();
}

/** Ends a turn, and waits until its worker has ended. */
async function stop(n: number, env: Environment, session = SESSION): Promise<string> {
  const before = hooks.nodes.commands.length;
  const said = await launch('Stop', { prompt_id: `p${n}`, last_assistant_message: 'done' }, env, session);
  await expect.poll(() => hooks.nodes.commands.length, POLL).toBeGreaterThan(before);
  await workplace.haveEnded();
  return said;
}

const messages = (session = SESSION) =>
  [workplace.stateFolder, join(workplace.stateFolder, 'cc-langfuse_sessions', session)]
    .flatMap((folder) => readdirSync(folder))
    .filter((name) => /^(?:cc-langfuse_)?budget/.test(name))
    .toSorted();

const OF_TURN = `cc-langfuse: the turn of ${MINUTE} has used ≈ $6.10 at list prices. That is more than the $5.00 for a turn in CC_LANGFUSE_BUDGET.`;
const OF_DAY = `cc-langfuse: the sessions of ${DAY} have used ≈ $6.10 at list prices. That is more than the $4.00 for a day in CC_LANGFUSE_BUDGET.`;

describe('without live turns', () => {
  test('the next event says once that a turn has passed its limit', async () => {
    const env = { CC_LANGFUSE_BUDGET: 'turn=5' };
    await begin(env);
    appendLines(pathOf(SESSION), turn(1), answer('m1', 6.1 * DOLLAR));
    expect(await stop(1, env)).toBe('');
    expect(messages()).toEqual(['budget', 'budget-u1']);
    appendLines(pathOf(SESSION), turn(2), answer('m2', 1));
    expect(await stop(2, env)).toBe(OF_TURN);
    expect(await stop(2, env)).toBe('');
    expect(messages()).toEqual(['budget-u1']);
  });

  test('the turn that a Stop names is counted, although the next one has begun', async () => {
    const env = { CC_LANGFUSE_BUDGET: 'turn=5' };
    await begin(env);
    appendLines(pathOf(SESSION), turn(1), answer('m1', 6.1 * DOLLAR), ...NEXT_TURN);
    await stop(1, env);
    expect(messages()).toEqual(['budget', 'budget-u1']);
    expect(await launch('SessionStart', { source: 'resume' }, env)).toBe(OF_TURN);
  });

  test('of two prompts that were answered together, the Stop may name the first', async () => {
    const env = { CC_LANGFUSE_BUDGET: 'turn=5' };
    await begin(env);
    appendLines(pathOf(SESSION), turn(1), turn(2), answer('m1', 6.1 * DOLLAR));
    await stop(1, env);
    expect(await launch('SessionStart', { source: 'resume' }, env)).toBe(OF_TURN);
  });

  test('a turn is told once, although the one before it is counted later', async () => {
    const env = { CC_LANGFUSE_BUDGET: 'turn=5' };
    await begin(env);
    appendLines(pathOf(SESSION), turn(1), answer('m1', 6.1 * DOLLAR), ...NEXT_TURN);
    const said: string[] = [];
    for (const n of [2, 1, 2]) {
      await stop(n, env);
      said.push(await launch('SessionStart', { source: 'resume' }, env));
    }
    expect(said).toEqual([expect.stringContaining('≈ $9.00'), OF_TURN, '']);
  });

  test('a mark that another process removes meanwhile does not keep the message back', async () => {
    const env = { CC_LANGFUSE_BUDGET: 'turn=5' };
    await begin(env);
    // It is listed, but not there.
    symlinkSync('gone', join(workplace.stateFolder, 'cc-langfuse_sessions', SESSION, 'budget-u0'));
    appendLines(pathOf(SESSION), turn(1), answer('m1', 6.1 * DOLLAR));
    await stop(1, env);
    expect(await launch('SessionStart', { source: 'resume' }, env)).toBe(OF_TURN);
  });

  test('a turn at its limit, and turns that pass it only together, say nothing', async () => {
    const env = { CC_LANGFUSE_BUDGET: 'turn=5' };
    await begin(env);
    for (const n of [1, 2, 3]) {
      appendLines(pathOf(SESSION), turn(n), answer(`m${n}`, 5 * DOLLAR));
      expect(await stop(n, env)).toBe('');
    }
    expect(messages()).toEqual([]);
  });

  test('one of many events says that the sessions of a day have passed their limit', async () => {
    const env = { CC_LANGFUSE_BUDGET: '$4' };
    const [first, second] = [sessionId(1), sessionId(2)];
    for (const session of [first, second]) await begin(env, session);
    appendLines(pathOf(first), turn(1), answer('m1', 3 * DOLLAR));
    expect(await stop(1, env, first)).toBe('');
    // What a fork copies, and what was used on another day, does not count.
    const yesterday = new Date(Date.parse(NOW) - 86_400_000).toISOString();
    appendLines(pathOf(second), turn(1), answer('m1', 3 * DOLLAR), {
      ...answer('m0', 9 * DOLLAR),
      timestamp: yesterday,
    });
    expect(await stop(1, env, second)).toBe('');
    expect(messages(second)).toEqual([]);
    appendLines(pathOf(second), turn(2), answer('m2', 3.1 * DOLLAR));
    expect(await stop(2, env, second)).toBe('');
    const said = await Promise.all([first, second, first, second].map((session) => stop(2, env, session)));
    expect(said.toSorted()).toEqual(['', '', '', OF_DAY]);
    expect(messages(first)).toEqual([`cc-langfuse_budget-${DAY}`]);
  });

  test('tokens without a list price are left out, and the message says so', async () => {
    const env = { CC_LANGFUSE_BUDGET: 'turn=1' };
    await begin(env);
    const unknown = answer('m2', 1_234, 'done', 'claude-secret-9');
    appendLines(pathOf(SESSION), turn(1), answer('m1', 2 * DOLLAR), unknown);
    await stop(1, env);
    expect(await stop(1, env)).toBe(
      `cc-langfuse: the turn of ${MINUTE} has used ≈ $2.00 at list prices, without 1,234 tokens of models that the list does not have. That is more than the $1.00 for a turn in CC_LANGFUSE_BUDGET.`,
    );
  });

  test.each<[string, Environment]>([
    ['without a limit', {}],
    ['with a limit that cannot be read', { CC_LANGFUSE_BUDGET: 'turn=much' }],
  ])('%s nothing is counted', async (_, env) => {
    await begin(env);
    appendLines(pathOf(SESSION), turn(1), answer('m1', 100 * DOLLAR));
    expect([await stop(1, env), await stop(1, env)]).toEqual(['', '']);
    expect(messages()).toEqual([]);
    expect(existsSync(join(workplace.stateFolder, 'cc-langfuse_index'))).toBe(false);
  });

  test('a hook without the launcher, as on Windows, says it, too', async () => {
    const env = { CC_LANGFUSE_BUDGET: 'turn=5' };
    await begin(env);
    appendLines(pathOf(SESSION), turn(1), answer('m1', 6.1 * DOLLAR));
    await stop(1, env);
    const said = async () => (await workplace.callHook('Stop', { env })).stdout;
    expect(JSON.parse(await said())).toEqual({ systemMessage: OF_TURN });
    expect(await said()).toBe('');
  });

  test('a project cannot set a limit', async () => {
    const project = join(workplace.home, 'project');
    const env = { CC_LANGFUSE_BUDGET: 'turn=0.01 day=0.01', CLAUDE_PROJECT_DIR: project };
    writeFolderSettings(project, { CC_LANGFUSE_BUDGET: env.CC_LANGFUSE_BUDGET });
    await begin(env);
    appendLines(pathOf(SESSION), turn(1), answer('m1', 100 * DOLLAR));
    expect([await stop(1, env), await stop(1, env)]).toEqual(['', '']);
    expect(messages()).toEqual([]);
  });

  test.each<[string, string, Environment]>([
    ['a session that ends', 'SessionEnd', {}],
    ['a session without a terminal', 'Stop', { CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' }],
  ])('%s leaves the message to another one', async (_, event, more) => {
    const env = { CC_LANGFUSE_BUDGET: '4' };
    await begin(env);
    appendLines(pathOf(SESSION), turn(1), answer('m1', 6.1 * DOLLAR));
    await stop(1, env);
    expect(await launch(event, {}, { ...env, ...more })).toBe('');
    await workplace.haveEnded();
    expect(await launch('SessionStart', { source: 'startup' }, env, sessionId(2))).toBe(OF_DAY);
  });
});

describe('with live turns', () => {
  const env = { CC_LANGFUSE_BUDGET: 'turn=5', CC_LANGFUSE_LIVE: 'true' };

  test('a tool of the main thread says in the middle of the turn that its limit is passed, subagents included', async () => {
    await begin(env);
    expect(await launch('UserPromptSubmit', { prompt: 'question' }, env)).toBe('');
    const call = answer('m1', 2 * DOLLAR, [toolUse('t1', 'Agent')]);
    appendLines(pathOf(SESSION), turn(1), call);
    expect(await launch('PostToolUse', {}, env)).toBe('');
    // A response counts once, whatever number of lines it has.
    const agent = join(pathOf(SESSION).replace(/\.jsonl$/, ''), 'subagents', 'agent-a1.jsonl');
    appendLines(agent, user('look', { isSidechain: true }), answer('s1', DOLLAR), answer('s1', 4.1 * DOLLAR));
    await expect.poll(() => messages(), POLL).toEqual(['budget', 'budget-u1']);
    expect(await launch('PostToolUse', { agent_id: 'a1' }, env)).toBe('');
    expect(await launch('PostToolUse', { tool_input: { text: '"agent_id":"x"' } }, env)).toBe(OF_TURN);
    expect(await launch('PostToolUse', {}, env)).toBe('');
    appendLines(pathOf(SESSION), user([toolResult('t1')]), answer('m2', DOLLAR));
    expect(await launch('Stop', { prompt_id: 'p1', last_assistant_message: 'done' }, env)).toBe('');
  });
});
