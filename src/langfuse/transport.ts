import type { Observation } from '../observations/model.js';

/** An observation on its way. */
export interface Outgoing {
  /** As OpenTelemetry writes it: its bytes are what limits on requests count, by whichever way it goes. */
  readonly json: string;
  /** Itself, where it may have to be written otherwise. */
  readonly observation?: Observation;
}

/** What a server answers to one request. */
export interface Reply {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** Why nothing of the request was taken, where more is known of it than the status tells. */
  readonly problem: string | undefined;
  /** What the server said of single observations that it did not take, by their place: a status for each. */
  readonly refusals?: ReadonlyMap<number, number>;
  /** What was rejected of a request that was taken, and is not to be sent again. */
  readonly rejected?: Rejected | undefined;
}

export interface Rejected {
  /** Which ones, the server does not tell. */
  readonly spans: number;
  readonly reason: string;
}

/** What becomes of traces at the ingestion API of Langfuse 4. */
export const INGESTION_CLOSED =
  'Langfuse refuses every event (400): version 4 takes no traces by its ingestion API; unset CC_LANGFUSE_TRANSPORT, so that they go by OpenTelemetry';

/** No request is waited for any longer. */
export const REQUEST_TIMEOUT_MS = 30_000;

/** One way of bringing observations to a server. */
export interface Transport {
  encode(observation: Observation): Outgoing;
  /** One request; throws where no answer came in time. */
  post(outgoing: readonly Outgoing[], timeoutMs: number): Promise<Reply>;
  close(): Promise<void>;
}
