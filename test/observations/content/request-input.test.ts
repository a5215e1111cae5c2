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

/** A request with these messages, the oldest first; a number stands for so many that are not to be found. */
function requestOf(messages: readonly (RequestMessage | number | undefined)[], shape: unknown = SHAPE): SentRequest {
  const parts = messages.map((message) =>
    typeof message === 'number' ? ({ kind: 'missing', count: message } as const) : stored(message),
  );
  const count = parts.reduce((total, part) => total + (part.kind === 'missing' ? part.count : 1), 0);
  return { count, shape: shape ? stored(shape as typeof SHAPE) : undefined, messages: parts.toReversed() };
}

function inputsWith(settings: Partial<ContentSettings> = {}) {
  return new RequestInputBuilder({ maxChars: 200_000, redact: undefined, capture: 'full', media: true, ...settings });
}

function inputOf(...messages: readonly (RequestMessage | number | undefined)[]) {
  return inputsWith().build(requestOf(messages));
}

const user = (content: unknown) => ({ role: 'user', content });
const said = (content: unknown) => ({ role: 'assistant', content });
const mark = (content: string) => ({ role: 'system', content });

describe('a request as Langfuse draws it', () => {
  test('begins with the system prompt and the tools; what each tool answered is a message of its own', () => {
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
        { role: 'tool', tool_call_id: 't1', content: 'alpha' },
        { role: 'tool', tool_call_id: 't2', content: 'be\nta' },
        user('And be quick.'),
      ],
      media: [],
      metadata: { request_messages: 4 },
    });
  });

  test('has what a tool of the server found behind its call', () => {
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
      { role: 'tool', tool_call_id: 's', content: 'X https://x.test' },
    ]);
  });

  test.each([
    ['no tools', { system: [text('Hi.')] }, { role: 'system', content: 'Hi.' }],
    ['a system prompt that is a text', { system: 'Hi.', tools: [] }, { role: 'system', content: 'Hi.' }],
    ['tools that are none', { system: 'Hi.', tools: ['Read', null] }, { role: 'system', content: 'Hi.' }],
    ['nothing in it', {}, { role: 'system', content: '' }],
    [
      'a tool of the server',
      { system: 'Hi.', tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }] },
      { role: 'system', content: 'Hi.', tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }] },
    ],
  ])('has a shape with %s', (_, shape, system) => {
    expect(inputsWith().build(requestOf([user('Hi.')], shape))?.input).toEqual([system, user('Hi.')]);
  });

  test.each([
    ['content that is nothing', { role: 'user' }, user('')],
    ['a role of its own', { role: 'oracle', content: 'x' }, { role: 'oracle', content: 'x' }],
    ['content of another type', { role: 'user', content: 7 }, user('')],
  ])('has a message with %s', (_, message, expected) => {
    expect(inputOf(message as RequestMessage)?.input).toEqual([SYSTEM, expected]);
  });
});

describe('what is not to be found is told', () => {
  test.each([
    [
      'at its place, neighbours in one',
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
      'where it is the newest',
      [user('a'), 1],
      [user('a'), mark('[1 message not found in the transcript]')],
      { request_messages: 2, request_messages_missing: 1 },
    ],
  ])('%s', (_, messages, input, metadata) => {
    expect(inputOf(...messages)).toEqual({ input: [SYSTEM, ...input], media: [], metadata });
  });

  test('of the system prompt, too', () => {
    const expected = { input: [user('a')], media: [], metadata: { request_messages: 1, request_system_missing: true } };
    expect(inputsWith().build(requestOf([user('a')], null))).toEqual(expected);
    const torn: SentRequest = { ...requestOf([user('a')]), shape: stored<typeof SHAPE>(undefined) };
    expect(inputsWith().build(torn)).toEqual(expected);
  });

  test('by giving none where no message is', () => {
    expect(inputOf()).toBeUndefined();
    expect(inputOf(3)).toBeUndefined();
    expect(inputOf(undefined)).toBeUndefined();
  });
});

describe('no more than the limit is sent', () => {
  const long = 'y'.repeat(1_000);
  const shape = { system: 'z'.repeat(5_000), tools: SHAPE.tools };

  test('of the messages the newest, and how many were before them', () => {
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

  test('of the newest message its beginning, where it alone is longer', () => {
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

  test('of the system prompt and the tools half of it', () => {
    const request = inputsWith({ maxChars: 1_001 }).build(requestOf([user('a')], shape));
    expect(request?.input[0]).toMatchObject({
      content: expect.stringMatching(/^z+… \[45\d\d more characters\]$/),
      tools: [{ name: 'Read' }],
    });
    expect(request?.input[1]).toEqual(user('a'));
  });

  test('not one message after the other is looked for, once the room is used up', () => {
    let asked = 0;
    function* endless() {
      for (;;) {
        asked += 1;
        yield stored(user(`${asked} ${long}`));
      }
    }
    const request = inputsWith({ maxChars: 10_000 }).build({ count: 1e9, shape: undefined, messages: endless() });
    expect(request?.metadata).toMatchObject({ request_messages: 1e9, request_messages_left_out: 1e9 - asked + 1 });
    expect(asked).toBeLessThan(12);
  });
});

describe('secrets', () => {
  const key = `sk-ant-api03-${'aB3dE6gH9'.repeat(10)}AA`;

  test('go before anything is cut, wherever they stand', () => {
    const request = requestOf([user(`It is ${key}`), said([toolUse('t', 'Bash', { command: `echo ${key}` })])], {
      system: `Use ${key}`,
      tools: [{ name: 'T', description: key, input_schema: { type: 'object' } }],
    });
    for (const maxChars of [40, 100, 200_000])
      expect(JSON.stringify(inputsWith({ maxChars, redact: createRedactor([]) }).build(request))).not.toContain(
        'aB3dE6',
      );
  });
});

test('what two requests have in common is read once', () => {
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

describe('images and documents', () => {
  const image = (bytes: string) => ({
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: Buffer.from(bytes).toString('base64') },
  });
  const shownIn = (input: unknown) => JSON.stringify(input).match(/@@@langfuseMedia:[^@]+@@@|\[image [^\]]+\]/g) ?? [];

  test('are referred to, in what was said and in what tools gave', () => {
    const request = inputOf(user([text('See.'), image('one'), toolResult('t', [image('two')])]));
    const [two, one] = request?.media ?? [];
    expect([one, two].map((each) => String(each?.bytes()))).toEqual(['one', 'two']);
    const shown = (reference = '') => ({ type: 'image_url', image_url: { url: reference } });
    expect(request?.input.slice(1)).toEqual([
      { role: 'tool', tool_call_id: 't', content: [shown(two?.reference)] },
      user([text('See.'), shown(one?.reference)]),
    ]);
  });

  test('that are older than the newest 20 stand in words, and are not kept', () => {
    const inputs = inputsWith();
    const messages = Array.from({ length: 20 }, (_, n) => user([image(`picture ${n}`)]));
    const before = inputs.build(requestOf(messages));
    expect(shownIn(before?.input)).toEqual(before?.media.map(({ reference }) => reference).toReversed());
    const after = inputs.build(requestOf([...messages, said('nice'), user([image('another'), image('one more')])]));
    const shown = shownIn(after?.input);
    expect(shown).toHaveLength(22);
    expect(shown.slice(0, 2)).toEqual(
      before?.media
        .slice(-2)
        .map(({ placeholder }) => placeholder)
        .toReversed(),
    );
    expect(shown.slice(2).every((each) => each.startsWith('@@@'))).toBe(true);
    expect(after?.media).toHaveLength(20);
  });

  test('that stood in words are shown again by a request that has room for them, as after a rewind', () => {
    const inputs = inputsWith();
    const first = requestOf([user([image('first')])]);
    const many = Array.from({ length: 20 }, (_, n) => user([image(`picture ${n}`)]));
    inputs.build(requestOf([user([image('first')]), ...many]));
    const again = inputs.build(first);
    expect(shownIn(again?.input)).toEqual([expect.stringMatching(/^@@@/)]);
    expect(again?.media.map(({ bytes }) => String(bytes()))).toEqual(['first']);
  });

  test('that are to stay at home stand in words', () => {
    const inputs = inputsWith({ media: false });
    const request = inputs.build(requestOf([user([text('See.'), image('one')])]));
    expect(request?.input.at(-1)).toEqual(user('See.\n[image image/png, 3 bytes, sha256 7692c3ad3540bb80]'));
    expect(request?.media).toEqual([]);
  });
});
