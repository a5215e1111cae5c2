import type { MediaReport } from '../langfuse/destination.js';
import { replaceMissingMedia } from '../observations/content/media.js';
import type { Observation } from '../observations/model.js';

interface MediaTools {
  readonly bring: (observation: Observation) => Promise<MediaReport>;
  /** Told why something stays behind. */
  readonly onMissing: (reason: string) => void;
}

/** Brings what an observation refers to; what cannot be brought in time leaves a placeholder. It never holds up a turn. */
export async function settleMedia(observation: Observation, { bring, onMissing }: MediaTools): Promise<Observation> {
  const { media = [] } = observation;
  if (media.length === 0) return observation;
  const { missing, failure } = await bring(observation);
  if (failure !== undefined) onMissing(failure);
  return replaceMissingMedia(observation, missing);
}
