import { isUtf8 } from 'node:buffer';
import { chmodSync, lstatSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { structuredPatch } from 'diff';
import { errorReason } from '../../cli/command-line.js';
import { style } from '../../cli/terminal.js';
import { readSettingsAt } from '../../config/claude-settings.js';
import { createRedactor } from '../../observations/redaction/redact.js';
import { writeFileAtomically } from '../../shared/atomic-write.js';

const BYTE_ORDER_MARK = '\uFEFF';
const COLOURS: { readonly [sign: string]: 'green' | 'red' } = { '+': 'green', '-': 'red' };

/** A change of a settings file that is not written yet. */
export interface SettingsChange {
  readonly path: string;
  /** Undefined if there is no file. */
  readonly before: string | undefined;
  readonly after: string;
}

/** Throws an error of one line if the file cannot be changed. */
export function planChange(path: string, change: (text: string) => string): SettingsChange {
  const before = readText(path);
  const mark = before?.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
  try {
    return { path, before, after: mark + change((before ?? '').slice(mark.length)) };
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`);
  }
}

function readText(path: string): string | undefined {
  const content = readSettingsAt(path);
  switch (content.kind) {
    case 'settings':
      if (!isUtf8(readFileSync(path))) throw new Error(`${path} is not UTF-8; save it as UTF-8 first`);
      return content.text;
    case 'absent':
      if (lstatSync(path, { throwIfNoEntry: false }))
        throw new Error(`${path} is a link to a file that does not exist; create that file, or remove the link`);
      return undefined;
    case 'invalid':
      throw new Error(`${path} is not JSON that Claude Code can read (${content.problem}); fix it first`);
    case 'unreadable':
    case 'no file':
      throw new Error(`${path} cannot be read (${content.reason}); replace it with a readable file, or remove it`);
  }
}

/** Shows the lines that change and some around them, without secrets. */
export function showChange({ path, before = '', after }: SettingsChange): string {
  if (before === after) return `${path} would not change`;
  const redact = createRedactor([]);
  const { hunks } = structuredPatch('', '', before, after, '', '', { context: 2 });
  const lines = hunks.flatMap(({ oldStart, newStart, lines: patch }) => [
    style('cyan', `@@ line ${Math.max(oldStart, newStart, 1)}`),
    ...patch
      .filter((line) => !line.startsWith('\\'))
      // A comment may contain control characters that a terminal obeys.
      .map((line) => style(COLOURS[line.charAt(0)] ?? [], redact(line.trimEnd().replace(/(?!\t)\p{Cc}/gu, '')))),
  ]);
  return `${path} would change:\n${lines.join('\n')}`;
}

/**
 * Finds the copy that install made of the file as it was before the first installation. A link there is not followed: it may
 * come with a project that someone else wrote.
 */
export function findBackup(path: string): string | undefined {
  const backup = backupPath(path);
  return lstatSync(backup, { throwIfNoEntry: false })?.isFile() ? backup : undefined;
}

/** Next to the name that Claude Code knows. */
function backupPath(path: string): string {
  return `${path}.cc-langfuse.bak`;
}

/**
 * Writes all or nothing, through a link to its target. A new file is readable by its owner alone unless it is shared. Returns the
 * path of the backup if it made one.
 */
export function writeChange(
  { path, before, after }: SettingsChange,
  { keepsBackup, isShared = false }: { readonly keepsBackup: boolean; readonly isShared?: boolean },
): string | undefined {
  if (before === after) return undefined;
  try {
    if (before === undefined) {
      const firstCreated = mkdirSync(dirname(path), { recursive: true });
      // The umask of an administrator may be stricter.
      if (isShared && firstCreated !== undefined)
        for (const each of [firstCreated, dirname(path)]) chmodSync(each, 0o755);
      writeFileAtomically(path, after, isShared ? 0o644 : 0o600);
      return undefined;
    }
    const backup = keepsBackup && findBackup(path) === undefined ? backupPath(path) : undefined;
    if (backup !== undefined) {
      rmSync(backup, { force: true });
      // The keys in it may still be valid when everyone has forgotten it.
      writeFileAtomically(backup, before, 0o600);
    }
    try {
      writeFileAtomically(realpathSync(path), after);
    } catch (error) {
      if (backup !== undefined) rmSync(backup);
      throw error;
    }
    return backup;
  } catch (error) {
    throw new Error(`${path} cannot be written (${errorReason(error)}); nothing was changed`);
  }
}
