import { appendFileSync, cpSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StoredObservation } from '../support/langfuse-server.js';
import { appendLines, assistant, at, SESSION, text, toolResult, toolUse, user as userLine } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { blobLine, requestLine, ScriptedSession, SHAPE, shapeLine } from '../support/requests.js';
import { describeTraces } from '../support/traces.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, CC_LANGFUSE_INPUT: 'request' };
});

afterEach(() => workplace.close());

const transcript = () => workplace.transcriptOf(SESSION);
const agentFile = () => join(workplace.projects, '-work', SESSION, 'subagents', 'agent-a1.jsonl');
const stop = () => workplace.hook({ session_id: SESSION, transcript_path: transcript(), hook_event_name: 'Stop' });
const observations = () => workplace.server.observations;

/** Appends the new lines of a session, and runs its Stop. */
async function live(session: ScriptedSession): Promise<void> {
  appendLines(transcript(), ...session.takeLines());
  expect(await stop()).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
}

/** Returns the generations in the order of their answers. */
function generations(all: readonly StoredObservation[] = observations()): StoredObservation[] {
  return all.filter(({ type }) => type === 'generation').toSorted((a, b) => a.endTime - b.endTime);
}

/** Sends a copy of the session to another server by a backfill. Returns what that server has then. */
async function backfill(): Promise<readonly StoredObservation[]> {
  const other = await Workplace.open();
  try {
    cpSync(workplace.projects, other.projects, { recursive: true });
    const env = { ...workplace.env, LANGFUSE_BASE_URL: other.server.url, HOME: other.home };
    const { exitCode, stderr } = await run(['backfill', '--yes', '--include-open', SESSION], env);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    return other.server.observations;
  } finally {
    await other.close();
  }
}

const SYSTEM = {
  role: 'system',
  content: 'You are an agent.\nBe brief.',
  tools: [{ name: 'Read', description: 'Reads a file.', parameters: { type: 'object', properties: {} } }],
};
const WEATHER = { role: 'system', content: 'It is a fine day.' };
const user = (content: string) => ({ role: 'user', content });
const said = (content: string) => ({ role: 'assistant', content });

test('each generation of a session that is resumed several times has its whole request as input', async () => {
  const session = new ScriptedSession().remind(WEATHER);
  for (let turn = 1; turn <= 4; turn += 1) {
    if (turn > 1) session.resume();
    session.prompt(`question ${turn}`).answer(text('I look.'), toolUse(`a${turn}`), toolUse(`b${turn}`));
    session.results(toolResult(`a${turn}`, 'alpha'), toolResult(`b${turn}`, 'beta')).answer(text(`answer ${turn}`));
    await live(session);
  }
  expect(generations().map(({ input, metadata }) => [(input as []).length, metadata.request_messages])).toEqual(
    // In the request, two results are one message.
    session.sent.map(({ messages }, place) => [1 + messages.length + Math.ceil(place / 2), messages.length]),
  );
  const calls = (turn: number) =>
    [`a${turn}`, `b${turn}`].map((id) => ({ id, type: 'function', function: { name: 'Read', arguments: '{}' } }));
  const turn = (n: number) => [
    user(`question ${n}`),
    { ...said('I look.'), tool_calls: calls(n) },
    { role: 'tool', name: 'Read', tool_call_id: `a${n}`, content: 'alpha' },
    { role: 'tool', name: 'Read', tool_call_id: `b${n}`, content: 'beta' },
  ];
  expect(generations().at(-1)?.input).toEqual([
    SYSTEM,
    WEATHER,
    ...[1, 2, 3].flatMap((n) => [...turn(n), said(`answer ${n}`)]),
    ...turn(4),
  ]);
  expect(describeTraces(await backfill())).toBe(describeTraces(observations()));
});

test('messages from long before the run are found, and those from too long before are counted', async () => {
  const session = new ScriptedSession().prompt('first').answer(text('One.'));
  const filler = blobLine(user('x'.repeat(17_000_000)));
  appendLines(transcript(), ...session.takeLines(), blobLine(user('y'.repeat(1_100_000))));
  await live(session.prompt('second').answer(text('Two.')));
  appendLines(transcript(), filler, filler);
  await live(session.prompt('third').answer(text('Three.')));
  await live(session.prompt('fourth').answer(text('Four.')));
  await live(session.prompt('fifth').answer(text('Five.')));
  const [first, second, third, , fifth] = generations().map(({ input, metadata }) => ({ input, metadata }));
  expect(first?.input).toEqual([SYSTEM, user('first')]);
  expect(second?.input).toEqual([SYSTEM, user('first'), said('One.'), user('second')]);
  expect(third?.input).toEqual([SYSTEM, user('first'), said('One.'), user('second'), said('Two.'), user('third')]);
  expect(fifth).toMatchObject({
    input: [
      SYSTEM,
      { role: 'system', content: '[4 messages not found in the transcript]' },
      ...[user('third'), said('Three.'), user('fourth'), said('Four.'), user('fifth')],
    ],
    metadata: { request_messages: 9, request_messages_missing: 4 },
  });
});

test('an image in a tool result is shown in each request that contains it, and is stored once', async () => {
  const source = { type: 'base64', media_type: 'image/png', data: Buffer.from('a picture').toString('base64') };
  const session = new ScriptedSession().prompt('look').answer(toolUse('t1'));
  await live(session.results(toolResult('t1', [{ type: 'image', source }])).answer(text('Nice.')));
  await live(session.prompt('again').answer(text('Still nice.')));
  const [media, ...more] = workplace.server.media.stored.values();
  expect(more).toEqual([]);
  expect(media).toMatchObject({ arrivals: 1, bytes: Buffer.from('a picture') });
  const [first, second, third] = generations();
  expect(JSON.stringify(first?.input)).not.toContain('langfuseMedia');
  const shown = [expect.stringContaining(`|id=${media?.id}|`)];
  const result = { role: 'tool', name: 'Read', tool_call_id: 't1', content: shown };
  const inputs = [second, third].map((each) => each?.input as unknown[] | undefined);
  expect(inputs.map((input) => input?.[3])).toEqual([result, result]);
  const fields = [second, third].map((each) => `${each?.traceId} ${each?.id} input`);
  expect([...(media?.fields ?? [])]).toEqual(expect.arrayContaining(fields));
  expect(describeTraces(await backfill())).toBe(describeTraces(observations()));
});

test('the generations of a subagent have its own requests as input', async () => {
  const agent = new ScriptedSession('a1-', { system: [text('You look into things.')], tools: [] });
  agent.prompt('Look into it.').answer(toolUse('t9')).results(toolResult('t9', 'alpha')).answer(text('It is alpha.'));
  appendLines(agentFile(), ...agent.takeLines().map((line) => ({ ...line, agentId: 'a1', isSidechain: true })));
  writeFileSync(
    agentFile().replace('.jsonl', '.meta.json'),
    JSON.stringify({ agentType: 'Explore', toolUseId: 'call' }),
  );
  const session = new ScriptedSession().prompt('Delegate it.').answer(toolUse('call', 'Agent'));
  await live(session.results(toolResult('call', 'It is alpha.')).answer(text('Alpha.')));
  const inputs = generations().map(({ input }) => (input as unknown[]).slice(0, 2));
  expect(inputs).toContainEqual([{ role: 'system', content: 'You look into things.' }, user('Look into it.')]);
  expect(inputs).toContainEqual([SYSTEM, user('Delegate it.')]);
  expect(
    generations()
      .map(({ metadata }) => metadata.request_messages)
      .toSorted(),
  ).toEqual([1, 1, 3, 3]);
});

test('nothing is missing from the requests of a recorded session with a subagent, a compaction and a fork', async () => {
  const recorded = new URL('../../fixtures/requests/', import.meta.url).pathname;
  const project = join(workplace.projects, '-home-dev-requests');
  cpSync(recorded, project, { recursive: true });
  for (const name of readdirSync(project, { recursive: true, encoding: 'utf8' })) utimesSync(join(project, name), 0, 0);
  await run(['backfill', '--yes', '--all'], workplace.env);
  const counts = generations().map(({ metadata }) =>
    Object.entries(metadata).filter(([name]) => /^request_[ms]/.test(name)),
  );
  expect(counts).toEqual([2, 4, 6, 8, 10, 12, 2, 14, 5, 16, 6, 8, 10].map((count) => [['request_messages', count]]));
});

describe('a generation does not have its request as input', () => {
  const session = () => new ScriptedSession().remind(WEATHER).prompt('question').answer(text('answer'));

  test.each([
    ['unless CC_LANGFUSE_INPUT is request', { CC_LANGFUSE_INPUT: undefined }, [user('question')]],
    ['if CC_LANGFUSE_CAPTURE is no_tool_io', { CC_LANGFUSE_CAPTURE: 'no_tool_io' }, [user('question')]],
    ['if CC_LANGFUSE_CAPTURE is metadata', { CC_LANGFUSE_CAPTURE: 'metadata' }, undefined],
  ])('%s', async (_, env, input) => {
    workplace.env = { ...workplace.env, ...env };
    await live(session());
    expect(generations()[0]?.input).toEqual(input);
    expect(generations()[0]?.metadata).not.toHaveProperty('request_messages');
  });

  test('if it is from a version of Claude Code that does not record requests', async () => {
    const answer = assistant('m', [text('answer')], { timestamp: at(2) });
    appendLines(transcript(), userLine('question', { uuid: 'u', timestamp: at(1) }), answer);
    await stop();
    expect(generations()).toMatchObject([{ input: [user('question')], metadata: { message_id: 'm' } }]);
    expect(Object.keys(generations()[0]?.metadata ?? {}).filter((name) => name.startsWith('request'))).toEqual([]);
  });
});

describe('a generation keeps its own input', () => {
  const turn = (...lines: object[]) => [
    ...lines,
    userLine('question', { uuid: 'u', timestamp: at(1) }),
    assistant('m', [text('answer')], { timestamp: at(2), requestRef: 'r' }),
  ];

  test.each([
    [
      'and says so if the messages of the request are missing',
      turn(shapeLine(SHAPE), requestLine('r', [user('x')])),
      { request_missing: true },
    ],
    [
      'and says so if the line of the request has no tail',
      turn({ type: 'api-request', id: 'r', timestamp: at(0) }),
      { request_missing: true },
    ],
    ['if there is no line for the request', turn(), {}],
  ])('%s', async (_, lines, expected) => {
    appendLines(transcript(), ...lines);
    await stop();
    const [{ input, metadata = {} } = {}] = generations();
    expect(input).toEqual([user('question')]);
    expect(Object.fromEntries(Object.entries(metadata).filter(([name]) => name.startsWith('request')))).toEqual(
      expected,
    );
  });

  test('only if every message of the request is missing', async () => {
    appendLines(transcript(), shapeLine(SHAPE));
    appendFileSync(transcript(), `${JSON.stringify(blobLine(WEATHER)).slice(0, -9)}\n`);
    appendLines(transcript(), ...turn(requestLine('r', [WEATHER, user('question')])));
    await stop();
    expect(generations()).toMatchObject([
      {
        input: [SYSTEM, { content: '[1 message not found in the transcript]' }, user('question')],
        metadata: { request_messages: 2, request_messages_missing: 1 },
      },
    ]);
    expect(workplace.log).toEqual([]);
  });
});

test('a request is redacted and cut like every other field', async () => {
  const key = `sk-ant-api03-${'aB3dE6gH9'.repeat(10)}AA`;
  workplace.env = { ...workplace.env, CC_LANGFUSE_MAX_CHARS: '1000' };
  const session = new ScriptedSession().remind({ role: 'system', content: `The key is ${key}.` });
  session
    .prompt('one')
    .answer(text('1'.repeat(460)))
    .prompt('two')
    .answer(text('2'.repeat(460)));
  await live(session.prompt('three').answer(text('Three.')));
  expect(generations().map(({ input }) => input)).toEqual([
    [SYSTEM, { role: 'system', content: 'The key is [redacted].' }, user('one')],
    [SYSTEM, { role: 'system', content: 'The key is [redacted].' }, user('one'), said('1'.repeat(460)), user('two')],
    [
      SYSTEM,
      { role: 'system', content: '[3 older messages left out]' },
      user('two'),
      said('2'.repeat(460)),
      user('three'),
    ],
  ]);
  expect(generations()[2]?.metadata).toMatchObject({ request_messages: 6, request_messages_left_out: 3 });
});

test('the metadata has no length of an input that the request replaces', async () => {
  workplace.env = { ...workplace.env, CC_LANGFUSE_MAX_CHARS: '1000' };
  const session = new ScriptedSession().prompt('go');
  session
    .answer(toolUse('t1'), toolUse('t2'))
    .results(toolResult('t1', 'x'.repeat(900)), toolResult('t2', 'y'.repeat(900)));
  await live(session.answer(text('Done.')));
  expect(generations()[1]?.metadata).not.toHaveProperty('input_full_chars');
});

test('a preview shows the requests, too', async () => {
  appendLines(transcript(), ...new ScriptedSession().remind(WEATHER).prompt('question').answer(text('a')).takeLines());
  const { stdout } = await run(['preview', '--json', SESSION], workplace.env);
  expect(JSON.stringify(JSON.parse(stdout))).toContain(JSON.stringify([SYSTEM, WEATHER, user('question')]));
});
