import { groupBy } from '../src/shared/group-by.js';
import type { BundledPackage } from './bundled-packages.js';

/** Writes the notices that the licences ask for: each copyright, and each licence once. */
export function formatLicences(packages: readonly BundledPackage[]): string {
  const sections = [...groupBy(packages, ({ text }) => identify(text)).values()].map((group) => {
    const entries = group.map(({ name, version, licence, text }) => {
      const notices = divide(text).notices.map((line) => `  ${line}`);
      return [`${name} ${version} (${licence})`, ...notices].join('\n');
    });
    return `${entries.join('\n')}\n\n${divide(group[0].text).terms}\n`;
  });
  const introduction = 'cc-langfuse contains code of these packages. Each has the licence below its name.';
  return `${introduction}\n\n${sections.join('\n--------\n\n')}`;
}

/** The same for two texts whose terms differ only in how they are wrapped and quoted. */
function identify(text: string): string {
  const { terms } = divide(text);
  return terms.toLowerCase().replace(/[^a-z0-9]+/g, ' ');
}

const TITLE = /^[#\s(]*(?:the )?(?:mit|isc|bsd)\b.*licen[cs]e/i;

/** Divides a licence into whose it is, and what it says. Without such a place, it is all kept. */
function divide(text: string): { notices: readonly string[]; terms: string } {
  const start = Math.max(0, text.search(/^(?:permission|redistribution)\b/im));
  const lines = text.slice(0, start).split('\n');
  const notices = lines.filter((line) => !TITLE.test(line)).map((line) => line.trim());
  return { notices: notices.filter((line) => line !== ''), terms: text.slice(start).trim() };
}
