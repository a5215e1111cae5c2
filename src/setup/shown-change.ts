import { redactor } from '../observations/redact.js';
import { fileDiff } from '../terminal/file-diff.js';
import type { SettingsChange } from './settings-writer.js';

/** The lines that a change would change, without the secrets in them. */
export function shownChange({ path, before, after }: SettingsChange): string {
  if (before === after) return `${path} would stay as it is\n`;
  const lines = fileDiff(before ?? '', after, redactor([]));
  return `${path} would become:\n${lines.join('\n')}\n`;
}
