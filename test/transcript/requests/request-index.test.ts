import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readLines } from '../../../src/transcript/file/lines.js';
import { RequestIndex } from '../../../src/transcript/requests/request-index.js';
import { assistant, jsonLines, text, toolResult, toolUse, user } from '../../support/lines.js';
import { blobLine, inBlocks, requestLine, ScriptedSession, SHAPE, shapeLine } from '../../support/requests.js';

let folder: string;
let path: string;
const opened: RequestIndex[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-requests-'));
  path = join(folder, 'session.jsonl');
});

afterEach(() => {
  for (const index of opened.splice(0)) index.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Writes a file with these lines, and returns an index that has read them, or those from an offset on. */
function indexOf(lines: readonly (object | string)[], from = 0): RequestIndex {
  const texts = lines.map((line) => (typeof line === 'string' ? `${line}\n` : jsonLines([line])));
  writeFileSync(path, texts.join(''));
  return indexFrom(from);
}

function indexFrom(from: number): RequestIndex {
  const index = new RequestIndex(path);
  opened.push(index);
  for (const line of readLines(path)) if (line.location.start >= from) index.addLine(line);
  return index;
}

/** Reads the messages of a request, oldest first. */
function messagesOf(index: RequestIndex, id: string): unknown[] {
  const { messages = [] } = index.find(id) ?? {};
  return [...messages].map((message) => (message.kind === 'stored' ? message.read() : message)).toReversed();
}

const question = { role: 'user', content: 'question' };
const missing = (count: number) => ({ kind: 'missing', count });

describe('a request is found', () => {
  const session = new ScriptedSession()
    .remind({ role: 'system', content: 'It is a fine day.' })
    .prompt('What is in both?')
    .answer(
      text('I look.'),
      toolUse('t1', 'Read', { 10: 'ten', 9: 'nine', b: 1, a: { z: null, é: 'ü' } }),
      toolUse('t2'),
    )
    .results(toolResult('t1', 'alpha'), toolResult('t2', [text('beta')]))
    .answer(text('Alpha and beta.'))
    .resume()
    .prompt('And now?')
    .answer(text('Nothing.'))
    .prompt('Then?')
    .answer(text('Nothing more.'));
  const lines = session.takeLines();

  test.each(session.sent)('with all its messages from blobs, user lines, responses and tool results: $id', (sent) => {
    const index = indexOf(lines);
    expect(index.find(sent.id)?.count).toBe(sent.messages.length);
    expect(messagesOf(index, sent.id)).toEqual(sent.messages.map((message) => withBlobsAsTheyAre(message)));
    expect(index.find(sent.id)?.shape?.read()).toEqual(SHAPE);
  });

  /** A blob contains the message as it was sent; messages from lines have lists of blocks. */
  function withBlobsAsTheyAre(message: { role: string; content: unknown }) {
    return message.role === 'system' ? message : inBlocks(message);
  }

  test('with only those blocks of a response that came before the request', () => {
    const asked = requestLine('b', [question, { role: 'assistant', content: [toolUse('t')] }, question]);
    const half = assistant('m', [toolUse('t')]);
    const index = indexOf([shapeLine(SHAPE), user('question'), half, asked, assistant('m', [text('and more')])]);
    expect(messagesOf(index, 'b')[1]).toEqual({ role: 'assistant', content: [toolUse('t')] });
  });

  test('even if other lines are between those of a response', () => {
    const said = { role: 'assistant', content: [text('one'), text('two')] };
    const lines = [assistant('m', [text('one')]), user('question'), assistant('m', [text('two')])];
    expect(messagesOf(indexOf([...lines, requestLine('a', [question, said])]), 'a')).toEqual([
      inBlocks(question),
      said,
    ]);
  });

  test('if it keeps fewer messages than the request before it had', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((content) => ({ role: 'user', content })) as [object, object, object];
    const blobs = [a, b, c].map((message) => blobLine(message as typeof question));
    const tails = [a, b, c].map((message) => [message as typeof question]);
    const index = indexOf([
      ...blobs,
      requestLine('1', [...(tails[0] ?? []), ...(tails[1] ?? [])]),
      requestLine('2', tails[2] ?? [], { base: '1', keep: 1 }),
      requestLine('3', [], { base: '2', keep: 2 }),
    ]);
    expect(messagesOf(index, '3')).toEqual([a, c]);
  });
});

describe('a run that begins in the middle of a file', () => {
  const filler = (bytes: number) => blobLine({ role: 'user', content: 'x'.repeat(bytes) });

  /** Builds a session whose second process begins after the fillers. Returns that offset, too. */
  function resumedAfter(...fillers: readonly object[]) {
    const session = new ScriptedSession().prompt('early').answer(text('One.'), text('Two.'));
    const before = [...session.takeLines(), ...fillers];
    const after = session.resume().prompt('late').answer(text('Three.')).takeLines();
    return { lines: [...before, ...after], from: Buffer.byteLength(jsonLines(before)), sent: session.sent };
  }

  test.each([
    ['at the start of the file', []],
    ['at the start of a longer file', [filler(1_500_000)]],
    ['so far back that it has to look twice', [filler(1_500_000), filler(1_500_000)]],
  ])('finds what it needs %s', (_, fillers) => {
    const { lines, from, sent } = resumedAfter(...fillers);
    const index = indexOf(lines, from);
    expect(messagesOf(index, 'request-2')).toEqual(sent[1]?.messages.map(inBlocks));
    expect(index.find('request-2')?.shape?.read()).toEqual(SHAPE);
  });

  test('finds the earlier request on which its first request is based', () => {
    const session = new ScriptedSession().prompt('early').answer(text('One.'));
    const before = session.takeLines();
    const after = session.prompt('late').answer(text('Two.')).takeLines();
    const index = indexOf([...before, ...after], Buffer.byteLength(jsonLines(before)));
    expect(messagesOf(index, 'request-2')).toEqual(session.sent[1]?.messages.map(inBlocks));
  });

  test('does not look further back than 32 MB, and counts what is missing', () => {
    const session = new ScriptedSession().prompt('first').answer(text('One.'));
    const top = [...session.takeLines(), ...Array.from({ length: 3 }, () => filler(500_000))];
    const deep = session.prompt('second').answer(text('Two.')).takeLines();
    const after = session.prompt('third').answer(text('Three.')).takeLines();
    const before = [...top, ...deep, filler(17_000_000), filler(17_000_000)];
    const index = indexOf([...before, ...after], Buffer.byteLength(jsonLines(before)));
    expect(messagesOf(index, 'request-3')).toEqual([
      missing(3),
      missing(1),
      inBlocks({ role: 'user', content: 'third' }),
    ]);
    expect(index.find('request-3')?.shape?.read()).toEqual(SHAPE);
  });

  test('reads all of a response that begins before the part that it read first', () => {
    const one = text('1'.repeat(1_200_000));
    const said = { role: 'assistant', content: [one, text('2'.repeat(1_000_000)), text('3'.repeat(1_000_000))] };
    const before = [filler(1_200_000), ...said.content.map((block) => assistant('m', [block]))];
    const index = indexOf([...before, requestLine('a', [said])], Buffer.byteLength(jsonLines(before)));
    expect(messagesOf(index, 'a')).toEqual([said]);
  });
});

describe('only what is malformed is missing:', () => {
  test.each([
    [
      'a hash that names nothing',
      [requestLine('a', [question, { role: 'user', content: 'gone' }])],
      [question, missing(1)],
    ],
    ['a base that does not exist', [requestLine('a', [question], { base: 'none', keep: 3 })], [missing(3), question]],
    ['messages that are kept without a base', [requestLine('a', [question], { keep: 3 })], [missing(3), question]],
    [
      'a base that is based on the request itself',
      [requestLine('b', [], { base: 'a', keep: 9 }), requestLine('a', [question], { base: 'b', keep: 9 })],
      [missing(9), question],
    ],
    ['a request that is its own base', [requestLine('a', [question], { base: 'a', keep: 1 })], [missing(1), question]],
    [
      'more messages kept than the base has',
      [requestLine('b', [question]), requestLine('a', [question], { base: 'b', keep: 1e9 })],
      [missing(1e9), question],
    ],
    ['a request line without a tail', [{ type: 'api-request', id: 'a', keep: 0 }], []],
    ['a tail that is not a list of hashes', [requestLine('a', [], { tail: [1, null] })], []],
    ['a tail that is a text', [requestLine('a', [], { tail: 'abc' })], []],
    ['a negative number of kept messages', [requestLine('a', [question], { keep: -1 })], []],
    ['half a message kept', [requestLine('a', [question], { keep: 0.5 })], []],
    ['more messages kept than can be counted', [requestLine('a', [question], { keep: Number.MAX_SAFE_INTEGER })], []],
  ])('%s', (_, lines, expected) => {
    expect(messagesOf(indexOf([blobLine(question), ...lines]), 'a')).toEqual(expected);
  });

  test.each([
    ['torn', JSON.stringify(blobLine(question)).slice(0, -9)],
    ['not JSON', JSON.stringify(blobLine(question)).replace('{"role"', '{role')],
    ['without a message', JSON.stringify(blobLine(question)).replace('"message"', '"massage"')],
    ['with a message that is not an object', JSON.stringify({ ...blobLine(question), message: ['question'] })],
    ['without a role', JSON.stringify({ ...blobLine(question), message: { content: 'question' } })],
  ])('a blob that is %s', (_, line) => {
    const index = indexOf([line, requestLine('a', [question])]);
    expect(messagesOf(index, 'a')).toEqual([undefined]);
  });

  test.each([
    ['is missing', []],
    ['is torn', [JSON.stringify(shapeLine(SHAPE)).slice(0, -9)]],
  ])('a shape that %s', (_, lines) => {
    const request = indexOf([...lines, requestLine('a', [])]).find('a');
    expect(request?.count).toBe(0);
    expect(request?.shape?.read()).toBeUndefined();
  });

  test('a request without a line', () => {
    expect(indexOf([]).find('a')).toBeUndefined();
  });

  test('a line that is nested too deeply', () => {
    const deep = `{"type":"user","message":{"role":"user","content":[${'['.repeat(50_000)}${']'.repeat(50_000)}]}}`;
    expect(messagesOf(indexOf([deep, blobLine(question), requestLine('a', [question])]), 'a')).toEqual([question]);
  });

  test('messages of a file that was cut or removed', () => {
    const index = indexOf([user('question'), requestLine('a', [question])]);
    truncateSync(path, 20);
    expect(messagesOf(index, 'a')).toEqual([undefined]);
    const late = indexOf([user('early'), user('question'), requestLine('a', [{ role: 'user', content: 'early' }])], 70);
    rmSync(path);
    expect(messagesOf(late, 'a')).toEqual([missing(1)]);
  });

  test('the messages of a request that is based on 100,000 others', () => {
    const chain = Array.from({ length: 100_000 }, (_, n) =>
      JSON.stringify({ type: 'api-request', id: `r${n + 1}`, base: `r${n}`, keep: 1, tail: [] }),
    );
    const index = indexOf([blobLine(question), requestLine('r0', [question]), ...chain]);
    expect(messagesOf(index, 'r99999')).toEqual([question]);
    expect(messagesOf(index, 'r100000')).toEqual([missing(1)]);
  });
});

test('an index does not keep the bodies of messages in memory', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const session = new ScriptedSession();
  for (let turn = 0; turn < 200; turn += 1) session.prompt(`${turn} ${'x'.repeat(100_000)}`).answer(text('Yes.'));
  writeFileSync(path, jsonLines(session.takeLines()));
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const index = indexFrom(0);
  collectGarbage();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(2_000_000);
  expect(messagesOf(index, 'request-200')).toHaveLength(399);
});
