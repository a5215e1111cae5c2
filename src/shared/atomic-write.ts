import { writeFileSync } from 'node:fs';
import writeFileAtomic from 'write-file-atomic';

/** Writes a whole file or nothing. Without a mode, an existing file keeps its mode and owner. */
export function writeFileAtomically(path: string, text: string, mode?: number): void {
  // The library itself would mistake a write that a full disk cut short for a complete one.
  const tmpfileCreated = (temporary: string) => writeFileSync(temporary, text);
  writeFileAtomic.sync(path, '', { tmpfileCreated, ...(mode !== undefined && { mode }) });
}
