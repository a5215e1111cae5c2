import { expect, test } from 'vitest';
import { compare } from '../../../src/commands/verify/compare.js';
import type { Expected } from '../../../src/commands/verify/expected.js';
import type { ReadObservation } from '../../../src/langfuse/observation-reader.js';

const TRACE = 'a'.repeat(32);

const expectedOf = (id: string, more: Partial<Expected> = {}): Expected => ({
  id,
  type: 'generation',
  startTime: 1_000,
  level: 'DEFAULT',
  model: 'm',
  usage: { input: 2, output: 3, total: 5 },
  kind: 'response',
  traceId: TRACE,
  turn: 1,
  messageId: `message ${id}`,
  ...more,
});
const rowOf = (id: string, more: Partial<ReadObservation> = {}): ReadObservation => ({
  id,
  traceId: TRACE,
  type: 'GENERATION',
  startTime: 1_000,
  level: 'DEFAULT',
  model: 'm',
  usage: { input: 2, output: 3, total: 5 },
  cost: 0.5,
  messageId: `message ${id}`,
  ...more,
});
const FOUND = { missing: [], different: [], twice: [], others: 0, cost: 0.5, modelsWithoutPrice: [] };

test('what is equal is found, and its costs are added up', () => {
  const expected = [expectedOf('x'), expectedOf('y')];
  const rows = [rowOf('y', { cost: 0.25 }), rowOf('x')];
  expect(compare(expected, rows)).toEqual({ ...FOUND, found: expected, cost: 0.75 });
});

test.each<[string, Partial<Expected>, Partial<ReadObservation>]>([
  [
    'a tool that is a span, as an older server has it',
    { type: 'tool', usage: undefined, model: undefined },
    { type: 'SPAN', usage: {}, model: undefined },
  ],
  ['only the total of tokens, as version 2 has it', {}, { usage: { total: 5 } }],
  [
    'no row for a kind of tokens that was not used',
    { usage: { input: 2, output: 3, cache_read_input_tokens: 0, total: 5 } },
    {},
  ],
  ['no level', {}, { level: undefined }],
])('no difference is: %s', (_, own, there) => {
  const expected = [expectedOf('x', own)];
  expect(compare(expected, [rowOf('x', there)])).toEqual({ ...FOUND, found: expected });
});

test.each<[string, Partial<ReadObservation>]>([
  ['type', { type: 'SPAN' }],
  ['start time', { startTime: 1_001 }],
  ['trace', { traceId: 'b'.repeat(32) }],
  ['tokens', { usage: { input: 2, output: 3, cache_read_input_tokens: 1, total: 5 } }],
  ['tokens', { usage: {} }],
  ['model', { model: undefined }],
  ['level', { level: 'ERROR' }],
])('a difference is named: %s %o', (field, there) => {
  const expected = expectedOf('x');
  expect(compare([expected], [rowOf('x', there)])).toMatchObject({
    different: [{ expected, fields: [field], traceId: there.traceId ?? TRACE }],
    twice: [],
  });
});

test('of rows with the same id, those that Langfuse will merge are told from those that it will not', () => {
  const expected = expectedOf('x');
  expect(compare([expected], [rowOf('x'), rowOf('x')]).twice).toEqual([
    { expected, how: 'unmerged', traceIds: [TRACE] },
  ]);
  // The one that is as expected is compared, whichever comes first.
  expect(compare([expected], [rowOf('x', { model: 'n' }), rowOf('x')])).toMatchObject({
    different: [],
    twice: [{ expected, how: 'unmerged', traceIds: [TRACE] }],
  });
  expect(compare([expected], [rowOf('x', { startTime: 9 }), rowOf('x')])).toMatchObject({
    different: [],
    twice: [{ expected, how: 'apart', traceIds: [TRACE] }],
  });
});

test('what is not expected is counted, unless it repeats a response or may be of a turn that is not over', () => {
  const expected = expectedOf('x');
  const rows = [
    rowOf('x'),
    rowOf('repeated', { messageId: 'message x', traceId: 'b' }),
    rowOf('other'),
    rowOf('early', { startTime: 2_000 }),
  ];
  expect(compare([expected], rows, 2_000)).toEqual({
    ...FOUND,
    found: [expected],
    twice: [{ expected, how: 'other id', traceIds: ['b'] }],
    others: 1,
  });
});

test('a model has no price if a response with tokens has no cost', () => {
  const expected = [
    expectedOf('x'),
    expectedOf('y', { model: 'n' }),
    expectedOf('z', { usage: undefined, model: undefined }),
  ];
  const rows = [
    rowOf('x'),
    rowOf('y', { model: 'n', cost: undefined }),
    rowOf('z', { usage: {}, model: undefined, cost: undefined }),
  ];
  expect(compare(expected, rows)).toEqual({ ...FOUND, found: expected, modelsWithoutPrice: ['n'] });
  expect(compare(expected, [])).toEqual({ ...FOUND, found: [], missing: expected, cost: undefined });
});
