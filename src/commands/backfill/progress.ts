import { Presets, SingleBar } from 'cli-progress';
import { formatCount, formatDuration } from '../../cli/format.js';
import type { Tally } from '../../export/tally.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import type { Progress, SessionResult } from './backfill.js';

/** How often a line is written where there is no terminal to draw in. */
const LINE_EVERY_MS = 5_000;
const DRAWN_EVERY_MS = 200;

/** How far a long run has come: a bar in a terminal, a line from time to time elsewhere. */
export class ProgressReport implements Progress {
  readonly #total: { readonly sessions: number; readonly bytes: number };
  readonly #pausedUntil: () => number;
  readonly #output: NodeJS.WriteStream;
  readonly #startedAt = Date.now();
  /** Up to which byte those that are begun have been read. */
  readonly #open = new Map<SessionOverview, number>();
  readonly #bar: SingleBar | undefined;
  readonly #timer: NodeJS.Timeout;
  #readBytes = 0;
  #doneBytes = 0;
  #sessions = 0;
  #turns = 0;

  constructor(sessions: readonly SessionOverview[], output: NodeJS.WriteStream, pausedUntil: () => number) {
    this.#total = { sessions: sessions.length, bytes: sessions.reduce((sum, { bytes }) => sum + bytes, 0) };
    this.#pausedUntil = pausedUntil;
    this.#output = output;
    if (output.isTTY) {
      const format = '{bar} {percentage}% {words}';
      this.#bar = new SingleBar(
        { format, stream: output, barsize: 16, hideCursor: true, clearOnComplete: true, gracefulExit: false },
        Presets.shades_classic,
      );
      this.#bar.start(Math.max(1, this.#total.bytes), 0, { words: '' });
    }
    this.#timer = setInterval(() => this.#tell(), this.#bar ? DRAWN_EVERY_MS : LINE_EVERY_MS);
    this.#timer.unref();
  }

  begin(session: SessionOverview, from: number): void {
    this.#doneBytes += from;
    this.#open.set(session, from);
  }

  read(session: SessionOverview, offset: number): void {
    const before = this.#open.get(session);
    if (before === undefined || offset <= before) return;
    this.#readBytes += offset - before;
    this.#doneBytes += offset - before;
    this.#open.set(session, offset);
  }

  taken({ turns }: Tally): void {
    this.#turns += turns;
  }

  end({ session }: SessionResult): void {
    this.read(session, session.bytes);
    this.#open.delete(session);
    this.#sessions += 1;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#bar?.stop();
  }

  #tell(): void {
    if (this.#bar) this.#bar.update(this.#doneBytes, { words: this.#words() });
    else this.#output.write(`${this.#words()}\n`);
  }

  #words(): string {
    const { sessions, bytes } = this.#total;
    const passedMs = Date.now() - this.#startedAt;
    const perSecond = this.#readBytes / (passedMs / 1_000);
    const leftMs = perSecond > 0 ? ((bytes - this.#doneBytes) / perSecond) * 1_000 : undefined;
    const pauseMs = this.#pausedUntil() - Date.now();
    return [
      `${formatCount(this.#sessions)}/${formatCount(sessions)} sessions`,
      `${formatCount(this.#turns)} turns`,
      `${(perSecond / 1_000_000).toFixed(1)} MB/s`,
      ...(leftMs === undefined ? [] : [`${formatDuration(leftMs)} left`]),
      ...(pauseMs > 0 ? [`the server asks to wait ${formatDuration(pauseMs)}`] : []),
    ].join(' · ');
  }
}

/** Where nobody looks. */
export const NO_PROGRESS: Progress & { stop(): void } = { begin() {}, read() {}, taken() {}, end() {}, stop() {} };
