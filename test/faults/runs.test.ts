import { expect, test } from 'vitest';
import { tryRuns } from './runs.js';

const SEQUENCES = 150;
/** Each of them starts some fifty processes. */
const LAUNCHED = 4;

test('after random sequences of runs, each turn is where its own run would have sent it, and as it would have', async () => {
  expect(await tryRuns(SEQUENCES, 20_261_118)).toBe(SEQUENCES);
}, 600_000);

test('the same holds if the launcher starts the hooks, and its workers overlap', async () => {
  expect(await tryRuns(LAUNCHED, 20_261_118, true)).toBe(LAUNCHED);
});
