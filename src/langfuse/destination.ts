import type { TurnScores } from '../observations/build/scores.js';
import type { Observation } from '../observations/model.js';
import type { Failure } from '../shared/failure.js';

/** How long to keep trying. */
export interface Limits {
  /** When to give up, in ms since 1970. */
  readonly deadline: number;
  /** Gives up whatever is not under way yet. */
  readonly stop?: AbortSignal | undefined;
}

/** An encoded observation. */
export interface Outgoing {
  /** As an OpenTelemetry span: limits on the size of requests count these bytes, whichever protocol is used. */
  readonly json: string;
  /** Kept if it may have to be encoded differently. */
  readonly observation?: Observation;
}

/** What a server rejected of a request that it accepted; it is not to be sent again. */
export interface Rejected {
  /** How many; the server does not say which. */
  readonly spans: number;
  readonly reason: string;
}

export interface SendReport {
  /** How many observations, counted from the first, need not be sent again. */
  readonly settled: number;
  /** Indexes of those among them that the server refuses because of their content. */
  readonly dropped: readonly number[];
  /** Indexes of those among them that were cut, since they were too large for the server. */
  readonly cut?: readonly number[];
  readonly rejected?: Rejected | undefined;
  /** Why the others are not settled. */
  readonly failure: Failure | undefined;
}

export interface MediaReport {
  /** References to images and documents that were not uploaded. */
  readonly missing: ReadonlySet<string>;
  /** Why they were not. */
  readonly failure: string | undefined;
}

export interface ScoreReport {
  /** How many turns, counted from the first, need not be sent again. */
  readonly settled: number;
  /** Labels of the scores that the server refuses because of their content. */
  readonly refused: readonly string[];
  /** Why the other turns are not settled. */
  readonly failure: Failure | undefined;
}

/** Why a server does not take what it is sent. */
export interface Trouble {
  /** `outage`: it is down or does not answer in time, so it may work later. `refusal`: of the keys, or of the headers for them. */
  readonly kind: 'outage' | 'refusal' | 'other';
  /** A sentence for the user. */
  readonly text: string;
}

/** How a server has taken what it was last sent. */
export interface Health {
  /** Whether it accepts what it is sent, or refuses it because of its content: other sessions may get through. */
  readonly isHealthy: boolean;
  readonly hasAnswered: boolean;
  /** Undefined if the last request did not fail, or if the server only asked to wait. */
  readonly trouble?: Trouble | undefined;
}

/** Where observations are sent. An export knows nothing else of it. */
export interface Destination {
  /** How the server took what it was last sent. */
  readonly health: Health;
  /** Since when a request has been waiting for its answer, in ms since 1970. */
  readonly waitingSince: number | undefined;
  /** Until when the server has asked to wait, in ms since 1970. */
  readonly pausedUntil: number;
  /** The observation in the form in which it is sent. */
  encode(observation: Observation): Outgoing;
  /** Resolves once it is known which of them the server has acknowledged. */
  send(outgoing: readonly Outgoing[], limits: Limits): Promise<SendReport>;
  close(): Promise<void>;
  /** Uploads the images and documents that an observation refers to, if the destination has a place for them. */
  readonly uploadMedia?: ((observation: Observation, limits: Limits) => Promise<MediaReport>) | undefined;
  /** Sends the scores of turns that the server has acknowledged, if the destination has a place for them. */
  readonly sendScores?: ((turns: readonly TurnScores[], limits: Limits) => Promise<ScoreReport>) | undefined;
}
