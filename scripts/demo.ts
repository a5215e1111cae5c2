// npm start: plays a session through the hook into an embedded Langfuse, and prints what arrived there.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { plural } from '../src/cli/format.js';
import { renderPage } from '../src/commands/preview/page.js';
import { renderTree } from '../src/commands/preview/terminal-tree.js';
import { countTokensByKind, totalTokens } from '../src/commands/preview/view-model.js';
import { writeFileAtomically } from '../src/shared/atomic-write.js';
import { recordings } from '../test/support/recording.js';
import { DEMO, type Played, playRecordings } from './demo-sessions.js';
import { buildPreviewTemplate } from './preview-template.js';

const isAll = process.argv.includes('--all');
print(`Playing ${isAll ? 'every session' : 'a session'} through the hook into an embedded Langfuse on loopback …\n`);

const played = await playRecordings(isAll ? [DEMO, ...recordings()] : [DEMO]);
for (const { name, sessions } of played) {
  if (isAll) print(`── ${name}`);
  for (const session of sessions) print(`${renderTree(session).join('\n')}\n`);
}
print(isAll ? describeTotals(played) : `To see ${recordings().length} recorded sessions, too: npm start -- --all`);

const page = join(mkdtempSync(join(tmpdir(), 'cc-langfuse-demo-')), 'preview.html');
const sessions = played.flatMap((each) => each.sessions);
writeFileAtomically(page, renderPage(await buildPreviewTemplate(), sessions));
print(`As a page for your browser: ${page}`);

function describeTotals(all: readonly Played[]): string {
  const turns = all.flatMap((each) => each.sessions).flatMap((session) => session.turns);
  const observations = turns.flatMap((turn) => turn.observations);
  const tokens = totalTokens(countTokensByKind(observations));
  const counts: [number, string][] = [
    [all.length, 'recording'],
    [turns.length, 'turn'],
    [observations.length, 'observation'],
    [tokens, 'token'],
  ];
  return counts.map(([count, name]) => plural(count, name)).join(', ');
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
