import { readdirSync } from 'node:fs';
import { attempt } from '../shared/attempt.js';
import { readRegularFile } from '../shared/read-file.js';

// Every hook loads this before anything else, so it imports next to nothing.

const NOT_THERE = ['ENOENT', 'ENOTDIR'];

/** Reads each settings file once: for one event, the same settings count from its beginning to its end. */
export class SettingsReader {
  readonly #texts = new Map<string, () => string | undefined>();
  readonly #names = new Map<string, readonly string[]>();

  /** Throws if a file is there and cannot be read: what it forbids is not known then. */
  read(path: string): string | undefined {
    const text = this.#texts.get(path) ?? readText(path);
    this.#texts.set(path, text);
    return text();
  }

  /** The names in a folder of settings files. */
  list(folder: string): readonly string[] {
    const names = this.#names.get(folder) ?? attempt(() => readdirSync(folder)) ?? [];
    this.#names.set(folder, names);
    return names;
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
