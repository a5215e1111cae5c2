import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SearchProgress } from '../../../src/commands/sessions/search-progress.js';
import type { SessionOverview } from '../../../src/transcript/sessions/overview.js';

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

const SESSION = { bytes: 1_000_000 } as SessionOverview;

/** Searches six sessions, each for 300 ms, and finds something in the last one. */
function search(isTerminal: boolean): string[] {
  process.stderr.isTTY = isTerminal;
  const progress = new SearchProgress([SESSION, SESSION, SESSION, SESSION, SESSION, SESSION]);
  for (let n = 0; n < 6; n += 1) {
    vi.advanceTimersByTime(300);
    progress.add(SESSION);
  }
  progress.clear();
  progress.clear();
  return drawn;
}

test('a search that takes longer than a second shows how much it has read, until something else is printed', () => {
  const erase = '\r\u001b[K';
  expect(search(true)).toEqual([
    `${erase}searched 4.0 MB of 6.0 MB`,
    `${erase}searched 5.0 MB of 6.0 MB`,
    `${erase}searched 6.0 MB of 6.0 MB`,
    erase,
  ]);
});

test('nothing is drawn where there is no terminal', () => {
  expect(search(false)).toEqual([]);
});
