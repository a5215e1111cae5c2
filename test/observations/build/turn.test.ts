import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Selection } from '../../../src/observations/build/observation.js';
import { buildTurn } from '../../../src/observations/build/turn.js';
import type { Observation } from '../../../src/observations/model.js';
import type { Turn } from '../../../src/transcript/turns/turn.js';
import { assistant, at, groupTurns, ms, SESSION, text, toolResult, toolUse, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

function built(turn: Turn | undefined, options: Partial<typeof OPTIONS> = {}): Observation[] {
  if (!turn) throw new Error('no turn');
  const { children, root } = buildTurn(turn, { ...OPTIONS, ...options, sessionId: SESSION });
  return [root, ...children];
}

function build(lines: readonly (object | string)[], options: Partial<typeof OPTIONS> = {}): Observation[] {
  return groupTurns(lines).all.flatMap((turn) => built(turn, options));
}

test('the children of a turn are built one by one, and only those that later lines completed', () => {
  const calls = ['one', 'two', 'three'].flatMap((word, n) => [
    assistant(`m${n}`, [toolUse(`t${n}`, word)]),
    user([toolResult(`t${n}`, `result ${word}`)]),
  ]);
  const [turn] = groupTurns([user('go', { uuid: 'u' }), ...calls]).all;
  const seen = new Set<string>();
  const redact = (text: string) => {
    seen.add(text);
    return text;
  };
  const options = { ...OPTIONS, redact, sessionId: SESSION };
  // The second call is in line 4, its result in line 5.
  const { children } = buildTurn(turn as Turn, options, undefined, (parts) => parts.filter(({ line }) => line > 4));
  expect(children.next().value).toMatchObject({ type: 'tool', name: 'two', output: 'result two' });
  expect([...seen].filter((text) => text.startsWith('result'))).toEqual(['result two']);
  expect([...children].map(({ type, name }) => [type, name])).toEqual([
    ['generation', 'claude-opus-5'],
    ['tool', 'three'],
  ]);
});

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const LOOP = [
  user('read a file', {
    uuid: 'prompt-1',
    promptId: 'p1',
    timestamp: at(0),
    cwd: '/work',
    version: '2.1.326',
    sessionKind: 'bg',
  }),
  {
    type: 'api-request',
    id: 'q1',
    timestamp: at(1),
    params: { max_tokens: 32_000, thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
  },
  assistant(
    'm1',
    [
      { type: 'thinking', thinking: 'Which one?', signature: 'c2ln' },
      text('I read it.'),
      toolUse('t1', 'Read', { path: '/x' }),
    ],
    { timestamp: at(3), requestRef: 'q1', requestId: 'r1', thinkingDurationMs: 500 },
  ),
  user([toolResult('t1', 'file data')], { timestamp: at(5) }),
  assistant('m2', [text('done')], { timestamp: at(8) }),
];

/** A response that asked two advisors, of which the second one failed. */
const ADVISED = (() => {
  const usage = {
    input_tokens: 100,
    output_tokens: 60,
    iterations: [
      { type: 'message', input_tokens: 50, output_tokens: 20 },
      {
        type: 'advisor_message',
        model: 'claude-opus-5[1m]',
        input_tokens: 5_000,
        output_tokens: 700,
        cache_read_input_tokens: 30,
      },
      { type: 'message', input_tokens: 50, output_tokens: 40 },
    ],
  };
  const line = (seconds: number, block: object) => {
    const { message, ...rest } = assistant('m1', [block], { timestamp: at(seconds) }) as { message: object };
    return { ...rest, message: { ...message, usage } };
  };
  const ask = (id: string) => ({ type: 'server_tool_use', id, name: 'advisor', input: {} });
  const reply = (id: string, content: object) => ({ type: 'advisor_tool_result', tool_use_id: id, content });
  return [
    user('go', { uuid: 'prompt-1', timestamp: at(0) }),
    line(1, ask('failed')),
    line(2, reply('failed', { type: 'advisor_tool_result_error', error_code: 'overloaded' })),
    line(3, ask('asked')),
    line(7, reply('asked', { type: 'advisor_result', text: 'Do it this way.' })),
    line(9, text('Advised.')),
  ];
})();

describe('an advisor that a response asked', () => {
  test("is a generation below the response's, with its own model and tokens", () => {
    const [, failed, asked, generation, advisor, ...more] = build(ADVISED);
    expect(more).toEqual([]);
    expect(generation?.usage).toEqual({ input: 100, output: 60, total: 160 });
    expect(advisor).toMatchObject({
      type: 'generation',
      id: sha256(`${generation?.trace.id}:generation:advisor:0:${generation?.id}`).slice(0, 16),
      parentId: generation?.id,
      name: 'advisor',
      model: 'claude-opus-5',
      usage: { input: 5_000, output: 700, cache_read_input_tokens: 30, total: 5_730 },
      startTime: ms(3),
      endTime: ms(7),
      level: 'DEFAULT',
      metadata: {},
      line: 6,
    });
    expect([failed, asked].map((call) => [call?.name, call?.level, call?.output])).toEqual([
      ['advisor', 'ERROR', '[advisor_tool_result_error: overloaded]'],
      ['advisor', 'DEFAULT', 'Do it this way.'],
    ]);
  });

  test('is final together with the response', () => {
    const [turn] = groupTurns(ADVISED).all;
    const keys: (string | undefined)[] = [];
    const select: Selection = (parts) => {
      keys.push(...parts.map(({ key }) => key));
      return parts;
    };
    for (const _ of buildTurn(turn as Turn, { ...OPTIONS, sessionId: SESSION }, undefined, select).children);
    expect(keys.filter((key) => key === 'm1')).toHaveLength(2);
  });
});

describe('the trace of a turn', () => {
  test('contains an agent, its generations, and their tools', () => {
    const observations = build(LOOP);
    expect(observations.map(({ type, name }) => [type, name])).toEqual([
      ['agent', 'Turn 1'],
      ['generation', 'claude-opus-5'],
      ['tool', 'Read'],
      ['generation', 'claude-opus-5'],
    ]);
    const [agent, generation, call, last] = observations;
    expect(agent?.parentId).toBeUndefined();
    expect([generation?.parentId, call?.parentId, last?.parentId]).toEqual([agent?.id, generation?.id, agent?.id]);
    const shared = {
      id: agent?.trace.id,
      parentId: undefined,
      scope: agent?.trace.id,
      name: 'work',
      sessionId: SESSION,
      userId: undefined,
      tags: ['claude-code'],
      environment: undefined,
      release: undefined,
      version: '2.1.326',
      metadata: {
        source: 'claude-code',
        turn_number: 1,
        session_id: SESSION,
        prompt_id: 'p1',
        trigger: 'human',
        cwd: '/work',
        version: '2.1.326',
        session_kind: 'bg',
      },
    };
    expect(observations.map(({ trace }) => trace)).toEqual(Array(4).fill(shared));
  });

  test('has inputs and outputs in the form of messages, which Langfuse displays', () => {
    const [root, first, tool, second] = build(LOOP);
    expect({ input: root?.input, output: root?.output }).toEqual({
      input: [{ role: 'user', content: 'read a file' }],
      output: { role: 'assistant', name: 'Claude', content: 'done' },
    });
    expect({ input: first?.input, output: first?.output }).toEqual({
      input: [{ role: 'user', content: 'read a file' }],
      output: {
        role: 'assistant',
        content: 'I read it.',
        thinking: [{ type: 'thinking', content: 'Which one?' }],
        tool_calls: [{ id: 't1', type: 'function', function: { name: 'Read', arguments: '{"path":"/x"}' } }],
      },
    });
    expect({ input: tool?.input, output: tool?.output }).toEqual({ input: { path: '/x' }, output: 'file data' });
    expect({ input: second?.input, output: second?.output }).toEqual({
      input: [{ role: 'tool', name: 'Read', tool_call_id: 't1', content: 'file data' }],
      output: { role: 'assistant', content: 'done' },
    });
  });

  test('has only times from the transcript', () => {
    const times = build(LOOP).map(({ name, startTime, endTime, completionStartTime }) => [
      name,
      startTime,
      endTime,
      completionStartTime,
    ]);
    expect(times).toEqual([
      ['Turn 1', ms(0), ms(8), undefined],
      ['claude-opus-5', ms(1), ms(3), ms(3) - 500],
      ['Read', ms(3), ms(5), undefined],
      ['claude-opus-5', ms(5), ms(8), undefined],
    ]);
  });

  test('has counts, ids and model parameters in its metadata', () => {
    const [root, first, tool] = build(LOOP);
    expect(root?.metadata).toEqual({
      outcome: 'completed',
      tool_count: 1,
      error_count: 0,
      model_ms: 5_000,
      tool_ms: 2_000,
      other_ms: 1_000,
    });
    expect(first?.metadata).toEqual({ tool_count: 1, message_id: 'm1', request_id: 'r1', thinking_ms: 500 });
    expect(first?.modelParameters).toEqual({ max_tokens: 32_000, thinking: 'adaptive', effort: 'high' });
    expect(tool?.metadata).toEqual({ tool_name: 'Read', tool_id: 't1', summary: 'path' });
  });

  test('has the user, tags, metadata, environment and release from the settings on every observation', () => {
    const settings = {
      userId: 'me',
      tags: ['a', 'b'],
      metadata: { team: 'x', source: 'not mine to set', odd: '\uD800' },
      environment: 'ci',
      release: 'v1',
    };
    const shared = {
      userId: 'me',
      tags: ['a', 'b', 'claude-code'],
      environment: 'ci',
      release: 'v1',
      metadata: { team: 'x', source: 'claude-code', odd: '\uFFFD' },
    };
    expect(build(LOOP, settings).map(({ trace }) => trace)).toMatchObject(Array(4).fill(shared));
  });
});

describe('the ids of observations', () => {
  test('are the same in every run, and are derived as documented', () => {
    const [root, first, tool] = build(LOOP);
    expect(build(LOOP)).toEqual(build(LOOP));
    const trace = sha256('prompt-1').slice(0, 32);
    expect(root?.trace.id).toBe(trace);
    expect(root?.id).toBe(sha256(`${trace}:agent:prompt-1`).slice(0, 16));
    expect(first?.id).toBe(sha256(`${trace}:generation:m1`).slice(0, 16));
    expect(tool?.id).toBe(sha256(`${trace}:tool:t1`).slice(0, 16));
  });

  test('are derived from the session and the line if the transcript has no ids', () => {
    const lines = [
      user('one'),
      {
        type: 'assistant',
        message: {
          role: 'assistant',
          content: [
            { type: 'tool_use', name: 'A' },
            { type: 'tool_use', name: 'B' },
          ],
        },
      },
      user('two'),
      { type: 'assistant', message: { role: 'assistant', content: 'x' } },
    ];
    const ids = build(lines).map(({ trace, id }) => `${trace.id}/${id}`);
    expect(new Set(ids).size).toBe(6);
    expect(build(lines).map(({ trace, id }) => `${trace.id}/${id}`)).toEqual(ids);
  });

  test('do not change when a turn grows, and neither do start times', () => {
    const places = (observations: Observation[]) => observations.map(({ id, startTime }) => ({ id, startTime }));
    const whole = places(build(LOOP));
    for (let length = 3; length < LOOP.length; length += 1) {
      expect(whole).toEqual(expect.arrayContaining(places(build(LOOP.slice(0, length)))));
    }
  });
});

describe('output tokens of versions that write a response before it ends', () => {
  const response = (id: string, version: string | undefined, stop_reason: string | null) => ({
    type: 'assistant',
    version,
    message: { id, role: 'assistant', content: 'x', stop_reason },
  });
  const marks = (...lines: object[]) =>
    build([user('go'), ...lines]).map(({ type, level, metadata }) => [type, level, metadata.output_tokens_uncertain]);

  test('are marked as incomplete, at the response and at the turn', () => {
    expect(marks(response('m1', '2.1.56', null), response('m2', '2.1.56', 'end_turn'))).toEqual([
      ['agent', 'DEFAULT', true],
      ['generation', 'DEFAULT', true],
      ['generation', 'DEFAULT', undefined],
    ]);
  });

  test.each<[string | undefined, string | null]>([
    ['2.1.56', 'end_turn'],
    ['2.1.98', null],
    [undefined, null],
  ])('are not marked in version %s with the stop reason %s', (version, stopReason) => {
    expect(marks(response('m1', version, stopReason))).toEqual([
      ['agent', 'DEFAULT', undefined],
      ['generation', 'DEFAULT', undefined],
    ]);
  });
});

describe('a tool observation', () => {
  test('of a call that failed has the first line of the result as its status message', () => {
    const [root, , tool] = build([
      user('go'),
      assistant('m1', [toolUse('t1', 'Bash')]),
      user([toolResult('t1', 'Exit code 3\nout', { is_error: true })], { toolDenialKind: 'permission-rule' }),
    ]);
    expect(tool).toMatchObject({
      level: 'ERROR',
      statusMessage: 'Exit code 3',
      output: 'Exit code 3\nout',
      metadata: { denied: 'permission-rule' },
    });
    expect(root?.metadata).toMatchObject({ tool_count: 1, error_count: 1 });
  });

  describe('of a call for which a hook', () => {
    const asked = { command: 'rm -r build' };
    const shown = (...printed: (object | string)[]) => {
      const hooks = printed.map((output) => ({
        type: 'attachment',
        attachment: {
          type: 'hook_success',
          hookEvent: 'PreToolUse',
          hookName: 'PreToolUse:Bash',
          toolUseID: 't1',
          content: '',
          stdout: typeof output === 'string' ? output : JSON.stringify({ hookSpecificOutput: output }),
        },
      }));
      const call = assistant('m1', [toolUse('t1', 'Bash', asked)]);
      const [, generation, tool] = build([user('go'), call, ...hooks, user([toolResult('t1')])]);
      const { summary, input_changed_by } = tool?.metadata ?? {};
      return { output: generation?.output, input: tool?.input, summary, input_changed_by };
    };
    const call = { id: 't1', type: 'function', function: { name: 'Bash', arguments: JSON.stringify(asked) } };
    const output = { role: 'assistant', content: '', tool_calls: [call] };

    test('has changed the input has what ran, and the generation what the model asked for', () => {
      const input = { command: 'ls build', description: 'Look' };
      const changed = { output, input, summary: 'ls build # Look', input_changed_by: 'PreToolUse:Bash' };
      expect(shown({ updatedInput: input })).toEqual(changed);
      expect(shown({ updatedInput: { command: 'pwd' } }, { updatedInput: input })).toEqual(changed);
    });

    test.each([
      ['the same input', { updatedInput: asked }],
      ['a decision', { permissionDecision: 'allow' }],
      ['an input that is no object', { updatedInput: 'rm -r build' }],
      ['a text', 'updatedInput'],
      ['nothing', ''],
    ])('has printed %s has what the model asked for', (_, printed) => {
      expect(shown(printed)).toEqual({ output, input: asked, summary: 'rm -r build', input_changed_by: undefined });
    });
  });

  test('of a call without a result has no output, and ends when it started', () => {
    const [, , tool] = build([user('go'), assistant('m1', [toolUse('t1')], { timestamp: at(4) })]);
    expect(tool).toMatchObject({ output: null, startTime: ms(4), endTime: ms(4), level: 'DEFAULT' });
  });
});

describe('the summary of a call', () => {
  test.each([
    ['Bash', { command: 'ls -la', description: 'List files' }, 'ls -la # List files'],
    ['Bash', { command: 'a\n  b' }, 'a b'],
    ['Read', { file_path: '/a.txt', limit: 9 }, '/a.txt'],
    ['Edit', { file_path: '/a.txt', old_string: 'x' }, '/a.txt (edit)'],
    ['Write', { file_path: '/a.txt', content: 'häh' }, '/a.txt (4 bytes)'],
    ['Grep', { pattern: 'x+', path: 'src' }, '/x+/ in src'],
    ['Grep', { pattern: 'x+' }, '/x+/'],
    ['Glob', { pattern: '**/*.ts' }, '**/*.ts'],
    ['Task', { subagent_type: 'Explore', description: 'Look', prompt: 'p' }, '[Explore] Look'],
    ['Agent', { description: 'Look' }, 'Look'],
    ['mcp__server__tool', { query: 'x', limit: 1 }, 'query, limit'],
    ['Read', { path: '/old' }, 'path'],
    ['Read', undefined, undefined],
  ])('%s %j is: %s', (name, input, summary) => {
    const [, , tool] = build([user('go'), assistant('m1', [{ type: 'tool_use', id: 't1', name, input }])]);
    expect(tool?.name).toBe(name);
    expect(tool?.metadata.summary || undefined).toBe(summary);
  });
});

describe('a turn that ends', () => {
  const root = (lines: readonly object[], options: Partial<typeof OPTIONS> = {}) => build(lines, options)[0];

  test('normally is completed, and its output is the last text', () => {
    expect(root([user('go'), assistant('m1', 'first words'), assistant('m2', 'last words')])).toMatchObject({
      level: 'DEFAULT',
      output: { role: 'assistant', name: 'Claude', content: 'last words' },
      metadata: { outcome: 'completed' },
    });
  });

  test.each([
    ['max_tokens', 'the answer was cut at max_tokens'],
    ['model_context_window_exceeded', 'the answer was cut at the end of the context window'],
    ['refusal', 'the model refused'],
    ['pause_turn', 'the API paused the answer, and Claude Code did not go on'],
  ])('with the stop reason %s is a warning', (stop_reason, statusMessage) => {
    const message = { id: 'm1', role: 'assistant', content: 'I', stop_reason };
    expect(root([user('go'), { type: 'assistant', message }])).toMatchObject({ level: 'WARNING', statusMessage });
  });

  const ended = (id: string, content: unknown, stop_reason: string) => ({
    type: 'assistant',
    message: { id, role: 'assistant', content, stop_reason },
  });
  const resume = user('Output token limit hit. Resume directly', { isMeta: true, turnCompanion: true });

  test('after its answer was cut and continued has all parts of the answer', () => {
    const [whole, ...generations] = build([
      user('go'),
      ended('m0', [text('Reading.'), toolUse('t1')], 'tool_use'),
      user([toolResult('t1')]),
      ended('m1', 'One', 'max_tokens'),
      resume,
      ended('m2', [{ type: 'thinking', thinking: 'on' }], 'model_context_window_exceeded'),
      resume,
      ended('m3', 'two.', 'end_turn'),
    ]);
    expect(whole).toMatchObject({
      level: 'DEFAULT',
      output: { role: 'assistant', name: 'Claude', content: 'One\ntwo.' },
      metadata: { outcome: 'completed' },
    });
    const request = [{ role: 'user', name: 'Claude Code', content: 'Output token limit hit. Resume directly' }];
    expect(
      generations.flatMap(({ type, input, statusMessage }) => (type === 'generation' ? [[input, statusMessage]] : [])),
    ).toEqual([
      [[{ role: 'user', content: 'go' }], undefined],
      [[{ role: 'tool', name: 'Read', tool_call_id: 't1', content: 'done' }], 'cut at max_tokens'],
      [request, 'cut at the end of the context window'],
      [request, undefined],
    ]);
  });

  test('after only its thinking was cut does not begin with what was said before', () => {
    const lines = [
      user('go'),
      ended('m0', [text('Reading.'), toolUse('t1')], 'tool_use'),
      user([toolResult('t1')]),
      ended('m1', [{ type: 'thinking', thinking: 'long' }], 'max_tokens'),
      resume,
      ended('m2', 'Answer.', 'end_turn'),
    ];
    expect(root(lines)?.output).toEqual({ role: 'assistant', name: 'Claude', content: 'Answer.' });
  });

  test('with the result of a command that ran as an agent has that as its output', () => {
    const content = '<local-command-stdout>It is fine.\n</local-command-stdout>';
    const lines = [
      user('/review low', { uuid: 'a', timestamp: at(0) }),
      { type: 'system', subtype: 'local_command', content, uuid: 'r', parentUuid: 'a', timestamp: at(9) },
    ];
    const [whole, ...more] = build(lines, { tags: [], autoTags: ['skill'] });
    expect(more).toEqual([]);
    expect(whole).toMatchObject({
      level: 'DEFAULT',
      startTime: ms(0),
      endTime: ms(9),
      input: [{ role: 'user', content: '/review low' }],
      output: { role: 'assistant', name: 'Claude', content: 'It is fine.' },
      metadata: { outcome: 'completed', tool_count: 0, error_count: 0 },
      trace: { tags: ['skill:review'], metadata: { trigger: 'command' } },
    });
  });

  test('in the middle of a stream without an interrupt is cut', () => {
    expect(root([user('go'), assistant('m1', 'par', { isAbortedMidStream: true })])).toMatchObject({
      level: 'WARNING',
      metadata: { outcome: 'cut' },
    });
  });

  test('after a tool call is unfinished, because the program was killed', () => {
    expect(root([user('go'), assistant('m1', 'I will'), assistant('m2', [toolUse('t1')])])).toMatchObject({
      level: 'WARNING',
      output: { content: 'I will' },
      metadata: { outcome: 'unfinished' },
    });
  });

  test.each([
    ['StructuredOutput', { color: 'red', sizes: [1, 2] }, { color: 'red', sizes: [1, 2] }],
    ['SubagentHandback', { message: 'All green.' }, 'All green.'],
    ['Another', { color: 'red' }, 'Here it is.'],
  ])('with the result of %s is completed, and its output is what was handed over', (name, input, content) => {
    const [agent, , tool] = build([
      user('go'),
      {
        type: 'assistant',
        message: { id: 'm1', content: [text('Here it is.'), toolUse('t1', name, input)], stop_reason: 'tool_use' },
      },
      user([toolResult('t1', 'Provided')], { toolEndsTurn: true }),
    ]);
    expect(agent).toMatchObject({
      level: 'DEFAULT',
      statusMessage: undefined,
      output: { role: 'assistant', name: 'Claude', content },
      metadata: { outcome: 'completed' },
    });
    expect(tool).toMatchObject({ name, input, output: 'Provided' });
  });

  test('without an answer, even after Claude Code asked for one again, is empty', () => {
    const nudge = user('[Your previous response had no visible output. Please continue]', { isMeta: true });
    expect(root([user('go'), assistant('m1', [toolUse('t1')]), user([toolResult('t1')]), nudge])).toMatchObject({
      level: 'WARNING',
      output: { role: 'assistant', name: 'Claude Code', content: 'the answer was empty, also when asked again' },
      metadata: { outcome: 'empty' },
    });
  });

  test('with an interrupt is a warning, and so is the generation that it aborted', () => {
    const line = assistant('m1', 'part', { isAbortedMidStream: true });
    const [agent, generation] = build([user('go'), line, user('[Request interrupted by user]')]);
    expect(agent).toMatchObject({
      level: 'WARNING',
      statusMessage: '[Request interrupted by user]',
      metadata: { outcome: 'interrupted' },
    });
    expect(generation).toMatchObject({ level: 'WARNING', statusMessage: 'aborted while streaming' });
  });

  test('with an API error is an error, and has an event with the message', () => {
    const [agent, event] = build([
      user('go'),
      assistant('x', 'API Error: 529 Overloaded', { isApiErrorMessage: true, apiErrorStatus: 529, timestamp: at(2) }),
    ]);
    expect(agent).toMatchObject({
      level: 'ERROR',
      output: { role: 'assistant', name: 'Claude Code', content: 'API Error: 529 Overloaded' },
      metadata: { outcome: 'api_error', error_count: 1 },
    });
    expect(event).toMatchObject({
      type: 'event',
      name: 'api error',
      level: 'ERROR',
      statusMessage: 'API Error: 529 Overloaded',
      input: [{ role: 'user', name: 'Claude Code', content: 'A request to the API failed.' }],
      output: { role: 'assistant', name: 'Claude Code', content: 'API Error: 529 Overloaded' },
      metadata: { status: 529 },
      startTime: ms(2),
    });
  });

  test('because of the limit of turns has the outcome max_turns', () => {
    const attachment = { type: 'attachment', attachment: { type: 'max_turns_reached', maxTurns: 2 } };
    expect(root([user('go'), assistant('m1', [toolUse('t1')]), user([toolResult('t1')]), attachment])).toMatchObject({
      metadata: { outcome: 'max_turns' },
    });
  });

  test('without any response has only a root', () => {
    const observations = build([user('go'), { type: 'system', subtype: 'turn_duration', durationMs: 9 }]);
    expect(observations).toHaveLength(1);
    expect(observations[0]).toMatchObject({
      output: { role: 'assistant', name: 'Claude Code', content: 'the answer was empty' },
      metadata: { outcome: 'empty' },
    });
  });

  test.each([
    [
      'an interrupt',
      user('[Request interrupted by user]'),
      '[Request interrupted by user]',
      '[Request interrupted by user]',
      'interrupted',
    ],
    [
      'a hook',
      { type: 'attachment', attachment: { type: 'hook_stopped_continuation', hookEvent: 'Stop', message: 'enough' } },
      'stopped by a hook: enough',
      'stopped by a hook',
      'stopped by a hook',
    ],
    [
      'an API error',
      assistant('x', 'API Error: 400 no', { isApiErrorMessage: true }),
      'API Error: 400 no',
      'API Error: 400 no',
      'API error',
    ],
    [
      'an API error that says the words of a hook',
      assistant('x', 'stopped by a hook: no', { isApiErrorMessage: true }),
      'stopped by a hook: no',
      'stopped by a hook: no',
      'API error',
    ],
  ])(
    'by %s, and without an answer, says so in its output as far as is captured',
    (_, line, words, inNoToolIo, ownWords) => {
      const lines = [user('go'), assistant('m1', [toolUse('t1')]), user([toolResult('t1')]), line];
      const said = (content: string) => ({ role: 'assistant', name: 'Claude Code', content });
      expect(root(lines)?.output).toEqual(said(words));
      expect(root(lines, { capture: 'metadata' })?.output).toEqual(said(ownWords));
      expect(root(lines, { capture: 'no_tool_io' })?.output).toEqual(said(inNoToolIo));
    },
  );
});

/** A line of a response, with what the API says that it used. */
function answered(id: string, content: object[], usage: object, more: object = {}): object {
  const { message, ...rest } = assistant(id, content, more) as { message: object };
  return { ...rest, message: { ...message, usage } };
}

describe('the metadata of a generation', () => {
  const metadataOf = (lines: readonly object[], options: Partial<typeof OPTIONS> = {}) =>
    build(lines, options)
      .filter(({ type }) => type === 'generation')
      .map(({ metadata }) => metadata);

  test('says whose instructions or results the model has worked with', () => {
    const forSkill = { attributionAgent: 'Explore', attributionSkill: 'tools:review', attributionPlugin: 'tools' };
    const forServer = { attributionMcpServer: 'github', attributionMcpTool: 'list_issues' };
    const lines = [
      user('go'),
      assistant('m1', [toolUse('t1', 'mcp__github__list_issues')], forSkill),
      user([toolResult('t1')]),
      assistant('m2', [text('done')], forServer),
    ];
    const expected = [
      { tool_count: 1, message_id: 'm1', agent_type: 'Explore', skill: 'tools:review', plugin: 'tools' },
      { tool_count: 0, message_id: 'm2', mcp_server: 'github', mcp_tool: 'list_issues' },
    ];
    expect(metadataOf(lines)).toEqual(expected);
    expect(metadataOf(lines, { capture: 'metadata' })).toEqual(expected);
  });

  test('has the size of the context, and the share of it that was read from the cache', () => {
    const cached = { input_tokens: 4, cache_read_input_tokens: 9_000, cache_creation_input_tokens: 996 };
    const lines = [
      user('go'),
      answered('m1', [text('one')], { ...cached, output_tokens: 700 }),
      answered('m2', [text('two')], { input_tokens: 30, output_tokens: 7, cache_read_input_tokens: 15 }),
      answered('m3', [text('three')], { input_tokens: 0, output_tokens: 7 }),
    ];
    expect(metadataOf(lines)).toEqual([
      { tool_count: 0, message_id: 'm1', context_tokens: 10_000, cache_share: 0.9 },
      { tool_count: 0, message_id: 'm2', context_tokens: 45, cache_share: 0.333 },
      { tool_count: 0, message_id: 'm3' },
    ]);
  });

  test('has the context of the last request if the API has sampled several times', () => {
    expect(metadataOf(ADVISED)).toEqual([
      { tool_count: 2, message_id: 'm1', context_tokens: 50, cache_share: 0 },
      { context_tokens: 5_030, cache_share: 0.006 },
    ]);
  });

  test('has the tokens and the time of its thinking, each block counted once', () => {
    const think = (words: string, thinkingDurationMs: number) =>
      answered(
        'm1',
        [{ type: 'thinking', thinking: words, signature: 'c2ln' }],
        { output_tokens: 90, output_tokens_details: { thinking_tokens: 80 } },
        { thinkingDurationMs },
      );
    const usage = { output_tokens: 90, output_tokens_details: { thinking_tokens: 80 } };
    const lines = [
      user('go'),
      think('First.', 300),
      think('First.', 300),
      think('Then.', 1_200),
      answered('m1', [text('done')], usage),
      answered('m2', [text('more')], { output_tokens: 5, output_tokens_details: { thinking_tokens: 0 } }),
    ];
    expect(metadataOf(lines)).toEqual([
      { tool_count: 0, message_id: 'm1', thinking_tokens: 80, thinking_ms: 1_500 },
      { tool_count: 0, message_id: 'm2' },
    ]);
  });

  test('counts the retries of its own request', () => {
    const retry = (n: number) => ({ type: 'system', subtype: 'api_error', retryAttempt: n, uuid: `r${n}` });
    const lines = [
      user('go'),
      retry(1),
      retry(2),
      assistant('m1', [toolUse('t1')]),
      user([toolResult('t1')]),
      assistant('m2', [toolUse('t2')]),
      user([toolResult('t2')]),
      retry(3),
      assistant('m3', [text('done')]),
    ];
    expect(metadataOf(lines)).toEqual([
      { tool_count: 1, message_id: 'm1', retries: 2 },
      { tool_count: 1, message_id: 'm2' },
      { tool_count: 0, message_id: 'm3', retries: 1 },
    ]);
  });

  test('counts no retries of a request that has failed for good', () => {
    const lines = [
      user('go'),
      { type: 'system', subtype: 'api_error', retryAttempt: 1 },
      assistant('x', 'API Error: 500', { isApiErrorMessage: true }),
      assistant('m1', 'done'),
    ];
    expect(metadataOf(lines)).toEqual([{ tool_count: 0, message_id: 'm1' }]);
  });
});

describe('where the model ran', () => {
  test.each([
    ['us', { inference_geo: 'us' }],
    ['global', { inference_geo: 'global' }],
    ['not_available', {}],
    ['', {}],
    [null, {}],
  ])('is a parameter of the model if inference_geo is %j', (inference_geo, expected) => {
    const lines = [user('go'), answered('m1', [text('done')], { output_tokens: 5, inference_geo })];
    expect(build(lines).at(-1)?.modelParameters).toEqual(expected);
  });

  test('is the same for an advisor', () => {
    const inUs = ADVISED.map((line) =>
      JSON.parse(JSON.stringify(line).replace('"usage":{', '$&"inference_geo":"us",')),
    );
    expect(build(inUs).at(-1)).toMatchObject({
      type: 'generation',
      name: 'advisor',
      modelParameters: { inference_geo: 'us' },
    });
    expect(build(ADVISED).at(-1)?.modelParameters).toBeUndefined();
  });
});

describe('retries, compactions, messages while Claude works, and feedback of Stop hooks', () => {
  test('become events', () => {
    const observations = build([
      user('go', { timestamp: at(0) }),
      {
        type: 'system',
        subtype: 'api_error',
        retryAttempt: 1,
        maxRetries: 10,
        retryInMs: 551,
        error: { formatted: '500 oops' },
      },
      { type: 'system', subtype: 'compact_boundary', compactMetadata: { trigger: 'auto', preTokens: 990_126 } },
      assistant('m1', [toolUse('t1')], { timestamp: at(1) }),
      user([toolResult('t1')], { timestamp: at(2) }),
      { type: 'attachment', timestamp: at(3), attachment: { type: 'queued_command', prompt: 'and this' } },
      assistant('m2', 'done', { timestamp: at(4) }),
      user('Stop hook feedback:\nmore', { isMeta: true, timestamp: at(5) }),
      assistant('m3', 'more', { timestamp: at(6) }),
    ]);
    const events = observations.filter(({ type }) => type === 'event');
    const by = (content: string) => ({ role: 'assistant', name: 'Claude Code', content });
    expect(
      events.map(({ name, level, statusMessage, metadata, input, output }) => ({
        name,
        level,
        statusMessage,
        metadata,
        input,
        output,
      })),
    ).toEqual([
      {
        name: 'api retry',
        level: 'WARNING',
        statusMessage: '500 oops',
        metadata: { attempt: 1, max_attempts: 10, wait_ms: 551 },
        input: [{ role: 'user', name: 'Claude Code', content: 'A request to the API failed: 500 oops' }],
        output: by('Tried again after 0.6 s, attempt 1 of 10.'),
      },
      {
        name: 'compaction',
        level: 'DEFAULT',
        statusMessage: undefined,
        metadata: { compaction_trigger: 'auto', tokens_before: 990_126 },
        input: [{ role: 'user', name: 'Claude Code', content: 'Compact the conversation (auto).' }],
        output: by('Compacted the conversation, which had 990,126 tokens.'),
      },
      {
        name: 'message while working',
        level: 'DEFAULT',
        statusMessage: undefined,
        metadata: {},
        input: [{ role: 'user', content: 'and this' }],
        output: by('Passed on to the model.'),
      },
      {
        name: 'stop hook feedback',
        level: 'DEFAULT',
        statusMessage: undefined,
        metadata: {},
        input: [{ role: 'user', name: 'Hook', content: 'Stop hook feedback:\nmore' }],
        output: by('Passed on to the model.'),
      },
    ]);
    const generations = observations.filter(({ type }) => type === 'generation');
    expect(generations.map(({ input }) => input)).toEqual([
      [{ role: 'user', content: 'go' }],
      [
        { role: 'tool', name: 'Read', tool_call_id: 't1', content: 'done' },
        { role: 'user', content: 'and this' },
      ],
      [{ role: 'user', name: 'Hook', content: 'Stop hook feedback:\nmore' }],
    ]);
  });
});

describe('what hooks of the user told the model', () => {
  const hook = (hookEvent: string, fields: object, seconds: number) => ({
    type: 'attachment',
    timestamp: at(seconds),
    attachment: { hookName: `${hookEvent}:Bash`, hookEvent, toolUseID: 't1', ...fields },
  });
  const START = [user('go', { timestamp: at(0) }), assistant('m1', [toolUse('t1')], { timestamp: at(1) })];

  test('becomes events, and is in the input of the generation that answers it', () => {
    const observations = build([
      START[0] ?? {},
      hook('SessionStart', { type: 'hook_additional_context', content: ['before any prompt'] }, 0),
      hook('UserPromptSubmit', { type: 'hook_success', content: 'plain output' }, 0),
      START[1] ?? {},
      hook('PreToolUse', { type: 'hook_success', content: 'not for the model' }, 1),
      user([toolResult('t1')], { timestamp: at(2) }),
      hook('PostToolUse', { type: 'hook_additional_context', content: ['one', 'two'] }, 2),
      hook('PostToolUse', { type: 'hook_blocking_error', blockingError: { blockingError: 'too long' } }, 2),
      assistant('m2', 'done', { timestamp: at(3) }),
      hook('Stop', { type: 'hook_blocking_error', blockingError: { blockingError: 'has a line of its own' } }, 4),
    ]);
    const said = (content: string) => ({ role: 'user', name: 'Hook', content });
    const events = observations.filter(({ type }) => type === 'event');
    expect(events.map(({ name, input, metadata }) => [name, input, metadata])).toEqual([
      ['hook context', [said('plain output')], { hook: 'UserPromptSubmit:Bash' }],
      ['hook context', [said('one\ntwo')], { hook: 'PostToolUse:Bash', hook_tool_id: 't1' }],
      ['hook feedback', [said('too long')], { hook: 'PostToolUse:Bash', hook_tool_id: 't1' }],
    ]);
    const generations = observations.filter(({ type }) => type === 'generation');
    expect(generations.map(({ input }) => input)).toEqual([
      [{ role: 'user', content: 'go' }, said('plain output')],
      [{ role: 'tool', name: 'Read', tool_call_id: 't1', content: 'done' }, said('one\ntwo'), said('too long')],
    ]);
  });

  test('ends the turn, and the reason is its status message', () => {
    const stop = hook('PostToolUse', { type: 'hook_stopped_continuation', message: 'enough' }, 3);
    const [root, ...rest] = build([...START, user([toolResult('t1')], { timestamp: at(2) }), stop]);
    expect(root).toMatchObject({
      level: 'WARNING',
      statusMessage: 'stopped by a hook: enough',
      metadata: { outcome: 'stopped_by_hook' },
    });
    expect(rest.at(-1)).toMatchObject({
      type: 'event',
      name: 'stopped by hook',
      level: 'WARNING',
      input: [{ role: 'user', name: 'Hook', content: 'enough' }],
    });
  });
});

describe('a fallback to another model', () => {
  test('is an event that names both', () => {
    const fallback = {
      type: 'system',
      subtype: 'model_fallback',
      content: 'Switched to Haiku',
      trigger: 'overloaded',
      originalModel: 'claude-opus-5',
      fallbackModel: 'claude-haiku-4-5',
    };
    expect(build([user('go'), fallback, assistant('m1', 'ok')]).find(({ type }) => type === 'event')).toMatchObject({
      name: 'model fallback',
      level: 'WARNING',
      statusMessage: 'Switched to Haiku',
      input: [{ role: 'user', name: 'Claude Code', content: 'claude-opus-5 could not be used (overloaded).' }],
      output: { role: 'assistant', name: 'Claude Code', content: 'Switched to Haiku' },
      metadata: { fallback_trigger: 'overloaded', from_model: 'claude-opus-5', to_model: 'claude-haiku-4-5' },
    });
  });
});

describe('a notice of background tasks', () => {
  const notice = (...tags: string[]) =>
    `<task-notification>\n<task-id>a1</task-id>\n${tags.join('\n')}\n</task-notification>`;
  const shown = (content: string) => {
    const [root] = build([user(content, { origin: { kind: 'task-notification' } }), assistant('m1', 'ok')]);
    return root?.input;
  };

  test.each([
    [
      'with its summary and result',
      notice('<status>completed</status>', '<summary>Agent "x" finished</summary>', '<result>All good.</result>'),
      'background task done: Agent "x" finished\nAll good.',
    ],
    [
      'with another status',
      notice('<status>killed</status>', '<summary>Command stopped</summary>'),
      'background task killed: Command stopped',
    ],
    ['without a summary', notice('<result>All good.</result>'), 'background task done:\nAll good.'],
    [
      'of several tasks, and with what follows them',
      `${notice('<summary>one</summary>')}\n${notice('<summary>two</summary>')}\nRead the output.`,
      'background task done: one\nbackground task done: two\nRead the output.',
    ],
    [
      'that is only news of a task',
      notice('<summary>Monitor event: "the log"</summary>', '<event>line 1\nline 2</event>'),
      'Monitor event: "the log"\nline 1\nline 2',
    ],
    [
      'of news of one task and the end of another',
      `${notice('<summary>one</summary>', '<event>x</event>')}\n${notice('<summary>two</summary>')}`,
      'one\nx\nbackground task done: two',
    ],
    [
      'that says where a fork came from',
      '<task-notification>\n<fork-source>\nThis session began as a fork.\n</fork-source>\n</task-notification>',
      'This session began as a fork.',
    ],
    [
      'with a result that quotes news',
      notice('<status>completed</status>', '<result>I saw <event>x</event>.</result>'),
      'background task done:\nI saw <event>x</event>.',
    ],
    ['that says nothing', '<task-notification>?', '<task-notification>?'],
  ])('%s is shown in words', (_, content, words) => {
    expect(shown(content)).toEqual([{ role: 'user', name: 'Background task', content: words }]);
  });
});

describe('the usage of a generation', () => {
  const usageOf = (usage: object) =>
    build([user('go'), { type: 'assistant', message: { id: 'm', role: 'assistant', model: 'x', usage } }])[1]?.usage;

  test('has the names of the price list, only whole numbers, and their sum as total', () => {
    const counts = {
      input_tokens: 100,
      output_tokens: 50,
      cache_read_input_tokens: 20,
      cache_creation_input_tokens: 30,
    };
    expect(usageOf({ input_tokens: 100, output_tokens: 50, cache_read_input_tokens: 20 })).toEqual({
      input: 100,
      output: 50,
      cache_read_input_tokens: 20,
      total: 170,
    });
    const split = { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 };
    expect(usageOf({ ...counts, cache_creation: split })).toEqual({
      input: 100,
      output: 50,
      cache_read_input_tokens: 20,
      input_cache_creation_5m: 10,
      input_cache_creation_1h: 20,
      total: 200,
    });
    const unsplit = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 };
    expect(usageOf({ ...counts, cache_creation: unsplit })).toMatchObject({
      cache_creation_input_tokens: 30,
      total: 200,
    });
    expect(usageOf({ ...counts, cache_creation: {} })).toMatchObject({ cache_creation_input_tokens: 30, total: 200 });
    expect(usageOf({ input_tokens: -1, output_tokens: 1.5, cache_read_input_tokens: 2 ** 60 })).toBeUndefined();
    expect(usageOf({ input_tokens: '9', output_tokens: 7 })).toEqual({ output: 7, total: 7 });
  });

  test('is missing if the transcript has none, and so is the model, or Langfuse would estimate a price', () => {
    const [, generation] = build([user('go'), assistant('m1', 'x')]);
    expect(generation).toMatchObject({ name: 'claude-opus-5', usage: undefined, model: undefined });
  });
});

describe('the model of a generation', () => {
  test('is named without the context window, which is in the metadata', () => {
    const message = { id: 'm', role: 'assistant', model: 'claude-opus-5[1m]', usage: { input_tokens: 1 } };
    const [, generation] = build([user('go'), { type: 'assistant', message }]);
    expect(generation).toMatchObject({
      name: 'claude-opus-5',
      model: 'claude-opus-5',
      metadata: { model: 'claude-opus-5[1m]' },
    });
  });
});

describe('the start of the first block', () => {
  test.each([-1e300, -5, 1e300, 9_999_999])('is unknown if it streamed for %d ms', (thinkingDurationMs) => {
    const [, generation] = build([
      user('go', { timestamp: at(0) }),
      assistant('m1', 'x', { timestamp: at(3), thinkingDurationMs }),
    ]);
    expect(generation).toMatchObject({ type: 'generation', completionStartTime: undefined });
  });
});

describe('limits', () => {
  test('cut what a generation answers to 2,000 characters', () => {
    const long = 'x'.repeat(2_500);
    const [, generation] = build([user(long), assistant('m1', 'ok')]);
    expect(generation?.input).toEqual([{ role: 'user', content: `${'x'.repeat(2_000)}… [500 more characters]` }]);
  });

  test('cut a long field, mark the cut, and keep the true length in the metadata', () => {
    const [, , tool] = build(
      [
        user('go'),
        assistant('m1', [toolUse('t1', 'Write', { a: 'a'.repeat(60), b: 'b'.repeat(60) })]),
        user([toolResult('t1', 'm'.repeat(101))]),
      ],
      { maxChars: 100 },
    );
    expect(tool?.input).toEqual({ a: 'a'.repeat(60), b: `${'b'.repeat(38)}… [22 more characters]` });
    expect(tool?.output).toBe(`${'m'.repeat(100)}… [1 more characters]`);
    expect(tool?.metadata).toEqual({
      tool_name: 'Write',
      tool_id: 't1',
      summary: 'a, b',
      input_full_chars: 120,
      output_full_chars: 101,
    });
  });

  test('cut only the content of messages, however little is left of it', () => {
    const [root] = build([user('x'.repeat(50)), assistant('m1', 'ok')], { maxChars: 1 });
    expect(root?.input).toEqual([{ role: 'user', content: '… [50 more characters]' }]);
    expect(root?.output).toEqual({ role: 'assistant', name: 'Claude', content: 'ok' });
  });

  test('leave every string well-formed, even if they cut an emoji', () => {
    const prompt = `${'x'.repeat(45)}\uD83D\uDE00`;
    const [root, generation] = build([user(prompt), assistant('m1', ['x', text('\uDC00!')])], { maxChars: 61 });
    expect(root?.input).toEqual([{ role: 'user', content: `${'x'.repeat(45)}\uFFFD… [1 more characters]` }]);
    expect(generation?.output).toEqual({ role: 'assistant', content: 'x\n\uFFFD!' });
    expect(JSON.stringify([root, generation])).not.toMatch(/\\ud[89a-f]/i);
  });

  test('cut a field of hundreds of thousands of short texts', () => {
    const many = Array.from({ length: 300_000 }, () => 'x');
    const [, , tool] = build([user('go'), assistant('m1', [toolUse('t1', 'Many', { many, after: many })])]);
    expect(JSON.stringify(tool?.input).length).toBeLessThan(1_000_000);
    expect(tool?.metadata).toMatchObject({ input_full_chars: 600_000 });
    expect(tool?.input).toMatchObject({ '…': '[1 more]' });
  });

  test('keep names and what every observation repeats short', () => {
    const [root, generation, tool] = build([
      user('go', { cwd: '/x'.repeat(5_000) }),
      assistant('m1', [toolUse('t1', 'N'.repeat(5_000))]),
    ]);
    expect(tool?.name).toMatch(/^N{200}/);
    expect(tool?.name.length).toBeLessThan(250);
    const folders = [root, generation].map((one) => String(one?.trace.metadata.cwd));
    expect(folders).toEqual(Array(2).fill(expect.stringMatching(/^(?:\/x){498}\/… \[9003 more characters\]$/)));
  });

  test('leave model parameters well-formed', () => {
    const message = { id: 'm', role: 'assistant', model: 'x', usage: { input_tokens: 1, speed: 'a\uD800' } };
    const [, generation] = build([user('go'), { type: 'assistant', message }]);
    expect(generation?.modelParameters).toEqual({ speed: 'a\uFFFD' });
  });

  test('cut a value that is nested too deeply', () => {
    const nested = `${'{"nested":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
    const call = JSON.stringify(assistant('m1', [toolUse('t1', 'Deep', 'HERE')])).replace('"HERE"', nested);
    const [, , tool] = build([user('go'), call]);
    expect(JSON.stringify(tool?.input)).toContain('[nested too deeply]');
  });
});
