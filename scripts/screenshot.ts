import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderPage } from '../src/commands/preview/page.js';
import { writeFileAtomically } from '../src/shared/atomic-write.js';
import { openBrowser } from '../test/support/browser.js';
import { playAll } from './demo-sessions.js';
import { previewTemplate } from './preview-template.js';

/** The picture of the preview that the README shows: a turn of the demo's sessions, with what one of its tools did. */
const PICTURE = fileURLToPath(new URL('../docs/preview.png', import.meta.url));
/** The first of the recordings in it: two subagents side by side. */
const FIRST = 'p-agent2';

const played = await playAll();
const sessions = played.filter(({ name }) => name >= FIRST).flatMap((each) => each.sessions);
const folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-screenshot-'));
const browser = await openBrowser();
try {
  const file = join(folder, 'preview.html');
  writeFileAtomically(file, renderPage(await previewTemplate(), sessions));
  const page = await browser.newPage({
    viewport: { width: 1440, height: 900 },
    deviceScaleFactor: 1.2,
    colorScheme: 'light',
    timezoneId: 'UTC',
  });
  await page.goto(`file://${file}`);
  await page
    .getByRole('treeitem', { name: /^tool, Bash/ })
    .first()
    .click();
  await page.mouse.move(0, 0);
  mkdirSync(dirname(PICTURE), { recursive: true });
  await page.screenshot({ path: PICTURE });
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
