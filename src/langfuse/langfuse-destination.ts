import type { LangfuseConfig } from '../config/settings.js';
import type { TurnScores } from '../observations/build/scores.js';
import type { Observation } from '../observations/model.js';
import type { Destination, Limits, MediaReport, ScoreReport } from './destination.js';
import { RetryingHttpClient } from './http/retry.js';
import { LangfuseTransport } from './langfuse-transport.js';
import type { MediaUploads } from './media/media-uploads.lazy.js';
import { Sender } from './sender.js';

/** A Langfuse project. Few exports have images or scores, so the code for them is loaded when it is first needed. */
export class LangfuseDestination extends Sender implements Destination {
  readonly #config: LangfuseConfig;
  #media: Promise<MediaUploads> | undefined;

  constructor(config: LangfuseConfig, stateFolder: string) {
    const http = new RetryingHttpClient();
    super(new LangfuseTransport(config, http, stateFolder), http);
    this.#config = config;
  }

  async uploadMedia(observation: Observation, limits: Limits): Promise<MediaReport> {
    this.#media ??= import('./media/media-uploads.lazy.js').then(
      // A storage that asks to wait does not pause the requests with observations.
      ({ MediaUploads }) => new MediaUploads(this.#config, new RetryingHttpClient(this.http.client)),
    );
    return (await this.#media).upload(observation, limits);
  }

  async sendScores(turns: readonly TurnScores[], limits: Limits): Promise<ScoreReport> {
    const { sendScores } = await import('./scores.lazy.js');
    return sendScores(turns, this.#config, this.http.client, limits);
  }
}
