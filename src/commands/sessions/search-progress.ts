import { formatBytes } from '../../cli/format.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';

/** Who waits no longer than that needs no progress. */
const FIRST_AFTER_MS = 1_000;
const DRAW_EVERY_MS = 200;
const ERASE_LINE = '\r\u001b[K';

/** Shows in a terminal how much a search has read. */
export class SearchProgress {
  readonly #total: string;
  #read = 0;
  #drawAt = Date.now() + FIRST_AFTER_MS;
  #isDrawn = false;

  constructor(sessions: readonly SessionOverview[]) {
    this.#total = formatBytes(sessions.reduce((sum, { bytes }) => sum + bytes, 0));
  }

  add({ bytes }: SessionOverview): void {
    this.#read += bytes;
    if (!process.stderr.isTTY || Date.now() < this.#drawAt) return;
    process.stderr.write(`${ERASE_LINE}searched ${formatBytes(this.#read)} of ${this.#total}`);
    this.#drawAt = Date.now() + DRAW_EVERY_MS;
    this.#isDrawn = true;
  }

  /** Erases it, before something else is printed. */
  clear(): void {
    if (this.#isDrawn) process.stderr.write(ERASE_LINE);
    this.#isDrawn = false;
  }
}
