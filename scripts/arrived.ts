import type { TracedObservation } from '../src/preview/session.js';
import type { StoredObservation } from '../test/support/langfuse-server.js';

/** An observation that has arrived at the embedded Langfuse, as it was sent. */
export function arrivedAsSent({ traceId, trace, completionStartTime, ...rest }: StoredObservation): TracedObservation {
  const times = completionStartTime === undefined ? {} : { completionStartTime: Date.parse(completionStartTime) };
  return { ...rest, ...times, trace: { ...trace, id: traceId } } as TracedObservation;
}
