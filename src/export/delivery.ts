import type { Destination, MediaReport, Outgoing, ScoreReport, SendReport } from '../langfuse/destination.js';
import type { TurnScores } from '../observations/build/scores.js';
import type { Observation } from '../observations/model.js';

/** By what all that an export has goes where it is to go. */
export interface Delivery {
  readonly encode: (observation: Observation) => Outgoing;
  readonly send: (spans: readonly Outgoing[]) => Promise<SendReport>;
  /** Brings the images and documents that an observation refers to. */
  readonly bringMedia: (observation: Observation) => Promise<MediaReport>;
  /** Sends the figures of turns that the server has taken. */
  readonly sendScores: (turns: readonly TurnScores[]) => Promise<ScoreReport>;
}

/** Takes it to a destination. */
export class Courier {
  readonly #destination: Destination;

  constructor(destination: Destination) {
    this.#destination = destination;
  }

  /** `deadline` is when to give up what is to be taken now, in ms since 1970. */
  delivery(deadline: () => number, stop?: AbortSignal): Delivery {
    const limits = () => ({ deadline: deadline(), stop });
    return {
      encode: (observation) => this.#destination.encode(observation),
      send: (spans) => this.#destination.send(spans, limits()),
      bringMedia: (observation) => this.#destination.uploadMedia(observation, limits()),
      sendScores: (turns) => this.#destination.sendScores(turns, limits()),
    };
  }

  close(): Promise<void> {
    return this.#destination.close();
  }
}
