import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { plural } from '../src/cli/format.js';
import { renderPage } from '../src/commands/preview/page.js';
import { countTokensByKind, totalTokens } from '../src/commands/preview/tokens.js';
import { renderTree } from '../src/commands/preview/trace-tree.js';
import { writeFileAtomically } from '../src/shared/atomic-write.js';
import { playAll } from './demo-sessions.js';
import { previewTemplate } from './preview-template.js';

const startedAt = Date.now();
tell('Playing the recorded sessions through the hook into an embedded Langfuse on loopback …');
const played = await playAll();
for (const { name, sessions } of played) {
  tell(`\n── ${name}\n${sessions.map((session) => renderTree(session).join('\n')).join('\n\n')}`);
}
const sessions = played.flatMap((each) => each.sessions);
const turns = sessions.flatMap((session) => session.turns);
const observations = turns.flatMap((turn) => turn.observations);
const figures = [
  plural(turns.length, 'turn'),
  plural(observations.length, 'observation'),
  `${totalTokens(countTokensByKind(observations)).toLocaleString('en')} tokens`,
];
const seconds = ((Date.now() - startedAt) / 1_000).toFixed(1);
tell(`\n${plural(played.length, 'recording')}: ${figures.join(', ')}, in ${seconds} s`);

const page = join(mkdtempSync(join(tmpdir(), 'cc-langfuse-demo-')), 'preview.html');
writeFileAtomically(page, renderPage(await previewTemplate(), sessions));
tell(`As a page for the browser:\n${page}`);

function tell(words: string): void {
  process.stdout.write(`${words}\n`);
}
