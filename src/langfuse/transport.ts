import type { Observation } from '../observations/model.js';

/** An observation on its way, and as OpenTelemetry writes it: its bytes are what limits on requests count. */
export interface Outgoing {
  readonly observation: Observation;
  readonly json: string;
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

/** One way of bringing observations to a server. */
export interface Transport {
  /** One request; throws where no answer came in time. */
  post(outgoing: readonly Outgoing[], timeoutMs: number): Promise<Reply>;
  close(): Promise<void>;
}
