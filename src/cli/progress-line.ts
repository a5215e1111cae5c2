/** Who waits no longer than that needs no progress. */
const FIRST_AFTER_MS = 1_000;
const DRAW_EVERY_MS = 200;
const ERASE_LINE = '\r\u001b[K';

/** A line in a terminal that says how far something is that takes long. */
export class ProgressLine {
  #drawAt = Date.now() + FIRST_AFTER_MS;
  #isDrawn = false;

  show(describe: () => string): void {
    if (!process.stderr.isTTY || Date.now() < this.#drawAt) return;
    process.stderr.write(`${ERASE_LINE}${describe()}`);
    this.#drawAt = Date.now() + DRAW_EVERY_MS;
    this.#isDrawn = true;
  }

  /** To be called with how many transcripts have been read. */
  readonly showRead = (done: number, all: number): void => this.show(() => `read ${done} of ${all} transcripts`);

  /** Erases it, before something else is printed. */
  clear(): void {
    if (this.#isDrawn) process.stderr.write(ERASE_LINE);
    this.#isDrawn = false;
  }
}
