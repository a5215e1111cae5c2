import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { attempt } from './attempt.js';
import { parseJson } from './json.js';

// Without O_NONBLOCK, opening a FIFO would hang. Windows has neither.
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Reads a file that anyone may have written; undefined if it is not a regular one, which might never end. */
export function readRegularFile(path: string): string | undefined {
  const file = openSync(path, OPEN_FLAGS);
  try {
    return fstatSync(file).isFile() ? readFileSync(file, 'utf8') : undefined;
  } finally {
    closeSync(file);
  }
}

/** Reads a file that only this program writes. A FIFO in its place is empty. */
export function readOwnFile(path: string): string {
  // Node takes a number, which its types do not say.
  return readFileSync(path, { encoding: 'utf8', flag: OPEN_FLAGS as unknown as string });
}

/** Returns what is in a JSON file; undefined if there is none, or if it cannot be read. */
export function readJsonFile(path: string): unknown {
  return parseJson(attempt(() => readOwnFile(path)) ?? '');
}
