import { describe, expect, test } from 'vitest';
import * as z from '../../src/shared/schema.js';

const Line = z.object({
  name: z.string(),
  size: z.optional(z.count()),
  tags: z.optional(z.array(z.filledString())),
  kind: z.withDefault(z.oneOf('a', 'b'), 'a'),
  counts: z.optional(z.record(z.number())),
  content: z.optional(z.union(z.string(), z.object({ text: z.string() }))),
  rest: z.anything,
});

describe('an object', () => {
  test('has the fields that are expected, and no others', () => {
    const value = {
      name: '',
      size: 0,
      tags: ['x'],
      kind: 'b',
      counts: { one: 1.5 },
      content: { text: 'words' },
      rest: [1],
    };
    expect(Line.parse({ ...value, more: true })).toStrictEqual(value);
  });

  test.each([
    ['size', -1],
    ['size', 1.5],
    ['size', Number.MAX_SAFE_INTEGER + 1],
    ['tags', ['x', '']],
    ['tags', { 0: 'x' }],
    ['counts', { one: Number.POSITIVE_INFINITY }],
    ['counts', [1]],
    ['content', { text: 1 }],
    ['content', null],
  ])('does not have an optional field of the wrong kind: %s %j', (field, value) => {
    expect(Line.parse({ name: 'n', [field]: value })).toEqual({ name: 'n', kind: 'a' });
  });

  test('has the default in place of a value of the wrong kind, and of none', () => {
    expect([Line.parse({ name: 'n', kind: 'c' }), Line.parse({ name: 'n' })]).toEqual(
      Array(2).fill({ name: 'n', kind: 'a' }),
    );
  });

  test.each([[null], [[]], ['text'], [{}], [{ name: 1 }]])('is not %j', (value) => {
    expect(Line.find(value)).toBeUndefined();
    expect(() => Line.parse(value)).toThrow('expected');
  });

  test('is not taken apart by names that every object has', () => {
    const value = JSON.parse('{"__proto__": {"name": 1}, "constructor": 2}');
    expect(z.record(z.anything).parse(value)).toStrictEqual(value);
    expect(Line.find(value)).toBeUndefined();
  });
});

test('a mismatch names the place and what was expected there', () => {
  const { check } = z.object({ list: z.array(z.object({ id: z.string() })) });
  expect(check({ list: [{ id: 'a' }, { id: 1 }] })).toMatchObject({
    path: ['list', '1', 'id'],
    message: 'expected a string',
  });
});

test('a loose object keeps its other fields', () => {
  expect(z.looseObject({ role: z.string() }).parse({ role: 'user', more: 1 })).toEqual({ role: 'user', more: 1 });
});

test('a text can be required to match a pattern, and a value to be accepted by a function', () => {
  expect([z.matching(/^\d+$/).find('12'), z.matching(/^\d+$/).find('x')]).toEqual(['12', undefined]);
  expect([z.custom(Array.isArray).find([1]), z.custom(Array.isArray).find({})]).toEqual([[1], undefined]);
});
