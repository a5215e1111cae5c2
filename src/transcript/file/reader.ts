import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { parseTimestamp } from './time.js';

/** Where a line stands: its 1-based number and the bytes it takes, its newline included. */
export interface Place {
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

export interface SourceLine extends Place {
  readonly bytes: Buffer;
}

const NEWLINE = 0x0a;
const CHUNK_BYTES = 1 << 18;
const LONGEST_LINE_BYTES = 1 << 28;
// Windows has neither of the last two.
export const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Reads a growing file line by line, from any line's start on. A line is whole only at its newline. */
export class TranscriptReader {
  readonly #file: number;
  readonly #chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  #offset = 0;
  #number = 1;
  #unfinished: Buffer[] = [];
  #unfinishedBytes = 0;

  private constructor(file: number) {
    this.#file = file;
  }

  /** Opens a regular file, never a symlink and never a FIFO, which would hang. */
  static open(path: string): TranscriptReader {
    const file = openSync(path, OPEN_FLAGS);
    if (!fstatSync(file).isFile()) {
      closeSync(file);
      throw new Error('not a regular file');
    }
    return new TranscriptReader(file);
  }

  get status() {
    const { size, mtimeMs, birthtimeMs } = fstatSync(this.#file);
    return { bytes: size, changedAt: mtimeMs, bornAt: Math.trunc(birthtimeMs || mtimeMs) };
  }

  /** Up to which byte it has been read, a line that is not whole yet included. */
  get offset(): number {
    return this.#offset + this.#unfinishedBytes;
  }

  /**
   * Moves on to a line, by its first byte; where that is 0, the lines before it are counted. Says where it is then, or
   * nothing where no line starts there.
   */
  moveTo({ line, offset }: { line: number; offset: number }): { line: number; offset: number } | undefined {
    if (offset === 0) return this.#skipTo(line) ? { line, offset: this.#offset } : undefined;
    if (!this.#startsLine(offset)) return undefined;
    this.#number = line;
    this.#offset = offset;
    return { line, offset };
  }

  /** Moves on to the first line that starts at a byte or behind it; the lines are counted from there. */
  moveBehind(offset: number): void {
    if (offset === 0) return;
    this.#offset = offset - 1;
    for (const _ of this.lines()) return;
  }

  /** What stands there, as far as the file still reaches. */
  bytesOf({ start, end }: Place): Buffer {
    const bytes = Buffer.allocUnsafe(end - start);
    return bytes.subarray(0, readSync(this.#file, bytes, 0, bytes.length, start));
  }

  /**
   * The whole lines not read yet; the bytes of each are good until the next one is asked for. Once they are used up it may
   * be called again: the file may have grown.
   */
  *lines(): Generator<SourceLine, void, undefined> {
    for (;;) {
      const start = this.#offset + this.#unfinishedBytes;
      const length = readSync(this.#file, this.#chunk, 0, CHUNK_BYTES, start);
      if (length === 0) return;
      yield* this.#split(this.#chunk.subarray(0, length));
    }
  }

  /** The first time that the file tells of, if it does so near its beginning. */
  firstTime(): number | undefined {
    const head = Buffer.alloc(CHUNK_BYTES);
    const length = readSync(this.#file, head, 0, CHUNK_BYTES, 0);
    const [, timestamp] = /"timestamp":"([^"]{1,40})"/.exec(head.toString('latin1', 0, length)) ?? [];
    return parseTimestamp(timestamp);
  }

  /** What stands behind the last newline: a line still being written, or one that never got its newline. */
  rest(): SourceLine | undefined {
    if (this.#unfinishedBytes === 0) return undefined;
    const bytes = Buffer.concat(this.#unfinished);
    return { number: this.#number, start: this.#offset, end: this.#offset + bytes.length, bytes };
  }

  close(): void {
    closeSync(this.#file);
  }

  #skipTo(line: number): boolean {
    if (this.#number >= line) return true;
    for (const { number } of this.lines()) if (number + 1 === line) return true;
    return false;
  }

  #startsLine(offset: number): boolean {
    const before = Buffer.alloc(1);
    return readSync(this.#file, before, 0, 1, offset - 1) === 1 && before[0] === NEWLINE;
  }

  *#split(chunk: Buffer): Generator<SourceLine, void, undefined> {
    let from = 0;
    for (let newline = chunk.indexOf(NEWLINE); newline >= 0; newline = chunk.indexOf(NEWLINE, from)) {
      const piece = chunk.subarray(from, newline);
      const bytes = this.#unfinishedBytes > 0 ? Buffer.concat([...this.#unfinished, piece]) : piece;
      const line = { number: this.#number, start: this.#offset, end: this.#offset + bytes.length + 1, bytes };
      this.#unfinished = [];
      this.#unfinishedBytes = 0;
      this.#number += 1;
      this.#offset = line.end;
      from = newline + 1;
      yield line;
    }
    if (this.#unfinishedBytes > LONGEST_LINE_BYTES) throw new Error('a line has no end');
    if (from < chunk.length) {
      this.#unfinished.push(Buffer.from(chunk.subarray(from)));
      this.#unfinishedBytes += chunk.length - from;
    }
  }
}
