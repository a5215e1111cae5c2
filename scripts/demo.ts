// npm start: plays a session through the hook into an embedded Langfuse, and prints what arrived there.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { plural } from '../src/cli/format.js';
import { renderPage } from '../src/commands/preview/page.js';
import { renderTree } from '../src/commands/preview/terminal-tree.js';
import { countTokensByKind, type ShownSession, totalTokens } from '../src/commands/preview/view-model.js';
import { writeFileAtomically } from '../src/shared/atomic-write.js';
import { recordings } from '../test/support/recording.js';
import { DEMO, playRecordings } from './demo-sessions.js';
import { buildPreviewTemplate } from './preview-template.js';

const isAll = process.argv.includes('--all');
print(`Playing ${isAll ? 'all sessions' : 'a session'} through the hook into an embedded Langfuse on loopback …\n`);

const played = await playRecordings(isAll ? [DEMO, ...recordings()] : [DEMO]);
const sessions = played.flatMap((each) => each.sessions);
for (const { name, sessions: arrived } of played) {
  if (isAll) print(`── ${name}`);
  for (const session of arrived) print(`${renderTree(session).join('\n')}\n`);
}
print(isAll ? describeTotals(sessions) : `To play ${recordings().length} recordings, too: npm start -- --all`);

const page = join(mkdtempSync(join(tmpdir(), 'cc-langfuse-demo-')), 'preview.html');
writeFileAtomically(page, renderPage((await buildPreviewTemplate()).template, sessions));
print(`Open it in a browser: ${page}`);

function describeTotals(all: readonly ShownSession[]): string {
  const turns = all.flatMap((session) => session.turns);
  const observations = turns.flatMap((turn) => turn.observations);
  return [
    plural(all.length, 'session'),
    plural(turns.length, 'turn'),
    plural(observations.length, 'observation'),
    plural(totalTokens(countTokensByKind(observations)), 'token'),
  ].join(', ');
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
