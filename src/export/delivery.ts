import type { DestinationConfig } from '../config/settings.js';
import type { MediaReport, ScoreReport, SendReport } from '../langfuse/destination.js';
import type { MediaUploads } from '../langfuse/media/media-uploads.lazy.js';
import type { Sender } from '../langfuse/send.js';
import type { Outgoing } from '../langfuse/transport.js';
import type { TurnScores } from '../observations/build/scores.js';
import type { Observation } from '../observations/model.js';
import { noneBrought } from './media-export.js';

/** By what all that an export has goes where it is to go. */
export interface Delivery {
  readonly encode: (observation: Observation) => Outgoing;
  readonly send: (spans: readonly Outgoing[]) => Promise<SendReport>;
  /** Brings the images and documents that an observation refers to. */
  readonly bringMedia: (observation: Observation) => Promise<MediaReport>;
  /** Sends the figures of turns that the server has taken. */
  readonly sendScores: (turns: readonly TurnScores[]) => Promise<ScoreReport>;
}

/** Takes it to a receiver. What few exports have is loaded when the first has it. */
export class Courier {
  readonly #receiver: DestinationConfig;
  readonly #sender: Sender;
  #media: Promise<MediaUploads> | undefined;

  constructor(receiver: DestinationConfig, sender: Sender) {
    this.#receiver = receiver;
    this.#sender = sender;
  }

  /** `deadline` is when to give up what is to be taken now, in ms since 1970. */
  delivery(deadline: () => number, stop?: AbortSignal): Delivery {
    return {
      encode: (observation) => this.#sender.encode(observation),
      send: (spans) => this.#sender.send(spans, deadline(), stop),
      bringMedia: (observation) => this.#bringMedia(observation, deadline(), stop),
      sendScores: async (turns) => {
        const { sendScores } = await import('../langfuse/scores.lazy.js');
        return sendScores(this.#receiver, turns, { deadline: deadline(), stop });
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all([this.#sender.close(), (await this.#media)?.close()]);
  }

  async #bringMedia(observation: Observation, deadline: number, stop: AbortSignal | undefined): Promise<MediaReport> {
    const receiver = this.#receiver;
    if (receiver.kind === 'collector' || stop?.aborted) return noneBrought(observation);
    this.#media ??= import('../langfuse/media/media-uploads.lazy.js').then(
      ({ MediaUploads }) => new MediaUploads(receiver),
    );
    return (await this.#media).bring(observation, deadline, stop);
  }
}
