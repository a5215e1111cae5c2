import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import writeFileAtomic from 'write-file-atomic';

/**
 * Writes a whole file or nothing. What a link points to is replaced, and an existing file keeps its owner, and its mode unless there
 * is another.
 */
export function writeFileAtomically(path: string, text: string, mode?: number): void {
  // The library itself would mistake a write that a full disk cut short for a complete one.
  const tmpfileCreated = (temporary: string) => writeFileSync(temporary, text);
  writeFileAtomic.sync(path, '', { tmpfileCreated, ...(mode !== undefined && { mode }) });
}

/** The same for a file that only this program writes, and only its user may read. It takes a quarter of the file operations. */
export function replaceOwnFile(path: string, text: string): void {
  const temporary = `${path}.${process.pid}-${process.hrtime.bigint()}`;
  try {
    // Of a text, Node 20 would not flush what it has written.
    writeFileSync(temporary, Buffer.from(text), { flag: 'wx', mode: 0o600, flush: true });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** The same in a folder that may not be there yet. */
export function saveOwnFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replaceOwnFile(path, text);
}
