import { writeFileSync } from 'node:fs';
import writeFileAtomic from 'write-file-atomic';

/** Writes a file for the user alone, whole or not at all. */
export function writeWhole(path: string, text: string): void {
  // Written by us and not by the library, which takes a write that a full disk cut short for the whole.
  const write = (temporary: string) => writeFileSync(temporary, text);
  writeFileAtomic.sync(path, '', { mode: 0o600, tmpfileCreated: write });
}
