import { createRedactor } from '../../observations/redaction/redact.js';
import { fileDiff } from './file-diff.js';
import type { SettingsChange } from './settings-writer.js';

/** The lines that a change would change, without the secrets in them. */
export function shownChange({ path, before, after }: SettingsChange): string {
  if (before === after) return `${path} would stay as it is\n`;
  const redact = createRedactor([]);
  // A comment may hold what a terminal obeys.
  const lines = fileDiff(before ?? '', after, (line) => redact(line.replace(/(?!\t)\p{Cc}/gu, '')));
  return `${path} would become:\n${lines.join('\n')}\n`;
}
