import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { BEGINNING, type Place } from '../../shared/place.js';
import { withReader } from './lines.js';
import type { TranscriptReader } from './reader.js';

const HASHED_BYTES = 4_096;

/** The places of a transcript. */
export class Places {
  readonly #path: string;
  readonly #reader: TranscriptReader | undefined;
  readonly #known = new Map<number, Place>([[0, BEGINNING]]);

  /** `reader` is that of the file, if it is open already. */
  constructor(path: string, reader?: TranscriptReader) {
    this.#path = path;
    this.#reader = reader;
  }

  /** The place after so many bytes, or at the end of the file. */
  at(bytes = Number.POSITIVE_INFINITY): Place {
    const known = this.#known.get(bytes);
    if (known) return known;
    const place = this.#read((reader) => hashBefore(reader, Math.min(bytes, reader.status.bytes))) ?? BEGINNING;
    this.#known.set(bytes, place);
    return place;
  }

  /** Whether the bytes before a place are still the same. A file that is gone has none that could have changed. */
  isIntact({ bytes, hash }: Place): boolean {
    if (!this.#exists()) return true;
    const now = this.at(bytes);
    return now.bytes === bytes && now.hash === hash;
  }

  /** The first byte after so many lines; undefined if there are fewer. */
  afterLine(line: number): number | undefined {
    if (line === 0) return 0;
    return this.#exists()
      ? withReader(this.#path, (reader) => reader.moveTo({ line: line + 1, offset: 0 })?.offset)
      : undefined;
  }

  /** A hash of what is at both ends of a part of the file, of so many bytes each. */
  hashEnds(start: number, end: number, most = HASHED_BYTES): string | undefined {
    return this.#read((reader) => {
      const first = reader.readBytes({ start, end: Math.min(start + most, end) });
      const last = reader.readBytes({ start: Math.max(start, end - most), end });
      return hash(first, last);
    });
  }

  #exists(): boolean {
    return this.#reader !== undefined || lstatSync(this.#path, { throwIfNoEntry: false })?.isFile() === true;
  }

  #read<T>(use: (reader: TranscriptReader) => T): T | undefined {
    if (this.#reader) return use(this.#reader);
    return this.#exists() ? withReader(this.#path, use) : undefined;
  }
}

function hashBefore(reader: TranscriptReader, bytes: number): Place {
  if (bytes === 0) return BEGINNING;
  return { bytes, hash: hash(reader.readBytes({ start: Math.max(0, bytes - HASHED_BYTES), end: bytes })) };
}

function hash(...all: readonly Buffer[]): string {
  const sum = createHash('sha256');
  for (const bytes of all) sum.update(bytes);
  return sum.digest('hex').slice(0, 16);
}
