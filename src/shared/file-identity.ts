import type { BigIntStats } from 'node:fs';

/** What differs if a file has been changed or replaced, even by one of the same size. */
export function identifyFile({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs}`;
}
