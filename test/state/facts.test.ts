import { describe, expect, test } from 'vitest';
import { addFacts, type Fact, fold } from '../../src/state/facts.js';
import type { RunIdentity } from '../../src/state/runs.js';

const A: RunIdentity = { destination: 'A', given: {} };
const B: RunIdentity = { destination: 'B', given: {} };
const [p1, p2] = ['1 here', '2 here'];

const place = (bytes: number) => ({ bytes, hash: `h${bytes}` });

type More = { readonly source?: string; readonly alive?: string[] };
const start = (at: number, after: number, run: RunIdentity, { source = 'resume', alive = [] }: More = {}): Fact => ({
  kind: 'start',
  at,
  after: place(after),
  source,
  run,
  alive,
});
const end = (at: number, after: number, run?: RunIdentity, alive: string[] = []): Fact => ({
  kind: 'end',
  at,
  after: place(after),
  run,
  alive,
});
const off = (at: number, after: number): Fact => ({ kind: 'off', at, after: place(after) });
const claim = (at: number, prompts: number[], run: RunIdentity): Fact => ({
  kind: 'claim',
  at,
  run,
  prompts,
  turnEnd: place(Math.max(...prompts) + 1),
});
const took = (at: number, from: number, to: number): Fact => ({
  kind: 'took',
  at,
  run: A,
  from: place(from),
  to: place(to),
});
const runsOf = (...facts: Fact[]) =>
  fold(facts).runs.map(({ from, to, destination }) => [destination, from.bytes, to?.bytes]);
const claimsOf = (...facts: Fact[]) => fold(facts).claims.map(({ prompts, endedAt }) => [prompts, endedAt]);

describe('the runs that follow from facts', () => {
  test.each<[string, Fact[], unknown[]]>([
    ['nothing is known', [], []],
    ['one goes on', [start(1, 0, A)], [['A', 0, undefined]]],
    ['one has ended', [start(1, 0, A), end(2, 8, A)], [['A', 0, 8]]],
    ['it ended before its first byte', [start(1, 4, A), end(2, 2, A)], [['A', 4, 4]]],
    [
      'it was killed, and another one with its settings begins',
      [start(1, 0, A), start(2, 6, A)],
      [['A', 0, undefined]],
    ],
    [
      'it was killed, and one with others begins',
      [start(1, 0, A), start(2, 6, B)],
      [
        ['A', 0, 6],
        ['B', 6, undefined],
      ],
    ],
    [
      'it ended, and is resumed',
      [start(1, 0, A), end(2, 4, A), start(3, 6, A)],
      [
        ['A', 0, 4],
        ['A', 6, undefined],
      ],
    ],
    [
      'it is compacted under other settings',
      [start(1, 0, A), start(2, 6, B, { source: 'compact' })],
      [['A', 0, undefined]],
    ],
    ['a compaction is the first that is seen', [start(2, 6, A, { source: 'compact' })], []],
    ['tracing was turned off', [start(1, 0, A), off(2, 5)], [['A', 0, 5]]],
    ['another one ends', [start(1, 0, A), end(2, 5, B)], [['A', 0, undefined]]],
    ['whichever goes on ends', [start(1, 0, A), end(2, 5)], [['A', 0, 5]]],
    [
      'a backfill took what was before it and in between',
      [start(1, 4, B), end(2, 8, B), took(3, 0, 4), took(4, 8, 10)],
      [
        ['A', 0, 4],
        ['B', 4, 8],
        ['A', 8, 10],
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
      ['A', 0, 6],
      ['B', 6, 6],
    ]);
  });

  test('with two processes under the same settings: the end of one is not that of the other', () => {
    const both = [start(1, 0, { ...A, process: p1 }), start(2, 6, { ...A, process: p2 }, { alive: [p1] })];
    expect(runsOf(...both, end(3, 8, { ...A, process: p2 }, [p1]))).toEqual([['A', 0, undefined]]);
    expect(runsOf(...both, end(3, 8, { ...A, process: p1 }, [p2]))).toEqual([['A', 0, undefined]]);
    const first = end(3, 8, { ...A, process: p1 }, [p2]);
    expect(runsOf(...both, first, end(4, 9, { ...A, process: p2 }))).toEqual([['A', 0, 9]]);
    expect(runsOf(...both, end(3, 8, { ...A, process: p1 }))).toEqual([['A', 0, 8]]);
  });

  test('a process that ends under other settings than it began with ends its own run', () => {
    const begun = start(1, 0, { ...A, process: p1 });
    expect(runsOf(begun, end(2, 5, { ...B, process: p1 }))).toEqual([['A', 0, 5]]);
    expect(runsOf(begun, end(2, 5, { ...B, process: p2 }, [p1]))).toEqual([['A', 0, undefined]]);
  });

  test('whatever the order in which they were written down', () => {
    const facts = [start(1, 0, A), claim(2, [1], A), end(3, 4, A), start(4, 6, B), off(5, 9)];
    expect(fold(facts.toReversed())).toEqual(fold(facts));
  });

  test('if the start of one was written after its end', () => {
    const late = start(4, 2, A, { source: 'startup' });
    expect(runsOf(claim(1, [2], A), claim(2, [4], A), end(3, 8, A), late)).toEqual([['A', 2, 8]]);
    expect(runsOf(claim(1, [2], A), late)).toEqual([['A', 2, undefined]]);
  });
});

test('what a Stop has named grows until its run ends', () => {
  expect(claimsOf(claim(1, [1], A), claim(2, [5, 7], B), end(3, 9, A))).toEqual([
    [[1], 3],
    [[5, 7], undefined],
  ]);
});

test('a mute goes on until the user ends it, whichever process was told of it', () => {
  const mute = (at: number, after: number, process?: string): Fact => ({
    kind: 'mute',
    at,
    after: place(after),
    process,
  });
  const unmute = (at: number, after: number): Fact => ({ kind: 'unmute', at, after: place(after) });
  expect(fold([mute(1, 4), mute(2, 6, p1), unmute(3, 8), unmute(4, 9), mute(5, 9)]).mutes).toEqual([
    { from: place(4), to: place(8), since: 1, until: 3, process: p1 },
    { from: place(9), since: 5, process: undefined },
  ]);
});

test('a destination that replaces a wrong one does so in what was known by then', () => {
  const adopt: Fact = { kind: 'adopt', at: 3, wrong: 'A', right: 'B' };
  expect(runsOf(start(1, 0, A), end(2, 4, A), adopt, start(4, 4, A))).toEqual([
    ['B', 0, 4],
    ['A', 4, undefined],
  ]);
});

test('facts are kept once, and what a backfill took of a run as far as it came', () => {
  const before = [start(1, 0, A), took(2, 0, 4)];
  expect(addFacts(before, [start(1, 0, A), took(2, 0, 8), took(2, 8, 9)])).toEqual([
    start(1, 0, A),
    took(2, 0, 8),
    took(2, 8, 9),
  ]);
});
