import { readdirSync } from 'node:fs';
import { attempt } from '../shared/attempt.js';
import { memoize } from '../shared/memoize.js';
import { readRegularFile } from '../shared/read-file.js';

// Every hook loads this before anything else, so it imports next to nothing.

const NOT_THERE = ['ENOENT', 'ENOTDIR'];

/** Reads each settings file once: for one event, the same settings count from its beginning to its end. */
export class SettingsReader {
  readonly #text = memoize(readText);
  /** The names in a folder of settings files. */
  readonly list = memoize((folder: string): readonly string[] => attempt(() => readdirSync(folder)) ?? []);

  /** Throws if a file is there and cannot be read: what it forbids is not known then. */
  read(path: string): string | undefined {
    return this.#text(path)();
  }
}

function readText(path: string): () => string | undefined {
  try {
    const text = readRegularFile(path)?.replace(/^\uFEFF/, '');
    return () => text;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (NOT_THERE.includes(code)) return () => undefined;
    return () => {
      throw new Error(`nothing is sent, because ${path} cannot be read (${code})`);
    };
  }
}
