import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { things } from '../src/cli/words.js';
import { pageOf } from '../src/commands/preview/page-text.js';
import { tokensOf, totalOf } from '../src/commands/preview/tokens.js';
import { traceTree } from '../src/commands/preview/trace-tree.js';
import { writeWhole } from '../src/shared/atomic-write.js';
import { playAll } from './demo-sessions.js';
import { previewTemplate } from './preview-template.js';

const startedAt = Date.now();
tell('Playing the recorded sessions through the hook into an embedded Langfuse on loopback …');
const played = await playAll();
for (const { name, sessions } of played) {
  tell(`\n── ${name}\n${sessions.map((session) => traceTree(session).join('\n')).join('\n\n')}`);
}
const sessions = played.flatMap((each) => each.sessions);
const turns = sessions.flatMap((session) => session.turns);
const observations = turns.flatMap((turn) => turn.observations);
const figures = [
  things(turns.length, 'turn'),
  things(observations.length, 'observation'),
  `${totalOf(tokensOf(observations)).toLocaleString('en')} tokens`,
];
const seconds = ((Date.now() - startedAt) / 1_000).toFixed(1);
tell(`\n${things(played.length, 'recording')}: ${figures.join(', ')}, in ${seconds} s`);

const page = join(mkdtempSync(join(tmpdir(), 'cc-langfuse-demo-')), 'preview.html');
writeWhole(page, pageOf(await previewTemplate(), sessions));
tell(`As a page for the browser:\n${page}`);

function tell(words: string): void {
  process.stdout.write(`${words}\n`);
}
