// npm run screenshot: makes docs/preview.png, the picture of the preview page in the README.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderPage } from '../src/commands/preview/page.js';
import { writeFileAtomically } from '../src/shared/atomic-write.js';
import { openBrowser } from '../test/support/browser.js';
import { DEMO, playRecordings } from './demo-sessions.js';
import { buildPreviewTemplate } from './preview-template.js';

const PICTURE = fileURLToPath(new URL('../docs/preview.png', import.meta.url));

const played = await playRecordings([DEMO]);
const folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-screenshot-'));
const browser = await openBrowser();
try {
  const file = join(folder, 'preview.html');
  const sessions = played.flatMap((each) => each.sessions);
  writeFileAtomically(file, renderPage((await buildPreviewTemplate()).template, sessions));
  const page = await browser.newPage({
    viewport: { width: 1440, height: 900 },
    deviceScaleFactor: 1.2,
    colorScheme: 'light',
    timezoneId: 'UTC',
  });
  await page.goto(`file://${file}`);
  await page.getByRole('button', { name: 'Turn 2' }).click();
  await page.getByRole('treeitem', { name: /^tool, Edit/ }).click();
  await page.mouse.move(0, 0);
  await page.screenshot({ path: PICTURE });
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
