import type { Observation } from '../observations/model.js';
import type { Destination, Limits, MediaReport, ScoreReport, SendReport } from './destination.js';
import { Sender } from './send.js';
import type { Outgoing, Transport } from './transport.js';

/** An OpenTelemetry Collector: it accepts spans, but neither media nor scores. */
export class CollectorDestination implements Destination {
  readonly #sender: Sender;

  constructor(transport: Transport) {
    this.#sender = new Sender(transport);
  }

  encode(observation: Observation): Outgoing {
    return this.#sender.encode(observation);
  }

  send(outgoing: readonly Outgoing[], { deadline, stop }: Limits): Promise<SendReport> {
    return this.#sender.send(outgoing, deadline, stop);
  }

  async uploadMedia({ media = [] }: Observation): Promise<MediaReport> {
    return { missing: new Set(media.map(({ reference }) => reference)), failure: undefined };
  }

  /** Scores that are due from before stay due. */
  async sendScores(): Promise<ScoreReport> {
    return { settled: 0, refused: [], failure: undefined };
  }

  get isHealthy(): boolean {
    return this.#sender.isWell;
  }

  get lastStatus(): number | undefined {
    return this.#sender.lastStatus;
  }

  get pausedUntil(): number {
    return this.#sender.pausedUntil;
  }

  close(): Promise<void> {
    return this.#sender.close();
  }
}
