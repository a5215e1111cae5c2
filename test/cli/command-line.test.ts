import { expect, test } from 'vitest';
import { parsePointInTime } from '../../src/cli/command-line.js';

const NOW = Date.UTC(2026, 10, 18, 12);

test.each([
  ['30m', NOW - 1_800_000],
  ['12h', NOW - 43_200_000],
  ['7d', NOW - 604_800_000],
  ['2w', NOW - 1_209_600_000],
  ['2026-11-01', new Date(2026, 10, 1).getTime()],
  ['2026-11-01T10:00:00Z', Date.UTC(2026, 10, 1, 10)],
])('parses the point in time %s', (text, at) => {
  expect(parsePointInTime('since', text, NOW)).toBe(at);
});

test('a date as an end means its last moment, also if the day has 23 or 25 hours', () => {
  expect(parsePointInTime('until', '2026-11-01', NOW, true)).toBe(new Date(2026, 10, 2).getTime() - 1);
  expect(parsePointInTime('until', '2026-03-29', NOW, true)).toBe(new Date(2026, 2, 30).getTime() - 1);
});

test.each([
  '',
  'd',
  '7',
  '7y',
  'yesterday',
  '2026-13-01',
  '2026-00-10',
  '2026-02-30',
  '2026-02-30T00:00:00Z',
  '2026-11-01T25:00',
])('refuses %j as a point in time', (text) => {
  expect(() => parsePointInTime('since', text, NOW)).toThrow(
    `--since ${text}: expected 30m, 12h, 7d, 2w or 2026-11-01`,
  );
});
