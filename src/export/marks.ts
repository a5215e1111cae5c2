import type { Observation } from '../observations/model.js';

/**
 * Observations with what is true once each has been acknowledged. Several may rest on one line: with the last of them the
 * line is done, not before.
 */
export function withMarks<T>(
  observations: readonly Observation[],
  markOf: (line: number) => T,
): { observation: Observation; mark: T | undefined }[] {
  return observations.map((observation, place) => {
    const isLastOfItsLine = observations[place + 1]?.line !== observation.line;
    return { observation, mark: isLastOfItsLine ? markOf(observation.line) : undefined };
  });
}
