import { Workplace } from '../test/support/program.js';
import { play, type Recording, recordings } from '../test/support/recording.js';
import { traceTree } from './trace-tree.js';

/** How many recordings are played at a time. */
const AT_ONCE = 4;

interface Played {
  readonly tree: string;
  readonly turns: number;
  readonly observations: number;
  readonly tokens: number;
}

/** Plays a recording through the built hook into a Langfuse of its own and tells what has arrived there. */
async function demonstrate(recording: Recording): Promise<Played> {
  const workplace = await Workplace.open();
  try {
    await play(recording, workplace.home, async ({ payload }) => {
      const { exitCode, stderr } = await workplace.hook(payload);
      if (exitCode !== 0) throw new Error(`${recording.name}: the hook exited with ${exitCode}: ${stderr}`);
    });
    const { observations } = workplace.server;
    return {
      tree: traceTree(observations),
      turns: observations.filter(({ parentId }) => parentId === undefined).length,
      observations: observations.length,
      tokens: observations.reduce((sum, { usage }) => sum + (usage?.total ?? 0), 0),
    };
  } finally {
    await workplace.close();
  }
}

const startedAt = Date.now();
const all = recordings();
process.stdout.write(
  `Playing ${all.length} recorded sessions through the hook into an embedded Langfuse on loopback …\n`,
);
const played: (Played | undefined)[] = all.map(() => undefined);
const queue = [...all.entries()];
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [place, recording] = next;
      played[place] = await demonstrate(recording);
    }
  }),
);
for (const [place, { name }] of all.entries()) process.stdout.write(`\n── ${name}\n${played[place]?.tree}\n`);
const sum = (field: 'turns' | 'observations' | 'tokens') =>
  played.reduce((total, one) => total + (one?.[field] ?? 0), 0);
process.stdout.write(
  `\n${all.length} recordings: ${sum('turns')} turns, ${sum('observations')} observations, ${sum('tokens').toLocaleString('en')} tokens, in ${((Date.now() - startedAt) / 1_000).toFixed(1)} s\n`,
);
