import { describe, expect, test } from 'vitest';
import { buildAgentTrace } from '../../../src/observations/build/trace.js';
import { buildTurn } from '../../../src/observations/build/turn.js';
import { type AgentThread, type Turn, toThread } from '../../../src/transcript/turns/turn.js';
import { assistant, groupTurns, SESSION, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

const PROMPT = '\n  Fix the login, please  \nand tell nobody';
const REPOSITORY = 'git.example.com/owner/name';

interface Named {
  readonly prompt?: string;
  readonly title?: string;
  readonly cwd?: string;
}

/** Returns the name of the trace, and of its root, of a turn in a session with a title. */
function named(traceName: string, options: Partial<typeof OPTIONS> = {}, { prompt = PROMPT, ...turn }: Named = {}) {
  const { title = 'Login', cwd = '/work/app' } = turn;
  const lines = [
    user(prompt, { uuid: 'u', cwd }),
    ...(title === '' ? [] : [{ type: 'custom-title', customTitle: title }]),
    assistant('m1', 'ok'),
  ];
  const all = { ...OPTIONS, repository: REPOSITORY, ...options, traceName, sessionId: SESSION };
  const { root } = buildTurn(groupTurns(lines).all[0] as Turn, all);
  expect(root.name).toBe('Turn 1');
  return root.trace.name;
}

describe("a trace's name", () => {
  test.each([
    ['Turn {n}', 'Turn 1'],
    ['turn', 'turn'],
    ['{project}', 'app'],
    ['{repository}', 'owner/name'],
    ['{title}', 'Login'],
    ['{prompt}', 'Fix the login, please'],
    ['{repository}: {title} ({n})', 'owner/name: Login (1)'],
  ])('made with %s is %s, and the root keeps its own', (template, expected) => {
    expect(named(template)).toBe(expected);
  });

  test('has the folder if there is no repository, and the prompt if there is no title', () => {
    expect(named('{repository}', { repository: undefined })).toBe('app');
    expect(named('{repository}', { repository: undefined }, { cwd: 'C:\\work\\tool\\' })).toBe('tool');
    expect(named('{title}', {}, { title: '' })).toBe('Fix the login, please');
  });

  test('has 80 characters of a long prompt', () => {
    expect(named('{prompt}', {}, { prompt: 'x'.repeat(500) })).toBe(`${'x'.repeat(80)}…`);
    expect(named('{prompt}', {}, { prompt: `${'x'.repeat(79)}😀` })).toBe(`${'x'.repeat(79)}\uFFFD…`);
  });

  test('says nothing of what a background task returned', () => {
    const prompt = '<task-notification><summary>ran</summary><result>secret</result></task-notification>';
    expect(named('{prompt}', {}, { prompt })).toBe('background task done');
    const event = prompt.replaceAll('result>', 'event>');
    expect(named('{prompt}', {}, { prompt: event })).toBe('background event');
    expect(named('{prompt}', {}, { prompt: `${event}${prompt}` })).toBe('background task done');
  });

  test('contains no title and no prompt with CC_LANGFUSE_CAPTURE=metadata', () => {
    const options = { capture: 'metadata' } as const;
    expect(named('{title}', options)).toBe('Turn 1');
    expect(named('{prompt}', options)).toBe('Turn 1');
    expect(named('{repository}: {prompt}', options)).toBe('owner/name');
    expect(named('{repository}: {title}', { ...options, capture: 'no_tool_io' })).toBe('owner/name: Login');
  });

  test('is redacted by rules that see the whole prompt', () => {
    const redact = (text: string) => text.replace(/Fix[\s\S]*nobody/, '[redacted]').replace('Login', '[title]');
    expect(named('{prompt}', { redact })).toBe('[redacted]');
    expect(named('{title}', { redact })).toBe('[title]');
  });
});

test.each([
  ['{repository}', 'owner/name'],
  ['claude-code', 'claude-code'],
  ['Turn {n}', 'Agent Explore'],
  ['{repository}: {title}', 'Agent Explore'],
])('of an agent that no call started, the trace made with %s is %s', (traceName, expected) => {
  const { all } = groupTurns([user('look', { uuid: 'u', cwd: '/work/app' }), assistant('m1', 'seen')]);
  const options = { ...OPTIONS, repository: REPOSITORY, traceName, sessionId: SESSION };
  expect(buildAgentTrace(toThread(all, 'a1') as AgentThread, 'Explore', options).name).toBe(expected);
});
