import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addInOrder,
  coversBytes,
  coversTime,
  findGaps,
  findRun,
  isSameRun,
  openRun,
  type Run,
} from '../../src/state/runs.js';

const place = (bytes: number) => ({ bytes, hash: '' });
const run = (from: number, to?: number, more: Partial<Run> = {}): Run => ({
  from: place(from),
  to: to === undefined ? undefined : place(to),
  ...more,
});

/** Runs in order, which do not overlap; only the last may be open. */
const runsInOrder = fc
  .tuple(fc.array(fc.tuple(fc.nat(3), fc.nat(4)), { maxLength: 5 }), fc.boolean())
  .map(([parts, isOpen]) => {
    let next = 0;
    return parts.map(([gap, length], index): Run => {
      const from = next + gap;
      next = from + length;
      return run(from, isOpen && index === parts.length - 1 ? undefined : next);
    });
  });

describe('the run of a prompt', () => {
  const [first, second, last] = [run(20, 50), run(50), run(80)];

  test.each([
    [10, undefined],
    [20, first],
    [49, first],
    [50, second],
    [79, second],
    [80, last],
    [9_000, last],
  ])('is the last one that begins there or before, unless it has ended: byte %i', (prompt, expected) => {
    expect(findRun({ runs: [first, second, last] }, prompt)).toBe(expected);
  });

  test('is none after the last one has ended', () => {
    expect(findRun({ runs: [run(0, 30)] }, 30)).toBeUndefined();
    expect(findRun({ runs: [] }, 0)).toBeUndefined();
  });

  test('is none if the last run ended before its first prompt', () => {
    expect(findRun({ runs: [run(50, 50)] }, 50)).toBeUndefined();
  });
});

test('a prompt that is claimed belongs to the run that claims it, and those between its turn’s prompts to the others', () => {
  const claim = { prompts: [30, 60], turnEnd: place(70), destination: 'A' };
  const all = { runs: [run(0, 100)], claims: [claim] };
  expect([30, 40, 60, 100].map((prompt) => findRun(all, prompt))).toEqual([claim, run(0, 100), claim, undefined]);
});

describe('a mute', () => {
  const mute = (from: number, to?: number) => ({ since: 0, ...run(from, to) });

  test('covers each line that it holds a byte of, and none if nothing was said in it', () => {
    expect(coversBytes(mute(40, 60), 0, 41)).toBe(true);
    expect(coversBytes(mute(40, 60), 59, 90)).toBe(true);
    expect(coversBytes(mute(40), 9_000, 9_001)).toBe(true);
    expect(coversBytes(mute(40, 60), 0, 40)).toBe(false);
    expect(coversBytes(mute(40, 60), 60, 90)).toBe(false);
    expect(coversBytes(mute(40, 40), 0, 90)).toBe(false);
  });

  test('covers its time', () => {
    expect([9, 10, 20, 21].map((at) => coversTime({ from: place(0), since: 10, until: 20 }, at))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(coversTime({ from: place(0), since: 10 }, 900)).toBe(true);
  });
});

test('only the last run can be open', () => {
  expect(openRun([run(0), run(40, 60)])).toBeUndefined();
  expect(openRun([run(0, 30), run(40)])).toEqual(run(40));
  expect(openRun([])).toBeUndefined();
});

describe('what belongs to no run', () => {
  const gap = (from: number, to: number) => ({ from: place(from), to });

  test('is what is before, between and after the runs', () => {
    expect(findGaps([run(20, 40), run(60, 80)], 100)).toEqual([gap(0, 20), gap(40, 60), gap(80, 100)]);
    expect(findGaps([run(20, 40)], 10)).toEqual([gap(0, 10)]);
    expect(findGaps([run(20)], 100)).toEqual([gap(0, 20)]);
    expect(findGaps([], 0)).toEqual([]);
  });

  test('is exactly that for which no run is found', () => {
    fc.assert(
      fc.property(runsInOrder, fc.integer({ min: 0, max: 40 }), (runs, upTo) => {
        const gaps = findGaps(runs, upTo);
        for (let byte = 0; byte < upTo; byte += 1) {
          const isInGap = gaps.some(({ from, to }) => from.bytes <= byte && byte < to);
          expect({ byte, isInGap }).toEqual({ byte, isInGap: findRun({ runs }, byte) === undefined });
        }
      }),
    );
  });
});

test('runs are kept in the order of the transcript, and one that begins at the same byte is replaced', () => {
  const runs = addInOrder([run(0, 30), run(80)], run(80, 90));
  expect(addInOrder(runs, run(50, 60))).toEqual([run(0, 30), run(50, 60), run(80, 90)]);
});

describe('two runs', () => {
  const one = { destination: 'a', given: { LANGFUSE_TAGS: 'x' }, folder: '/a', seed: 's' };

  test('are the same if they would send a turn alike, wherever they were started', () => {
    expect(isSameRun(one, { ...one, folder: '/b' })).toBe(true);
    expect(isSameRun(one, { ...one, destination: 'b' })).toBe(false);
    expect(isSameRun(one, { ...one, given: {} })).toBe(false);
    expect(isSameRun(one, { ...one, seed: undefined })).toBe(false);
    expect(isSameRun(one, { ...one, parent: { trace: 't', span: 's' } })).toBe(false);
    expect(isSameRun(one, { ...one, metadata: { job: '1' } })).toBe(false);
  });

  test('are the same if the destination of the first has replaced that of the second', () => {
    const replaced = { ...one, namedDestination: 'typo' };
    expect(isSameRun(replaced, { ...one, destination: 'typo' })).toBe(true);
    expect(isSameRun(replaced, { ...one, destination: 'another' })).toBe(false);
    expect(isSameRun({ ...one, namedDestination: '' }, { ...one, destination: undefined })).toBe(true);
    expect(isSameRun(one, { ...one, destination: undefined })).toBe(false);
  });
});
