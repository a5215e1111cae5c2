// Times in nanoseconds have 64 bits on the way to Langfuse: what lies beyond the year 2500, or before 1970, is no time.
const LATEST_TIME_MS = Date.UTC(2500, 0);

/** A timestamp in ms since 1970, where it is one. */
export function parseTimestamp(timestamp: string | undefined): number | undefined {
  const at = timestamp === undefined ? Number.NaN : Date.parse(timestamp);
  return at >= 0 && at < LATEST_TIME_MS ? Math.trunc(at) : undefined;
}
