import { expect, test } from 'vitest';
import { playFleetDay } from './fleet.js';

test('a fleet loses and doubles nothing over a day in which the server is down for an hour', async () => {
  const figures = await playFleetDay({ homes: 23, turns: 40, hooksAtOnce: 4 });
  // A root, and a generation and a tool for each of three calls, and the answer.
  expect(figures).toMatchObject({ turns: 40, observations: 40 * 8, lost: 0, doubled: 0, exitsOtherThanZero: 0 });
  expect(figures.refused).toBeGreaterThan(0);
  // Of the five homes with a turn in the outage, two had another one afterwards, which a busy machine may be too slow for.
  expect([3, 4, 5]).toContain(figures.waiting);
});
