import { describe, expect, test } from 'vitest';
import { addFacts, type Fact, fold } from '../../src/state/facts.js';
import type { RunIdentity } from '../../src/state/runs.js';

const A: RunIdentity = { destination: 'A', given: {} };
const B: RunIdentity = { destination: 'B', given: {} };
const [p1, p2] = ['1 here', '2 here'];

type More = { readonly source?: string; readonly alive?: string[] };
const start = (at: number, after: number, run: RunIdentity, { source = 'resume', alive = [] }: More = {}): Fact => ({
  kind: 'start',
  at,
  after,
  source,
  run,
  alive,
});
const end = (at: number, after: number, run?: RunIdentity, alive: string[] = []): Fact => ({
  kind: 'end',
  at,
  after,
  run,
  alive,
});
const off = (at: number, after: number): Fact => ({ kind: 'off', at, after });
const claim = (at: number, lines: number[], run: RunIdentity): Fact => ({ kind: 'claim', at, run, lines });
const took = (at: number, fromLine: number, toLine: number): Fact => ({ kind: 'took', at, run: A, fromLine, toLine });
const runsOf = (...facts: Fact[]) =>
  fold(facts).runs.map(({ fromLine, toLine, destination }) => [destination, fromLine, toLine]);
const claimsOf = (...facts: Fact[]) => fold(facts).claims.map(({ lines, endedAt }) => [lines, endedAt]);

describe('the runs that follow from facts', () => {
  test.each<[string, Fact[], unknown[]]>([
    ['nothing is known', [], []],
    ['one goes on', [start(1, 0, A)], [['A', 1, undefined]]],
    ['one has ended', [start(1, 0, A), end(2, 8, A)], [['A', 1, 8]]],
    ['it ended before its first line', [start(1, 4, A), end(2, 2, A)], [['A', 5, 4]]],
    [
      'it was killed, and another one with its settings begins',
      [start(1, 0, A), start(2, 6, A)],
      [['A', 1, undefined]],
    ],
    [
      'it was killed, and one with others begins',
      [start(1, 0, A), start(2, 6, B)],
      [
        ['A', 1, 6],
        ['B', 7, undefined],
      ],
    ],
    [
      'it ended, and is resumed',
      [start(1, 0, A), end(2, 4, A), start(3, 6, A)],
      [
        ['A', 1, 4],
        ['A', 7, undefined],
      ],
    ],
    [
      'it is compacted under other settings',
      [start(1, 0, A), start(2, 6, B, { source: 'compact' })],
      [['A', 1, undefined]],
    ],
    ['a compaction is the first that is seen', [start(2, 6, A, { source: 'compact' })], []],
    ['tracing was turned off', [start(1, 0, A), off(2, 5)], [['A', 1, 5]]],
    ['another one ends', [start(1, 0, A), end(2, 5, B)], [['A', 1, undefined]]],
    ['whichever goes on ends', [start(1, 0, A), end(2, 5)], [['A', 1, 5]]],
    [
      'a backfill took what was before it and in between',
      [start(1, 4, B), end(2, 8, B), took(3, 1, 4), took(4, 9, 10)],
      [
        ['A', 1, 4],
        ['B', 5, 8],
        ['A', 9, 10],
      ],
    ],
  ])('if %s', (_, facts, expected) => {
    expect(runsOf(...facts)).toEqual(expected);
  });

  test('with two processes at work, of which one has begun under other settings: its turns are those that its Stops name', () => {
    const first = { ...A, process: p1 };
    const second = { ...B, process: p2 };
    const both = [start(1, 0, first), start(2, 6, second, { alive: [p1] })];
    expect(runsOf(...both)).toEqual([
      ['A', 1, 6],
      ['B', 7, 6],
    ]);
  });

  test('with two processes under the same settings: the end of one is not that of the other', () => {
    const both = [start(1, 0, { ...A, process: p1 }), start(2, 6, { ...A, process: p2 }, { alive: [p1] })];
    expect(runsOf(...both, end(3, 8, { ...A, process: p2 }, [p1]))).toEqual([['A', 1, undefined]]);
    expect(runsOf(...both, end(3, 8, { ...A, process: p1 }))).toEqual([['A', 1, 8]]);
  });

  test('whatever the order in which they were written down', () => {
    const facts = [start(1, 0, A), claim(2, [1], A), end(3, 4, A), start(4, 6, B), off(5, 9)];
    expect(fold(facts.toReversed())).toEqual(fold(facts));
  });

  test('if the start of one was written after its end, up to the last prompt that its Stops named', () => {
    const late = start(4, 2, A, { source: 'startup' });
    expect(runsOf(claim(1, [3], A), claim(2, [5], A), end(3, 8, A), late)).toEqual([['A', 3, 5]]);
    expect(runsOf(claim(1, [3], A), late)).toEqual([['A', 3, undefined]]);
  });
});

test('what a Stop has named grows until its run ends', () => {
  expect(claimsOf(claim(1, [1], A), claim(2, [5, 7], B), end(3, 9, A))).toEqual([
    [[1], 3],
    [[5, 7], undefined],
  ]);
});

test('a mute goes on until the user ends it, whichever process was told of it', () => {
  const mute = (at: number, after: number, process?: string): Fact => ({ kind: 'mute', at, after, process });
  const unmute = (at: number, after: number): Fact => ({ kind: 'unmute', at, after });
  expect(fold([mute(1, 4), mute(2, 6, p1), unmute(3, 8), unmute(4, 9), mute(5, 9)]).mutes).toEqual([
    { fromLine: 5, toLine: 8, since: 1, until: 3, process: p1 },
    { fromLine: 10, since: 5, process: undefined },
  ]);
});

test('a destination that replaces a wrong one does so in what was known by then', () => {
  const adopt: Fact = { kind: 'adopt', at: 3, wrong: 'A', right: 'B' };
  expect(runsOf(start(1, 0, A), end(2, 4, A), adopt, start(4, 4, A))).toEqual([
    ['B', 1, 4],
    ['A', 5, undefined],
  ]);
});

test('facts are kept once, and what a backfill took of a run as far as it came', () => {
  const before = [start(1, 0, A), took(2, 1, 4)];
  expect(addFacts(before, [start(1, 0, A), took(2, 1, 8), took(2, 9, 9)])).toEqual([
    start(1, 0, A),
    took(2, 1, 8),
    took(2, 9, 9),
  ]);
});
