import { Presets, SingleBar } from 'cli-progress';
import { formatCount, formatDuration } from '../../cli/format.js';
import { printStderr } from '../../cli/terminal.js';
import type { Tally } from '../../export/tally.js';
import type { Destination } from '../../langfuse/destination.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';

/** How often a line is written if there is no terminal to draw in. */
const LINE_EVERY_MS = 5_000;
const DRAW_EVERY_MS = 200;

/** Shows on stderr how far a backfill is: as a bar in a terminal, otherwise as a line from time to time. */
export class ProgressReport {
  readonly #total: { readonly sessions: number; readonly bytes: number };
  readonly #destination: Destination;
  readonly #startedAt = Date.now();
  /** From which byte a session was read, and up to which. */
  readonly #ranges = new Map<SessionOverview, { readonly from: number; to: number }>();
  readonly #bar: SingleBar | undefined;
  readonly #timer: NodeJS.Timeout;
  #sessions = 0;
  #turns = 0;

  constructor(sessions: readonly SessionOverview[], destination: Destination) {
    this.#total = { sessions: sessions.length, bytes: sum(sessions.map(({ bytes }) => bytes)) };
    this.#destination = destination;
    if (process.stderr.isTTY) {
      const format = '{bar} {percentage}% {words}';
      this.#bar = new SingleBar(
        { format, stream: process.stderr, barsize: 16, hideCursor: true, clearOnComplete: true, gracefulExit: false },
        Presets.shades_classic,
      );
      this.#bar.start(Math.max(1, this.#total.bytes), 0, { words: '' });
    }
    this.#timer = setInterval(() => this.#show(), this.#bar ? DRAW_EVERY_MS : LINE_EVERY_MS);
    this.#timer.unref();
  }

  begin(session: SessionOverview, from: number): void {
    this.#ranges.set(session, { from, to: from });
  }

  read(session: SessionOverview, offset: number): void {
    const range = this.#ranges.get(session);
    if (range) range.to = Math.max(range.to, offset);
  }

  acknowledged({ turns }: Tally): void {
    this.#turns += turns;
  }

  end(session: SessionOverview): void {
    this.read(session, session.bytes);
    this.#sessions += 1;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#bar?.stop();
  }

  #show(): void {
    const ranges = [...this.#ranges.values()];
    const doneBytes = sum(ranges.map(({ to }) => to));
    const readBytes = sum(ranges.map(({ from, to }) => to - from));
    const perSecond = readBytes / ((Date.now() - this.#startedAt) / 1_000);
    const leftMs = ((this.#total.bytes - doneBytes) / perSecond) * 1_000;
    const pauseMs = this.#destination.pausedUntil - Date.now();
    const words = [
      `${formatCount(this.#sessions)}/${formatCount(this.#total.sessions)} sessions`,
      `${formatCount(this.#turns)} turns`,
      `${(perSecond / 1_000_000).toFixed(1)} MB/s`,
      ...(perSecond > 0 ? [`${formatDuration(leftMs)} left`] : []),
      ...(pauseMs > 0 ? [`the server asks to wait ${formatDuration(pauseMs)}`] : []),
    ].join(' · ');
    if (this.#bar) this.#bar.update(doneBytes, { words });
    else printStderr(words);
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
