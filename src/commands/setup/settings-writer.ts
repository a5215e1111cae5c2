import { isUtf8 } from 'node:buffer';
import { chmodSync, constants, copyFileSync, lstatSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { readSettingsAt } from '../../config/claude-settings.js';
import { writeFileAtomically } from '../../shared/atomic-write.js';

const BYTE_ORDER_MARK = '\uFEFF';

/** A change of a settings file: the texts before and after, none before where there is no file. */
export interface SettingsChange {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string;
}

/** What a file's text would become; throws, in one line, where it cannot be changed. */
export function changeOf(path: string, change: (text: string) => string): SettingsChange {
  const before = readText(path);
  const mark = before?.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
  try {
    return { path, before, after: mark + change((before ?? '').slice(mark.length)) };
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`);
  }
}

/** Writes it all or nothing, to where a link leads; gives the path of the backup, where there was something to keep. */
export function write({ path, before, after }: SettingsChange): string | undefined {
  if (before === after) return undefined;
  try {
    if (before === undefined) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileAtomically(path, after, 0o600);
      return undefined;
    }
    const file = realpathSync(path);
    // Beside the name that Claude Code knows. There is one, however often this is done.
    const backup = `${path}.cc-langfuse.bak`;
    keepCopy(file, backup);
    try {
      writeFileAtomically(file, after);
    } catch (error) {
      rmSync(backup);
      throw error;
    }
    return backup;
  } catch (error) {
    throw new Error(`${path} cannot be written (${reasonOf(error)}); nothing was changed`);
  }
}

function keepCopy(file: string, backup: string): void {
  // Anew, since a project that someone else wrote may have put a link there.
  rmSync(backup, { force: true });
  copyFileSync(file, backup, constants.COPYFILE_EXCL);
  // The keys in it may be good still when nobody thinks of it any more.
  chmodSync(backup, 0o600);
}

function readText(path: string): string | undefined {
  const content = readSettingsAt(path);
  switch (content.kind) {
    case 'settings':
      if (!isUtf8(readFileSync(path))) throw new Error(`${path} is not all in UTF-8; save it so first`);
      return content.text;
    case 'absent':
      if (lstatSync(path, { throwIfNoEntry: false }))
        throw new Error(`${path} is a link to a file that does not exist; make that file, or remove the link`);
      return undefined;
    case 'invalid':
      throw new Error(`${path} is no JSON that Claude Code could read (${content.problem}); correct it first`);
    case 'unreadable':
      throw new Error(`${path} cannot be read (${content.reason}); make it a file that you can read, or remove it`);
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
