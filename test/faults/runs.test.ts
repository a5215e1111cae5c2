import { expect, test } from 'vitest';
import { tryRuns } from './runs.js';

const SEQUENCES = 60;

test('after random sequences of runs, each turn is where its own run would have sent it, and as it would have', async () => {
  expect(await tryRuns(SEQUENCES, 20_261_118)).toBe(SEQUENCES);
}, 120_000);
