import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ProgressLine } from '../../src/cli/progress-line.js';

let drawn: string[];
const { isTTY } = process.stderr;

beforeEach(() => {
  drawn = [];
  vi.useFakeTimers();
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => drawn.push(String(text)) > 0);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  process.stderr.isTTY = isTTY;
});

/** Does six things, each for 300 ms, and then prints something. */
function work(isTerminal: boolean): string[] {
  process.stderr.isTTY = isTerminal;
  const progress = new ProgressLine();
  for (let n = 1; n <= 6; n += 1) {
    vi.advanceTimersByTime(300);
    progress.show(() => `${n} of 6`);
  }
  progress.clear();
  progress.clear();
  return drawn;
}

test('what takes longer than a second shows how far it is, until something else is printed', () => {
  const erase = '\r\u001b[K';
  expect(work(true)).toEqual([`${erase}4 of 6`, `${erase}5 of 6`, `${erase}6 of 6`, erase]);
});

test('nothing is drawn where there is no terminal', () => {
  expect(work(false)).toEqual([]);
});
