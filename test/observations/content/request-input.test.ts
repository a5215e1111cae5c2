import { describe, expect, test } from 'vitest';
import { RequestInputBuilder } from '../../../src/observations/content/request-input.js';
import type { ContentSettings } from '../../../src/observations/model.js';
import { createRedactor } from '../../../src/observations/redaction/redact.js';
import type { RequestMessage } from '../../../src/transcript/file/schema.js';
import type { SentRequest } from '../../../src/transcript/requests/request-index.js';
import { text, toolResult, toolUse } from '../../support/lines.js';
import { SHAPE } from '../../support/requests.js';

const SYSTEM = {
  role: 'system',
  content: 'You are an agent.\nBe brief.',
  tools: [{ name: 'Read', description: 'Reads a file.', parameters: { type: 'object', properties: {} } }],
};

function stored<T>(value: T | undefined, hash = JSON.stringify(value) ?? 'lost') {
  return { kind: 'stored', hash, read: () => value } as const;
}

/** Builds a request with these messages, oldest first; a number is a count of messages that cannot be found. */
function requestOf(messages: readonly (RequestMessage | number | undefined)[], shape: unknown = SHAPE): SentRequest {
  const parts = messages.map((message) =>
    typeof message === 'number' ? ({ kind: 'missing', count: message } as const) : stored(message),
  );
  const count = parts.reduce((total, part) => total + (part.kind === 'missing' ? part.count : 1), 0);
  return { count, shape: shape ? stored(shape as typeof SHAPE) : undefined, messages: parts.toReversed() };
}

function inputsWith(settings: Partial<ContentSettings> = {}) {
  const whole = { maxChars: 200_000, redact: undefined, capture: 'full', media: true, input: 'request' } as const;
  return new RequestInputBuilder({ ...whole, ...settings });
}

function inputOf(...messages: readonly (RequestMessage | number | undefined)[]) {
  return inputsWith().build(requestOf(messages));
}

const user = (content: unknown) => ({ role: 'user', content });
const said = (content: unknown) => ({ role: 'assistant', content });
const mark = (content: string) => ({ role: 'system', content });

describe('the input that is built from a request', () => {
  test('begins with the system prompt and the tools, and has a message for each tool result', () => {
    const request = inputOf(
      user('Look at both.'),
      { role: 'system', content: [text('It is a fine day.')], output_config: { effort: 'high' } },
      said([
        { type: 'thinking', thinking: 'Both.', signature: 'c2ln' },
        text('I look.'),
        toolUse('t1', 'Read', { file_path: 'a.txt' }),
        toolUse('t2', 'Read', { file_path: 'b.txt' }),
      ]),
      user([toolResult('t1', 'alpha'), toolResult('t2', [text('be'), text('ta')]), text('And be quick.')]),
    );
    expect(request).toEqual({
      input: [
        SYSTEM,
        user('Look at both.'),
        mark('It is a fine day.'),
        {
          role: 'assistant',
          content: 'I look.',
          thinking: [{ type: 'thinking', content: 'Both.' }],
          tool_calls: [
            { id: 't1', type: 'function', function: { name: 'Read', arguments: '{"file_path":"a.txt"}' } },
            { id: 't2', type: 'function', function: { name: 'Read', arguments: '{"file_path":"b.txt"}' } },
          ],
        },
        { role: 'tool', name: 'Read', tool_call_id: 't1', content: 'alpha' },
        { role: 'tool', name: 'Read', tool_call_id: 't2', content: 'be\nta' },
        user('And be quick.'),
      ],
      media: [],
      metadata: { request_messages: 4 },
    });
  });

  test('has the result of a server tool after its call', () => {
    const search = [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 's',
        content: [{ type: 'web_search_result', title: 'X', url: 'https://x.test' }],
      },
    ];
    expect(inputOf(user('Look.'), said(search))?.input.slice(2)).toEqual([
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 's', type: 'function', function: { name: 'web_search', arguments: '{"query":"x"}' } }],
      },
      { role: 'tool', name: 'web_search', tool_call_id: 's', content: 'X https://x.test' },
    ]);
  });

  test.each([
    ['has no tools', { system: [text('Hi.')] }, { role: 'system', content: 'Hi.' }],
    ['has a text as system prompt', { system: 'Hi.', tools: [] }, { role: 'system', content: 'Hi.' }],
    ['has tools that are not objects', { system: 'Hi.', tools: ['Read', null] }, { role: 'system', content: 'Hi.' }],
    ['is empty', {}, { role: 'system', content: '' }],
    [
      'has a server tool',
      { system: 'Hi.', tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }] },
      { role: 'system', content: 'Hi.', tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }] },
    ],
  ])('begins with a system message if the shape %s', (_, shape, system) => {
    expect(inputsWith().build(requestOf([user('Hi.')], shape))?.input).toEqual([system, user('Hi.')]);
  });

  test.each([
    ['without content', { role: 'user' }, user('')],
    ['with an unknown role', { role: 'oracle', content: 'x' }, { role: 'oracle', content: 'x' }],
    ['whose content is a number', { role: 'user', content: 7 }, user('')],
  ])('includes a message %s', (_, message, expected) => {
    expect(inputOf(message as RequestMessage)?.input).toEqual([SYSTEM, expected]);
  });
});

describe('messages that cannot be found', () => {
  test.each([
    [
      'between others',
      [2, user('a'), undefined, 1, said('b')],
      [
        mark('[2 messages not found in the transcript]'),
        user('a'),
        mark('[2 messages not found in the transcript]'),
        said('b'),
      ],
      { request_messages: 6, request_messages_missing: 4 },
    ],
    [
      'at the end',
      [user('a'), 1],
      [user('a'), mark('[1 message not found in the transcript]')],
      { request_messages: 2, request_messages_missing: 1 },
    ],
  ])('are replaced by their number: %s', (_, messages, input, metadata) => {
    expect(inputOf(...messages)).toEqual({ input: [SYSTEM, ...input], media: [], metadata });
  });

  test('are counted in the metadata, and a missing system prompt is named there', () => {
    const expected = { input: [user('a')], media: [], metadata: { request_messages: 1, request_system_missing: true } };
    expect(inputsWith().build(requestOf([user('a')], null))).toEqual(expected);
    const torn: SentRequest = { ...requestOf([user('a')]), shape: stored<typeof SHAPE>(undefined) };
    expect(inputsWith().build(torn)).toEqual(expected);
  });

  test('leave no input if there are no others', () => {
    expect(inputOf()).toBeUndefined();
    expect(inputOf(3)).toBeUndefined();
    expect(inputOf(undefined)).toBeUndefined();
  });
});

describe('a request that is longer than the limit', () => {
  const long = 'y'.repeat(1_000);
  const shape = { system: 'z'.repeat(5_000), tools: SHAPE.tools };

  test('is cut to the newest messages, with the number of the others', () => {
    const older = Array.from({ length: 10 }, (_, n) => user(`${n}${long}`));
    const request = inputsWith({ maxChars: 4_000 }).build(requestOf([2, ...older, said('newest')]));
    expect(request).toEqual({
      input: [
        SYSTEM,
        mark('[9 older messages left out]'),
        ...older.slice(-3),
        { role: 'assistant', content: 'newest' },
      ],
      media: [],
      metadata: { request_messages: 13, request_messages_left_out: 9 },
    });
  });

  test('is cut to the beginning of the newest message if that alone is longer', () => {
    const request = inputsWith({ maxChars: 1_000 }).build(
      requestOf([user('a'), user(long.repeat(5))], { system: 'Hi.' }),
    );
    expect(request?.input).toEqual([
      { role: 'system', content: 'Hi.' },
      mark('[1 older message left out]'),
      user(expect.stringMatching(/^y+… \[40\d\d more characters\]$/)),
    ]);
    expect(request?.metadata).toEqual({ request_messages: 2, request_messages_left_out: 1 });
  });

  test('has a system prompt and tools of at most half the limit', () => {
    const request = inputsWith({ maxChars: 1_001 }).build(requestOf([user('a')], shape));
    expect(request?.input[0]).toMatchObject({
      content: expect.stringMatching(/^z+… \[45\d\d more characters\]$/),
      tools: [{ name: 'Read' }],
    });
    expect(request?.input[1]).toEqual(user('a'));
  });

  test('is not read further back once the limit is reached', () => {
    let messagesRead = 0;
    function* endless() {
      for (;;) {
        messagesRead += 1;
        yield stored(user(`${messagesRead} ${long}`));
      }
    }
    const request = inputsWith({ maxChars: 10_000 }).build({ count: 1e9, shape: undefined, messages: endless() });
    expect(request?.metadata).toMatchObject({
      request_messages: 1e9,
      request_messages_left_out: 1e9 - messagesRead + 1,
    });
    expect(messagesRead).toBeLessThan(12);
  });
});

describe('secrets in a request', () => {
  const key = `sk-ant-api03-${'aB3dE6gH9'.repeat(10)}AA`;

  test('are removed before anything is cut, in the system prompt, the tools and the messages', () => {
    const request = requestOf([user(`It is ${key}`), said([toolUse('t', 'Bash', { command: `echo ${key}` })])], {
      system: `Use ${key}`,
      tools: [{ name: 'T', description: key, input_schema: { type: 'object' } }],
    });
    const inputWith = (maxChars: number) =>
      JSON.stringify(inputsWith({ maxChars, redact: createRedactor([]) }).build(request)?.input);
    expect(inputWith(200_000).match(/\[redacted\]/g)).toHaveLength(4);
    for (const maxChars of [40, 100, 200_000]) expect(inputWith(maxChars)).not.toContain('aB3dE6');
  });
});

test('a message that two consecutive requests contain is read once', () => {
  const read = new Map<string, number>();
  const counted = (content: string) => ({
    kind: 'stored' as const,
    hash: content,
    read: () => {
      read.set(content, (read.get(content) ?? 0) + 1);
      return user(content);
    },
  });
  const inputs = inputsWith();
  const request = (...contents: string[]) =>
    inputs.build({ count: contents.length, shape: undefined, messages: contents.map(counted).toReversed() })?.input;
  expect(request('a', 'b')).toEqual([user('a'), user('b')]);
  expect(request('a', 'b', 'c')).toEqual([user('a'), user('b'), user('c')]);
  expect(request('c')).toEqual([user('c')]);
  expect(request('a', 'c')).toEqual([user('a'), user('c')]);
  expect(Object.fromEntries(read)).toEqual({ a: 2, b: 1, c: 1 });
});

describe('the images of a request', () => {
  const image = (bytes: string) => ({
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: Buffer.from(bytes).toString('base64') },
  });
  const shownIn = (input: unknown) => JSON.stringify(input).match(/@@@langfuseMedia:[^@]+@@@|\[image [^\]]+\]/g) ?? [];

  test('become references, in messages and in tool results', () => {
    const request = inputOf(user([text('See.'), image('one'), toolResult('t', [image('two')])]));
    const [two, one] = request?.media ?? [];
    expect([one, two].map((each) => String(each?.bytes()))).toEqual(['one', 'two']);
    expect(request?.input.slice(1)).toEqual([
      { role: 'tool', tool_call_id: 't', content: [two?.reference] },
      user([text('See.'), one?.reference]),
    ]);
  });

  test('that are older than the newest 20 become placeholders, and are not kept', () => {
    const inputs = inputsWith();
    const messages = Array.from({ length: 20 }, (_, n) => user([image(`picture ${n}`)]));
    const before = inputs.build(requestOf(messages));
    expect(shownIn(before?.input)).toEqual(before?.media.map(({ reference }) => reference).toReversed());
    const after = inputs.build(requestOf([...messages, said('nice'), user([image('another'), image('one more')])]));
    const shown = shownIn(after?.input);
    expect(shown.slice(0, 2)).toEqual(
      before?.media
        .slice(-2)
        .map(({ placeholder }) => placeholder)
        .toReversed(),
    );
    expect(shown.slice(2).toSorted()).toEqual(after?.media.map(({ reference }) => reference).toSorted());
    expect(after?.media).toHaveLength(20);
  });

  test('that were placeholders are shown again by a later request with fewer images, as after a rewind', () => {
    const inputs = inputsWith();
    const first = requestOf([user([image('first')])]);
    const many = Array.from({ length: 20 }, (_, n) => user([image(`picture ${n}`)]));
    inputs.build(requestOf([user([image('first')]), ...many]));
    const again = inputs.build(first);
    expect(shownIn(again?.input)).toEqual([expect.stringMatching(/^@@@/)]);
    expect(again?.media.map(({ bytes }) => String(bytes()))).toEqual(['first']);
  });

  test('become placeholders if media is off', () => {
    const inputs = inputsWith({ media: false });
    const request = inputs.build(requestOf([user([text('See.'), image('one')])]));
    expect(request?.input.at(-1)).toEqual(user('See.\n[image image/png, 3 bytes, sha256 7692c3ad3540bb80]'));
    expect(request?.media).toEqual([]);
  });
});
