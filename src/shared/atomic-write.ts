import { writeFileSync } from 'node:fs';
import writeFileAtomic from 'write-file-atomic';

/** Writes a file whole or not at all; without a mode one that is there keeps its mode and owner. */
export function writeFileAtomically(path: string, text: string, mode?: number): void {
  // Written by us and not by the library, which takes a write that a full disk cut short for the whole.
  const tmpfileCreated = (temporary: string) => writeFileSync(temporary, text);
  writeFileAtomic.sync(path, '', { tmpfileCreated, ...(mode !== undefined && { mode }) });
}
