import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { withReader } from '../../../src/transcript/file/lines.js';
import { UnknownCounts } from '../../../src/transcript/file/unknown.js';
import { assistant, linesOf, text, toolResult, toolUse, user } from '../../support/lines.js';
import { recordings } from '../../support/recording.js';

function count(...contents: object[]): UnknownCounts {
  const counts = new UnknownCounts();
  const lines = contents.map((content) => Buffer.from(JSON.stringify(content)));
  counts.addAll(lines.map((bytes, index) => ({ number: index + 1, start: 0, end: bytes.length, bytes })));
  return counts;
}

const unknownOf = (...contents: object[]) => count(...contents).names;

test.each(recordings())('everything in a recording is known: $name', ({ folder }) => {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /[0-9a-f-]{36}\.jsonl$|agent-\w+\.jsonl$/.test(name),
  );
  const counts = new UnknownCounts();
  for (const name of names) withReader(join(folder, name), (reader) => counts.addAll(reader.lines()));
  expect(names).not.toEqual([]);
  expect(counts.names).toEqual([]);
});

describe('what this version does not know has the name that Claude Code gave it', () => {
  test.each([
    ['a line', { type: 'tea-break', minutes: 5 }, ['line type tea-break']],
    ['a line with an uuid', { type: 'tea-break', uuid: 'a', parentUuid: 'b' }, ['line type tea-break']],
    ['a subtype', { type: 'system', subtype: 'tea_break' }, ['system subtype tea_break']],
    ['an attachment', { type: 'attachment', attachment: { type: 'tea_break', words: 'x' } }, ['attachment tea_break']],
    [
      'an attachment whose body is not parsed',
      { parentUuid: null, isSidechain: false, attachment: { type: 'tea' }, type: 'attachment', uuid: 'a' },
      ['attachment tea'],
    ],
    ['a block', assistant('m', [text('hi'), { type: 'tea', words: 'x' }]), ['block tea']],
    ['an origin', user('hi', { origin: { kind: 'kettle' } }), ['origin kettle']],
    ['fields of lines', user('hi', { uuid: 'a', tea: true, cups: 2 }), ['user field tea', 'user field cups']],
    [
      'fields of a message and of its usage',
      { type: 'assistant', message: { id: 'm', tea: 1, usage: { input_tokens: 1, tea_tokens: 2 } } },
      ['message field tea', 'usage field tea_tokens'],
    ],
    ['a type that each object has', { type: 'constructor' }, ['line type constructor']],
  ])('%s', (_, line, names) => {
    expect(unknownOf(line)).toEqual(names);
  });

  test('tools, and what they return, have any names', () => {
    const call = { ...toolUse('t'), type: 'kettle_tool_use' };
    const result = { ...toolResult('t', [{ type: 'tea' }]), type: 'kettle_tool_result' };
    expect(unknownOf(assistant('m', [call]), user([result], { toolUseResult: { cups: 2 } }))).toEqual([]);
  });

  test('what is no short name could be content, and is not shown', () => {
    const secret = 'my password is hunter2';
    const found = unknownOf(
      { type: secret },
      { type: 'système' },
      { type: 'a'.repeat(41) },
      { uuid: 'a' },
      { type: 'system', subtype: secret },
      { type: 'attachment', attachment: { type: secret, [secret]: 1 } },
      user([{ type: secret }], { [secret]: 1 }),
      assistant('m', [], { message: { [secret]: 1, usage: { [secret]: 1 } } }),
    );
    expect(found.toSorted()).toEqual([
      'attachment ?',
      'block ?',
      'line type ?',
      'line type undefined',
      'message field ?',
      'system subtype ?',
      'usage field ?',
      'user field ?',
    ]);
  });
});

describe('counts', () => {
  test('name the most frequent first, without those that are known', () => {
    const counts = count({ type: 'tea' }, { type: 'cake' }, { type: 'cake' }, { type: 'milk' });
    expect(counts.names).toEqual(['line type tea', 'line type cake', 'line type milk']);
    expect(counts.format()).toBe('line type cake (2), line type milk (1), line type tea (1)');
    expect(counts.format(['line type cake'])).toBe('line type milk (1), line type tea (1)');
    expect(counts.format(counts.names)).toBe('');
  });

  test('leave out fields if only types are asked for, as exports do', () => {
    const counts = new UnknownCounts();
    for (const line of linesOf([user('hi', { tea: true }), { type: 'tea' }])) counts.addTypes(line);
    expect(counts.names).toEqual(['line type tea']);
  });

  test('have a bound, whatever the file is', () => {
    const counts = count(...Array.from({ length: 500 }, (_, n) => ({ type: `t${n}` })));
    expect(counts.names).toHaveLength(100);
    expect(counts.format()).toMatch(/^line type t0 \(1\), line type t1 \(1\), line type t10 \(1\), .*, and 88 more$/);
  });
});
