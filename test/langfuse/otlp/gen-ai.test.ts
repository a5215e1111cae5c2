import { describe, expect, test } from 'vitest';
import { cutOutgoing } from '../../../src/langfuse/cut-outgoing.js';
import { encodeGenAiSpan } from '../../../src/langfuse/otlp/gen-ai.js';
import { encodeSpan } from '../../../src/langfuse/otlp/span.js';
import { buildTurn } from '../../../src/observations/build/turn.js';
import type { Observation } from '../../../src/observations/model.js';
import { findViolations } from '../../support/gen-ai-conventions.js';
import { type OtlpSpan, stored } from '../../support/langfuse-server.js';
import { groupTurns, SESSION, toolResult, toolUse, user } from '../../support/lines.js';
import { recordings, transcriptsOf } from '../../support/recording.js';
import { OPTIONS, turnsOf } from '../../support/traces.js';

/** A call of a tool, which fails. */
const CALL: readonly object[] = [
  user('question'),
  {
    type: 'assistant',
    effort: 'high',
    message: {
      role: 'assistant',
      model: 'claude-opus-5',
      id: 'm1',
      stop_reason: 'tool_use',
      content: [toolUse('toolu_1', 'Bash', { command: 'ls' })],
      usage: {
        input_tokens: 3,
        output_tokens: 40,
        cache_read_input_tokens: 500,
        cache_creation_input_tokens: 60,
        cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 50 },
      },
    },
  },
  user([toolResult('toolu_1', 'ls: no such file', { is_error: true })]),
];

const recorded = recordings().flatMap((recording) =>
  transcriptsOf(recording).flatMap((path) =>
    turnsOf(path).flatMap((turn) => {
      const { children, root } = buildTurn(turn, { ...OPTIONS, sessionId: 'a session' });
      return [...children, root];
    }),
  ),
);

/** Builds the turn of these lines: a generation, a tool and the root. */
function observationsOf(lines: readonly object[], options: Partial<typeof OPTIONS> = {}) {
  const observations = groupTurns([...lines]).all.flatMap((turn) => {
    const { children, root } = buildTurn(turn, { ...OPTIONS, ...options, sessionId: SESSION });
    return [...children, root];
  });
  return observations as [Observation, Observation, Observation];
}

function encode(observation: Observation): OtlpSpan {
  return JSON.parse(encodeGenAiSpan(observation));
}

/** What a span has besides Langfuse's attributes and those that all spans have. */
function conventional(observation: Observation) {
  return selectConventional(encode(observation));
}

function selectConventional({ kind, status, attributes }: OtlpSpan) {
  const own = attributes.filter(({ key }) => /^(?:gen_ai|error)\./.test(key));
  return { kind, status, ...Object.fromEntries(own.map(({ key, value }) => [key, value])) };
}

const string = (stringValue: string) => ({ stringValue });
const int = (intValue: string) => ({ intValue });

describe('the attributes of the conventions', () => {
  test('follow them in every recorded observation', () => {
    expect(recorded.length).toBeGreaterThan(250);
    expect(recorded.map(encode).flatMap(findViolations)).toEqual([]);
    const operations = recorded.map((each) => Object.entries(conventional(each))[2]?.[1]);
    for (const operation of ['chat', 'execute_tool', 'invoke_agent'])
      expect(operations).toContainEqual(string(operation));
  });

  test('change nothing of what Langfuse reads', () => {
    expect(recorded.map(encode).map(stored)).toEqual(recorded.map((each) => stored(JSON.parse(encodeSpan(each)))));
  });

  test('come after what every Collector gets, which stays as it is', () => {
    for (const observation of recorded) {
      const plain: OtlpSpan = JSON.parse(encodeSpan(observation));
      const { kind: _, status: __, attributes, ...others } = encode(observation);
      expect({ ...plain, ...others }).toEqual(plain);
      expect(attributes.slice(0, plain.attributes.length)).toEqual(plain.attributes);
    }
  });

  test('name the model, the tokens, the call, the tool and the agent', () => {
    const conversation = { 'gen_ai.conversation.id': string(SESSION) };
    const [chat, tool, turn] = observationsOf(CALL);
    expect(conventional(chat)).toEqual({
      kind: 3,
      status: { code: 0 },
      'gen_ai.operation.name': string('chat'),
      'gen_ai.provider.name': string('anthropic'),
      'gen_ai.request.model': string('claude-opus-5'),
      'gen_ai.request.reasoning.level': string('high'),
      'gen_ai.response.model': string('claude-opus-5'),
      'gen_ai.response.id': string('m1'),
      'gen_ai.response.finish_reasons': { arrayValue: { values: [string('tool_use')] } },
      'gen_ai.usage.input_tokens': int('563'),
      'gen_ai.usage.output_tokens': int('40'),
      'gen_ai.usage.cache_read.input_tokens': int('500'),
      'gen_ai.usage.cache_write.input_tokens': int('60'),
      'gen_ai.usage.cache_creation.input_tokens': int('60'),
      ...conversation,
    });
    expect(conventional(tool)).toEqual({
      kind: 1,
      status: { code: 2, message: 'ls: no such file' },
      'gen_ai.operation.name': string('execute_tool'),
      'gen_ai.tool.name': string('Bash'),
      'gen_ai.tool.call.id': string('toolu_1'),
      'gen_ai.tool.type': string('function'),
      'error.type': string('tool_error'),
      ...conversation,
    });
    expect(conventional(turn)).toMatchObject({
      kind: 1,
      'gen_ai.operation.name': string('invoke_agent'),
      'gen_ai.agent.name': string('Claude Code'),
      ...conversation,
    });
  });

  test.each([
    ['a call that was refused', 'tool', { denied: 'user-rejected' }, 'user-rejected'],
    ['a call that failed', 'tool', {}, 'tool_error'],
    ['a turn that ended with an error', 'agent', { outcome: 'api_error' }, 'api_error'],
    ['an agent of which only the call is left', 'agent', {}, '_OTHER'],
    ['an error of the API', 'event', { status: 529 }, '529'],
  ] as const)('say why %s failed, with the status of the span', (_, type, metadata, expected) => {
    const [, tool] = observationsOf(CALL);
    const failed: Observation = { ...tool, type, metadata, level: 'ERROR', statusMessage: 'a\uD800' };
    expect(conventional(failed)).toMatchObject({
      status: { code: 2, message: 'a\uFFFD' },
      'error.type': string(expected),
    });
  });

  test('leave a warning without an error', () => {
    const [chat] = observationsOf(CALL);
    const warned: Observation = { ...chat, level: 'WARNING', statusMessage: 'aborted', metadata: {} };
    expect(conventional(warned)).toMatchObject({
      status: { code: 0 },
      'gen_ai.response.finish_reasons': { arrayValue: { values: [string('error')] } },
    });
    expect(conventional(warned)).not.toHaveProperty('error.type');
  });

  test.each([
    ['a subagent by its type', { agent_type: 'Explore' }, 'Explore'],
    ['any other by its name', {}, 'agent'],
  ])('name %s', (_, metadata, name) => {
    const [, tool] = observationsOf(CALL);
    const agent: Observation = { ...tool, type: 'agent', name: 'agent', metadata };
    expect(conventional(agent)).toMatchObject({ 'gen_ai.agent.name': string(name) });
  });

  test('are not those of a call to the model for what only costs something, or is an event', () => {
    const [chat] = observationsOf(CALL);
    const { usage: _, model: __, ...rest } = chat;
    const nothing = { kind: 1, status: { code: 0 } };
    expect(conventional({ ...rest, cost: { web_search_requests: 0.01, total: 0.01 } })).toEqual(nothing);
    expect(conventional({ ...rest, type: 'event' })).toEqual(nothing);
  });

  test('say no model without usage: Langfuse would estimate the tokens', () => {
    const [chat] = observationsOf(CALL);
    const unknown = conventional({ ...chat, usage: undefined, model: undefined });
    expect(Object.keys(unknown).filter((key) => /model|usage/.test(key))).toEqual([]);
  });

  test('have the name that the provider gave to the model as the one of the response', () => {
    const [chat] = observationsOf(CALL);
    expect(conventional({ ...chat, metadata: { model: 'us.anthropic.claude-opus-5-v1:0' } })).toMatchObject({
      'gen_ai.request.model': string('claude-opus-5'),
      'gen_ai.response.model': string('us.anthropic.claude-opus-5-v1:0'),
    });
  });

  test('stay when the content is cut that is too large for the Collector', () => {
    const [chat] = observationsOf(CALL);
    const whole = encodeGenAiSpan({ ...chat, input: 'x'.repeat(10_000) });
    const cut = [...cutOutgoing({ json: whole })].at(-1)?.json ?? '';
    expect(cut.length).toBeLessThan(whole.length / 2);
    const span: OtlpSpan = JSON.parse(cut);
    expect(selectConventional(span)).toEqual(conventional(chat));
  });

  test.each(['full', 'no_tool_io', 'metadata'] as const)('have no content with CC_LANGFUSE_CAPTURE=%s', (capture) => {
    const all = observationsOf(CALL, { capture }).map(conventional);
    for (const { status: _, ...attributes } of all)
      expect(JSON.stringify(attributes)).not.toMatch(/question|ls|no such file/);
    // The status has what the observation's own message may have.
    const message = capture === 'full' ? 'ls: no such file' : undefined;
    expect(all.map(({ status }) => status)).toEqual([{ code: 0 }, { code: 2, message }, { code: 0 }]);
  });
});

describe('a receiver that knows only the conventions', () => {
  const [chat, tool] = observationsOf(CALL).map(encode) as [OtlpSpan, OtlpSpan];
  const without = (span: OtlpSpan, name: string) => ({
    ...span,
    attributes: span.attributes.filter(({ key }) => key !== name),
  });
  const having = (span: OtlpSpan, key: string, value: object) => ({
    ...span,
    attributes: [...without(span, key).attributes, { key, value }],
  });

  test.each([
    ['an attribute that is not in the registry', having(chat, 'gen_ai.usage.total_tokens', int('1'))],
    ['an attribute of another span', having(tool, 'gen_ai.provider.name', string('anthropic'))],
    ['an operation that no span has', having(chat, 'gen_ai.operation.name', string('completion'))],
    ['a value that is not well known', having(chat, 'gen_ai.provider.name', string('claude'))],
    ['a number as text', having(chat, 'gen_ai.usage.output_tokens', string('40'))],
    ['a text instead of a list', having(chat, 'gen_ai.response.finish_reasons', string('tool_use'))],
    ['a missing attribute that is required', without(tool, 'gen_ai.tool.name')],
    ['no operation', without(tool, 'gen_ai.operation.name')],
    ['another kind', { ...chat, kind: 1 }],
    ['an error without a type', without(tool, 'error.type')],
    ['an error without a status', { ...tool, status: { code: 0 } }],
    ['cached tokens that are not a part of the input', having(chat, 'gen_ai.usage.input_tokens', int('3'))],
    ['the same attribute twice', { ...chat, attributes: [...chat.attributes, ...chat.attributes] }],
  ])('finds %s', (_, span) => {
    expect([chat, tool].flatMap(findViolations)).toEqual([]);
    expect(findViolations(span)).not.toEqual([]);
  });
});
