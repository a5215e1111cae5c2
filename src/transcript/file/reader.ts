import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { identifyFile } from '../../shared/file-identity.js';

/** Where a line is in its file: its number, counted from 1, and its bytes, the newline included. */
export interface LineLocation {
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

export interface SourceLine extends LineLocation {
  /** Empty if the line is too long to be held in memory. */
  readonly bytes: Buffer;
  readonly isTooLong?: boolean;
}

/** Where to read from: the number of a line and its first byte. */
export interface Position {
  readonly line: number;
  readonly offset: number;
}

const NEWLINE = 0x0a;
const EMPTY = Buffer.alloc(0);
const CHUNK_BYTES = 1 << 18;
// A request to the API has 32 MB at most, and a line can contain an attachment twice. Reading it takes up to five times its size.
export const LONGEST_LINE_BYTES = 1 << 26;
const HELD_BYTES = 1 << 20;
// Windows has neither O_NOFOLLOW nor O_NONBLOCK.
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Reads a growing file line by line, from the start of any line. A line is complete only with its newline. */
export class TranscriptReader {
  readonly #file: number;
  #chunk: Buffer | undefined;
  #offset = 0;
  #number = 1;
  #unfinished: Buffer[] = [];
  #unfinishedBytes = 0;

  private constructor(file: number) {
    this.#file = file;
  }

  /** Opens a regular file, but never a symlink, nor a FIFO, which would hang. */
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

  /** Identifies the file if all of it has been read; undefined if it has grown since. */
  identifyRead(): string | undefined {
    const status = fstatSync(this.#file, { bigint: true });
    return status.size === BigInt(this.offset) ? identifyFile(status) : undefined;
  }

  /** How many bytes have been read, an unfinished line included. */
  get offset(): number {
    return this.#offset + this.#unfinishedBytes;
  }

  /**
   * Moves to the start of a line. If its offset is 0, it is found by counting lines. Returns where the reader is then, or
   * undefined if no line starts there.
   */
  moveTo({ line, offset }: Position): Position | undefined {
    this.#unfinished = [];
    this.#unfinishedBytes = 0;
    if (offset === 0) {
      this.#number = 1;
      this.#offset = 0;
      if (line <= 1) return { line, offset };
      for (const { number, end } of this.lines()) if (number + 1 === line) return { line, offset: end };
      return undefined;
    }
    if (this.readBytes({ start: offset - 1, end: offset })[0] !== NEWLINE) return undefined;
    this.#number = line;
    this.#offset = offset;
    return { line, offset };
  }

  /** Moves to the first line that starts at a byte or after it; lines are counted from there. */
  moveToLineFrom(offset: number): void {
    if (offset === 0) return;
    this.#offset = offset - 1;
    for (const _ of this.lines()) return;
  }

  /** The bytes of a part of the file; fewer if the file has become shorter. */
  readBytes({ start, end }: Pick<LineLocation, 'start' | 'end'>, buffer = Buffer.allocUnsafe(end - start)): Buffer {
    return buffer.subarray(0, readSync(this.#file, buffer, 0, end - start, start));
  }

  /**
   * The complete lines that have not been read yet. The bytes of one are valid until the next one is requested. Can be
   * called again when the file has grown. If the reader is moved meanwhile, they go on from there.
   */
  *lines(): Generator<SourceLine, void, undefined> {
    this.#chunk ??= Buffer.allocUnsafe(CHUNK_BYTES);
    for (;;) {
      const length = readSync(this.#file, this.#chunk, 0, CHUNK_BYTES, this.offset);
      if (length === 0) return;
      yield* this.#split(this.#chunk.subarray(0, length));
    }
  }

  /** What follows the last newline: a line that is still being written, or that never got its newline. */
  unfinishedLine(): SourceLine | undefined {
    if (this.#unfinishedBytes === 0) return undefined;
    return { ...this.#findBytes(), number: this.#number, start: this.#offset, end: this.offset };
  }

  close(): void {
    closeSync(this.#file);
  }

  *#split(chunk: Buffer): Generator<SourceLine, void, undefined> {
    let from = 0;
    for (let newline = chunk.indexOf(NEWLINE); newline >= 0; newline = chunk.indexOf(NEWLINE, from)) {
      const line = this.#finishLine(chunk.subarray(from, newline));
      this.#unfinished = [];
      this.#unfinishedBytes = 0;
      this.#number += 1;
      this.#offset = line.end;
      from = newline + 1;
      yield line;
      // The reader was moved meanwhile.
      if (this.#offset !== line.end) return;
    }
    if (from < chunk.length) this.#hold(Buffer.from(chunk.subarray(from)));
  }

  /** Most lines are whole in a chunk. */
  #finishLine(part: Buffer): SourceLine {
    const start = this.#offset;
    if (this.#unfinishedBytes === 0) return { number: this.#number, start, end: start + part.length + 1, bytes: part };
    this.#hold(part);
    return { ...this.#findBytes(), number: this.#number, start, end: this.offset + 1 };
  }

  /** Keeps a part of the line that is being read. Of a long one only the length is kept, and its bytes are read again. */
  #hold(part: Buffer): void {
    this.#unfinishedBytes += part.length;
    if (this.#unfinishedBytes > HELD_BYTES) this.#unfinished = [];
    else this.#unfinished.push(part);
  }

  #findBytes(): Pick<SourceLine, 'bytes' | 'isTooLong'> {
    if (this.#unfinishedBytes > LONGEST_LINE_BYTES) return { bytes: EMPTY, isTooLong: true };
    if (this.#unfinishedBytes > HELD_BYTES) return { bytes: this.readBytes({ start: this.#offset, end: this.offset }) };
    const [bytes = EMPTY, ...more] = this.#unfinished;
    return { bytes: more.length > 0 ? Buffer.concat(this.#unfinished) : bytes };
  }
}
