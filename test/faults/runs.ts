import fc from 'fast-check';
import type { Capture, Config, Place } from './turn-oracle.js';
import { type Circumstances, type Step, World } from './world.js';

const capture = fc.constantFrom<Capture>('full', 'no_tool_io', 'metadata');
const place = fc.constantFrom<Place>('A', 'B');
const session = fc.nat(3);
const config = fc.record({
  tracing: fc.constantFrom('on' as const, 'on' as const, 'on' as const, 'off' as const, 'excluded' as const),
  goal: fc.constantFrom<Config['goal']>('A', 'A', 'B', 'B', 'typo'),
  capture,
  tag: fc.constantFrom('x' as const, 'y' as const),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('turn' as const),
      session,
      config,
      before: fc.constantFrom('go on' as const, 'go on' as const, 'end' as const, 'kill' as const),
      ending: fc.constantFrom('stop' as const, 'stop' as const, 'stop' as const, 'failure' as const, 'esc' as const),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom(...(['grow', 'end', 'end', 'kill', 'compact', 'clear', 'leave plan mode'] as const)),
      session,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fork' as const), session, config }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('switch' as const), place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('backfill' as const), place, capture, force: fc.boolean() }),
  },
);

/** Tries random sequences of runs, and returns how many. Throws with the shortest one after which a turn is not where it should be. */
export async function tryRuns(sequences: number, seed: number, areLaunched = false): Promise<number> {
  let tried = 0;
  const circumstances: fc.Arbitrary<Circumstances> = fc.record({
    hasStart: fc.boolean(),
    areProven: fc.boolean(),
    areLaunched: fc.constant(areLaunched),
  });
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 2, maxLength: 14 }),
    circumstances,
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
async function findWrong(steps: readonly Step[], circumstances: Circumstances): Promise<string[]> {
  const world = await World.open(circumstances);
  try {
    for (const each of steps) await world.take(each);
    await world.settle();
    return world.judge();
  } finally {
    await world.close();
  }
}
