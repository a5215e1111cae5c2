import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Where Debian's package puts it. */
const CHROMIUM = '/usr/bin/chromium';

export const hasChromium = existsSync(CHROMIUM);
export const WITHOUT_CHROMIUM = `skipped: there is no ${CHROMIUM} (on Debian: apt-get install chromium)`;

/** A browser without a window that asks nothing of any network by itself. */
export function openBrowser(): Promise<Browser> {
  const quiet = [
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ];
  // In a container there is often no sandbox to be had, nor a graphics card.
  const args = ['--no-sandbox', '--disable-gpu', ...quiet];
  return chromium.launch({ executablePath: CHROMIUM, headless: true, args });
}
