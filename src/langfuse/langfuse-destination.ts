import type { LangfuseConfig } from '../config/settings.js';
import type { TurnScores } from '../observations/build/scores.js';
import type { Observation } from '../observations/model.js';
import type { Destination, Limits, MediaReport, ScoreReport, SendReport } from './destination.js';
import type { MediaUploads } from './media/media-uploads.lazy.js';
import { Sender } from './send.js';
import type { Outgoing, Transport } from './transport.js';

/** A Langfuse project. Few sessions contain images or scores, so the code for them is loaded with the first. */
export class LangfuseDestination implements Destination {
  readonly #config: LangfuseConfig;
  readonly #sender: Sender;
  #media: Promise<MediaUploads> | undefined;

  constructor(config: LangfuseConfig, transport: Transport) {
    this.#config = config;
    this.#sender = new Sender(transport);
  }

  encode(observation: Observation): Outgoing {
    return this.#sender.encode(observation);
  }

  send(outgoing: readonly Outgoing[], { deadline, stop }: Limits): Promise<SendReport> {
    return this.#sender.send(outgoing, deadline, stop);
  }

  async uploadMedia(observation: Observation, { deadline, stop }: Limits): Promise<MediaReport> {
    this.#media ??= import('./media/media-uploads.lazy.js').then(({ MediaUploads }) => new MediaUploads(this.#config));
    return (await this.#media).bring(observation, deadline, stop);
  }

  async sendScores(turns: readonly TurnScores[], limits: Limits): Promise<ScoreReport> {
    const { sendScores } = await import('./scores.lazy.js');
    return sendScores(this.#config, turns, limits);
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

  async close(): Promise<void> {
    await Promise.all([this.#sender.close(), (await this.#media)?.close()]);
  }
}
