import { Presets, SingleBar } from 'cli-progress';
import { formatCount, formatDuration } from '../../cli/format.js';
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
  /** Up to which byte the sessions under way have been read. */
  readonly #offsets = new Map<SessionOverview, number>();
  readonly #bar: SingleBar | undefined;
  readonly #timer: NodeJS.Timeout;
  #readBytes = 0;
  #doneBytes = 0;
  #sessions = 0;
  #turns = 0;

  constructor(sessions: readonly SessionOverview[], destination: Destination) {
    this.#total = { sessions: sessions.length, bytes: sessions.reduce((sum, { bytes }) => sum + bytes, 0) };
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

  /** `from` is the byte at which reading begins. */
  begin(session: SessionOverview, from: number): void {
    this.#doneBytes += from;
    this.#offsets.set(session, from);
  }

  read(session: SessionOverview, offset: number): void {
    const before = this.#offsets.get(session);
    if (before === undefined || offset <= before) return;
    this.#readBytes += offset - before;
    this.#doneBytes += offset - before;
    this.#offsets.set(session, offset);
  }

  acknowledged({ turns }: Tally): void {
    this.#turns += turns;
  }

  end(session: SessionOverview): void {
    this.read(session, session.bytes);
    this.#offsets.delete(session);
    this.#sessions += 1;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#bar?.stop();
  }

  #show(): void {
    const words = this.#describe();
    if (this.#bar) this.#bar.update(this.#doneBytes, { words });
    else process.stderr.write(`${words}\n`);
  }

  #describe(): string {
    const { sessions, bytes } = this.#total;
    const perSecond = this.#readBytes / ((Date.now() - this.#startedAt) / 1_000);
    const pauseMs = this.#destination.pausedUntil - Date.now();
    const parts = [
      `${formatCount(this.#sessions)}/${formatCount(sessions)} sessions`,
      `${formatCount(this.#turns)} turns`,
      `${(perSecond / 1_000_000).toFixed(1)} MB/s`,
    ];
    if (perSecond > 0) parts.push(`${formatDuration(((bytes - this.#doneBytes) / perSecond) * 1_000)} left`);
    if (pauseMs > 0) parts.push(`the server asks to wait ${formatDuration(pauseMs)}`);
    return parts.join(' · ');
  }
}
