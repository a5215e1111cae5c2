import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  coversLines,
  coversTime,
  findGaps,
  findRun,
  isSameRun,
  mergeByLine,
  openRun,
  type Run,
} from '../../src/state/runs.js';

const run = (fromLine: number, toLine?: number, more: Partial<Run> = {}): Run => ({ fromLine, toLine, ...more });

/** Runs in order, which do not overlap; only the last may be open. */
const ledger = fc
  .tuple(fc.array(fc.tuple(fc.nat(3), fc.nat(4)), { maxLength: 5 }), fc.boolean())
  .map(([parts, isOpen]) => {
    let next = 1;
    return parts.map(([gap, length], place): Run => {
      const fromLine = next + gap;
      next = fromLine + length + 1;
      return run(fromLine, isOpen && place === parts.length - 1 ? undefined : fromLine + length);
    });
  });

describe('the run of a line', () => {
  const [first, second, last] = [run(2, 4), run(5), run(8)];

  test.each([
    [1, undefined],
    [2, first],
    [4, first],
    [5, second],
    [7, second],
    [8, last],
    [900, last],
  ])('is the last one that begins at it or before, unless it has ended: line %i', (line, expected) => {
    expect(findRun({ runs: [first, second, last] }, line)).toBe(expected);
  });

  test('is none after the last one has ended', () => {
    expect(findRun({ runs: [run(1, 3)] }, 4)).toBeUndefined();
    expect(findRun({ runs: [] }, 1)).toBeUndefined();
  });

  test('is none if the run of no line, which ended before its first prompt, is the last', () => {
    expect(findRun({ runs: [run(5, 4)] }, 5)).toBeUndefined();
  });
});

test('a prompt that is claimed belongs to the run that claims it, and those between its turn’s prompts to the others', () => {
  const claim = { fromLine: 3, lines: [3, 6], destination: 'A' };
  const all = { runs: [run(1, 9)], claims: [claim] };
  expect([3, 4, 6, 10].map((line) => findRun(all, line))).toEqual([claim, run(1, 9), claim, undefined]);
});

describe('a mute', () => {
  test('covers its lines, and none if nothing was said in it', () => {
    expect(coversLines({ since: 0, fromLine: 4, toLine: 5 }, 1, 4)).toBe(true);
    expect(coversLines({ since: 0, fromLine: 4, toLine: 5 }, 5, 9)).toBe(true);
    expect(coversLines({ since: 0, fromLine: 4 }, 900, 901)).toBe(true);
    expect(coversLines({ since: 0, fromLine: 4, toLine: 5 }, 6, 9)).toBe(false);
    expect(coversLines({ since: 0, fromLine: 4, toLine: 3 }, 1, 9)).toBe(false);
  });

  test('covers its time', () => {
    expect([9, 10, 20, 21].map((at) => coversTime({ fromLine: 1, since: 10, until: 20 }, at))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(coversTime({ fromLine: 1, since: 10 }, 900)).toBe(true);
  });
});

test('only the last run can be open', () => {
  expect(openRun([run(1), run(4, 6)])).toBeUndefined();
  expect(openRun([run(1, 3), run(4)])).toEqual(run(4));
  expect(openRun([])).toBeUndefined();
});

describe('the lines of no run', () => {
  test('are those before, between and after the runs', () => {
    expect(findGaps([run(3, 4), run(7, 8)], 10)).toEqual([
      { fromLine: 1, toLine: 2 },
      { fromLine: 5, toLine: 6 },
      { fromLine: 9, toLine: 10 },
    ]);
    expect(findGaps([run(3, 4)], 2)).toEqual([{ fromLine: 1, toLine: 2 }]);
    expect(findGaps([run(3)], 10)).toEqual([{ fromLine: 1, toLine: 2 }]);
    expect(findGaps([], 0)).toEqual([]);
  });

  test('are exactly those for which no run is found', () => {
    fc.assert(
      fc.property(ledger, fc.integer({ min: 0, max: 40 }), (runs, upTo) => {
        const gaps = findGaps(runs, upTo);
        for (let line = 1; line <= upTo; line += 1) {
          const isInGap = gaps.some(({ fromLine, toLine }) => fromLine <= line && line <= toLine);
          expect({ line, isInGap }).toEqual({ line, isInGap: findRun({ runs }, line) === undefined });
        }
      }),
    );
  });
});

test('runs are merged in the order of their lines, and one that begins at the same line is replaced', () => {
  const merged = mergeByLine([run(1, 3), run(8)], [run(8, 9), run(5, 6)]);
  expect(merged).toEqual([run(1, 3), run(5, 6), run(8, 9)]);
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
