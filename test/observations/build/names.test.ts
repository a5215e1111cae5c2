import { describe, expect, test } from 'vitest';
import { buildLostSubagent, buildSubagent } from '../../../src/observations/build/agents.js';
import { buildTrace } from '../../../src/observations/build/trace.js';
import { buildTurn } from '../../../src/observations/build/turn.js';
import type { Observation } from '../../../src/observations/model.js';
import { createRedactor } from '../../../src/observations/redaction/redact.js';
import { type ToolCall, toThread } from '../../../src/transcript/turns/turn.js';
import { assistant, groupTurns, SESSION, toolUse, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

const ALL = { ...OPTIONS, sessionId: SESSION };
/** The names of the messages in an observation's input and in its output. */
const namesIn = ({ input, output }: Observation) => [input, output].flat().map((message) => Object(message).name);

const NOTIFICATION = '<task-notification><summary>built</summary></task-notification>';
const PEER = '<teammate-message teammate_id="ann">hi</teammate-message>';

describe('a message has the name of who has given it', () => {
  test.each([
    ['a person', 'go', {}, undefined],
    ['a program', 'go', { promptSource: 'sdk', turnOrigin: 'sdk' }, undefined],
    ['a command', '<command-name>/x</command-name>', {}, undefined],
    ['a plan', 'Implement it', { planContent: 'it' }, undefined],
    ['a background task', NOTIFICATION, {}, 'Background task'],
    [
      'a background task, by its source',
      'built',
      { promptSource: 'system', turnOrigin: 'task_notification' },
      'Background task',
    ],
    ['a schedule', 'look', { promptSource: 'system', turnOrigin: 'scheduled' }, 'Schedule'],
    ['a teammate', PEER, {}, 'Another agent'],
    ['Claude Code', 'go on', { origin: { kind: 'auto-continuation' } }, 'Claude Code'],
    ['a source that is not known', 'look', { origin: { kind: 'carrier-pigeon' } }, 'carrier-pigeon'],
    ['a source with the name of what every object has', 'look', { origin: { kind: 'constructor' } }, 'constructor'],
  ])('%s', (_, content, fields, name) => {
    const [turn] = groupTurns([user(content, { uuid: 'u', ...fields }), assistant('m', 'done')]).all;
    if (!turn) throw new Error('no turn');
    const { root, children } = buildTurn(turn, ALL);
    expect(namesIn(root)).toEqual([name, 'Claude']);
    expect([...children].map(namesIn)).toEqual([[name, undefined]]);
  });
});

describe('a subagent', () => {
  const lines = [user('look', { uuid: 'u' }), assistant('m', 'done')];
  const [turn] = groupTurns(lines).all;
  if (!turn) throw new Error('no turn');
  const thread = toThread([turn], 'a1', 'a1');
  if (!thread) throw new Error('no thread');
  const place: Pick<Observation, 'trace' | 'parentId'> = { trace: buildTrace(turn, ALL), parentId: 'f'.repeat(16) };
  const observe = (
    agent: { type?: string; description?: string },
    options: Partial<typeof ALL> = {},
    where = place,
  ) => {
    const all = { type: undefined, description: undefined, ...agent, thread, isBackground: false };
    const { root, children } = buildSubagent(all, where, { ...ALL, ...options });
    return [root, ...children];
  };

  test.each([
    [
      'its type and what it is to do',
      { type: 'Explore', description: 'Find the bug\nin the code' },
      {},
      'Explore: Find the bug',
    ],
    ['its type alone if nothing more is known', { type: 'Explore' }, {}, 'Explore'],
    ['what it is to do, if its type is not known', { description: 'Find the bug' }, {}, 'agent: Find the bug'],
    [
      'its type alone if no content may leave',
      { type: 'Explore', description: 'Find' },
      { capture: 'metadata' },
      'Explore',
    ],
    ['a part of a long description', { type: 'x', description: 'y'.repeat(90) }, {}, `x: ${'y'.repeat(80)}…`],
  ] as const)('is named by %s', (_, agent, options, name) => {
    expect(observe(agent, options)[0]?.name).toBe(name);
  });

  test('has a name with no part of a secret, where its description is cut', () => {
    const token = `ghp_${'a1B2'.repeat(9)}`;
    const [root] = observe({ type: 'x', description: `${'y'.repeat(60)} ${token}` }, { redact: createRedactor([]) });
    expect(root?.name).toBe(`x: ${'y'.repeat(60)} [redacted]`);
  });

  test('has the same id and metadata, whatever its name is', () => {
    const [one] = observe({ type: 'Explore', description: 'Find' });
    const [other] = observe({ type: 'Explore', description: 'Fix' });
    expect(other).toEqual({ ...one, name: 'Explore: Fix', metadata: { ...one?.metadata, description: 'Fix' } });
  });

  test('gets its prompts from Claude, and its answers have the name of its type', () => {
    expect(observe({ type: 'Explore' }).map(namesIn)).toEqual([
      ['Claude', 'Explore'],
      ['Claude', 'Explore'],
    ]);
  });

  test('of no known call has a trace whose name says nothing of what it does', () => {
    const [root] = observe({ type: 'Explore', description: 'Find' }, {}, { ...place, parentId: undefined });
    expect(root?.name).toBe('Agent Explore');
  });

  test('whose file is gone is named like that, too', () => {
    const input = { subagent_type: 'Explore', description: 'Find the bug', prompt: 'look' };
    const [calling] = groupTurns([user('go', { uuid: 'v' }), assistant('n', [toolUse('t', 'Agent', input)])]).all;
    const call = calling?.responses[0]?.calls[0];
    const result = {
      content: 'x',
      isError: false,
      denied: undefined,
      line: 3,
      at: 0,
      details: { agentId: 'a', content: 'done' },
    };
    const lost = buildLostSubagent({ ...(call as ToolCall), result }, place, ALL);
    expect(lost?.name).toBe('Explore: Find the bug');
    expect(lost && namesIn(lost)).toEqual(['Claude', 'Explore']);
  });
});
