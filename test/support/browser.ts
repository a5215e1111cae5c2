import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Where Debian's package installs it. */
const CHROMIUM = '/usr/bin/chromium';

export const hasChromium = existsSync(CHROMIUM);
export const WITHOUT_CHROMIUM = `skipped, since ${CHROMIUM} is missing (on Debian: apt-get install chromium)`;

/** Starts a headless browser that makes no requests of its own. */
export function openBrowser(): Promise<Browser> {
  const quiet = [
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ];
  // A container often has neither a sandbox nor a graphics card.
  const args = ['--no-sandbox', '--disable-gpu', ...quiet];
  return chromium.launch({ executablePath: CHROMIUM, headless: true, args });
}
