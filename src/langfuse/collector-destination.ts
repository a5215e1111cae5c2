import type { CollectorConfig } from '../config/settings.js';
import type { Observation } from '../observations/model.js';
import type { Destination, MediaReport, ScoreReport } from './destination.js';
import { RetryingHttpClient } from './http/retry.js';
import { postSpans } from './otlp/otlp-transport.js';
import { Sender } from './sender.js';

/** An OpenTelemetry Collector: it accepts spans, but neither media nor scores. */
export class CollectorDestination extends Sender implements Destination {
  constructor(config: CollectorConfig) {
    const http = new RetryingHttpClient();
    super({ post: (outgoing, limits) => postSpans(outgoing, config, http, limits) }, http);
  }

  async uploadMedia({ media = [] }: Observation): Promise<MediaReport> {
    return { missing: new Set(media.map(({ reference }) => reference)), failure: undefined };
  }

  /** Scores that were due before, for a Langfuse, stay due. */
  async sendScores(): Promise<ScoreReport> {
    return { settled: 0, refused: [], failure: undefined };
  }
}
