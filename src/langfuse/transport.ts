import type { Observation } from '../observations/model.js';
import type { Limits, Outgoing, Rejected } from './destination.js';
import { isSuccess } from './http/client.js';

/** What a server answers to one request. */
export interface Reply {
  readonly status: number;
  /** Why nothing of the request was accepted, if more is known than the status says. */
  readonly problem?: string | undefined;
  /** The server's own words about why it refuses the keys. Only an answer to a request without observations has them. */
  readonly words?: string | undefined;
  /** Whether it accepts a request without observations, so that it refuses this one because of its content. */
  readonly isAboutContent?: boolean;
  /** Whether the server has the API, but it accepts no observations any more. */
  readonly isClosed?: boolean;
  /** Statuses of single observations that were not accepted, by their index. */
  readonly refusals?: ReadonlyMap<number, number>;
  readonly rejected?: Rejected | undefined;
}

export function isAccepted({ status, problem }: Reply): boolean {
  return isSuccess(status) && problem === undefined;
}

/** A protocol by which observations are sent. */
export interface Transport {
  /** Whether what is sent must keep its observation, since the protocol has a form of its own for it. */
  readonly needsObservations?: boolean;
  /** Encodes an observation as a span, if not with Langfuse's attributes alone. */
  readonly encodeSpan?: ((observation: Observation) => string) | undefined;
  /** Sends one request; throws if there was no response in time. */
  post(outgoing: readonly Outgoing[], limits: Limits): Promise<Reply>;
}
