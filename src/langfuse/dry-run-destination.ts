import type { Observation } from '../observations/model.js';
import type { Destination, MediaReport, Outgoing, ScoreReport, SendReport } from './destination.js';
import { encodeSpan } from './otlp/span.js';

/** Acknowledges everything and sends nothing: a dry run and a preview only want to know what would be sent. */
export class DryRunDestination implements Destination {
  readonly health = { isHealthy: true, hasAnswered: true };
  readonly waitingSince = undefined;
  readonly pausedUntil = 0;

  encode(observation: Observation): Outgoing {
    return { json: encodeSpan(observation) };
  }

  async send({ length }: readonly Outgoing[]): Promise<SendReport> {
    return { settled: length, dropped: [], failure: undefined };
  }

  async uploadMedia(): Promise<MediaReport> {
    return { missing: new Set(), failure: undefined };
  }

  async sendScores({ length }: readonly unknown[]): Promise<ScoreReport> {
    return { settled: length, refused: [], failure: undefined };
  }

  async close(): Promise<void> {}
}
