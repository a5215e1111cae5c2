import fc from 'fast-check';
import { type Circumstances, circumstances, type Step, step } from './steps.js';
import { World } from './world.js';

/** Tries random sequences of runs, and returns how many. Throws with the shortest one after which a turn is not where it should be. */
export async function tryRuns(sequences: number, seed: number, areLaunched = false): Promise<number> {
  let tried = 0;
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 2, maxLength: 14 }),
    circumstances(areLaunched),
    async (...drawn) => {
      tried += 1;
      const wrong = await findWrong(...drawn);
      if (wrong.length > 0) throw new Error(wrong.join('\n'));
    },
  );
  await fc.assert(property, { numRuns: sequences, seed });
  return tried;
}

/** Returns what is wrong after these steps, once everything that can still be sent has arrived. */
async function findWrong(steps: readonly Step[], given: Circumstances): Promise<string[]> {
  const world = await World.open(given);
  try {
    for (const each of steps) await world.take(each);
    await world.settle();
    return world.judge();
  } finally {
    await world.close();
  }
}
