import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pageOf } from '../src/preview/page-text.js';
import { type ShownSession, sessionsOf } from '../src/preview/session.js';
import { tokensOf, totalOf } from '../src/preview/tokens.js';
import { traceTree } from '../src/terminal/trace-tree.js';
import { writeWhole } from '../src/whole-file.js';
import { Workplace } from '../test/support/program.js';
import { play, type Recording, recordings } from '../test/support/recording.js';
import { arrivedAsSent } from './arrived.js';
import { previewTemplate } from './preview-template.js';

/** How many recordings are played at a time. */
const AT_ONCE = 4;

/** Plays a recording through the built hook into a Langfuse of its own; gives the sessions that have arrived there. */
async function demonstrate(recording: Recording): Promise<ShownSession[]> {
  const workplace = await Workplace.open();
  try {
    await play(recording, workplace.home, async ({ payload }) => {
      const { exitCode, stderr } = await workplace.hook(payload);
      if (exitCode !== 0) throw new Error(`${recording.name}: the hook exited with ${exitCode}: ${stderr}`);
    });
    return sessionsOf(workplace.server.observations.map(arrivedAsSent));
  } finally {
    await workplace.close();
  }
}

const startedAt = Date.now();
const all = recordings();
process.stdout.write(
  `Playing ${all.length} recorded sessions through the hook into an embedded Langfuse on loopback …\n`,
);
const played: ShownSession[][] = all.map(() => []);
const queue = [...all.entries()];
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [place, recording] = next;
      played[place] = await demonstrate(recording);
    }
  }),
);
for (const [place, { name }] of all.entries()) {
  const trees = (played[place] ?? []).map((session) => traceTree(session).join('\n'));
  process.stdout.write(`\n── ${name}\n${trees.join('\n\n')}\n`);
}
const sessions = played.flat();
const turns = sessions.flatMap((session) => session.turns);
const observations = turns.flatMap((turn) => turn.observations);
const page = join(mkdtempSync(join(tmpdir(), 'cc-langfuse-demo-')), 'preview.html');
writeWhole(page, pageOf(await previewTemplate(), sessions));
process.stdout.write(
  `\n${all.length} recordings: ${turns.length} turns, ${observations.length} observations, ${totalOf(tokensOf(observations)).toLocaleString('en')} tokens, in ${((Date.now() - startedAt) / 1_000).toFixed(1)} s\n`,
);
process.stdout.write(`The same as a page for the browser:\n${page}\n`);
