import { sanitizeText } from '../content/sanitize.js';
import type { ContentSettings, Observation } from '../model.js';
import { datedAt, RATING, type TurnScores } from './scores.js';

export interface Rating {
  readonly isGood: boolean;
  readonly comment: string | undefined;
  /** In ms since 1970. */
  readonly at: number;
  /** The time of the turn's last rating, if there is one. */
  readonly after?: number | undefined;
}

/**
 * Builds a person's rating of a turn, by its root. The user may give a second one days later, but its time has to be of the same day
 * (`datedAt`). So its time is the turn's end, plus a millisecond for each second since, and always later than that of the last one.
 */
export function buildRating(
  { id, trace, endTime }: Observation,
  { isGood, comment, at, after = 0 }: Rating,
  { capture, redact, maxChars }: ContentSettings,
): TurnScores {
  // What the user says about the turn is content.
  const words = capture === 'metadata' ? undefined : comment;
  return {
    traceId: trace.id,
    observationId: trace.parentId === undefined ? undefined : id,
    environment: trace.environment,
    endTime: Math.max(datedAt(endTime, endTime + Math.ceil(Math.max(0, at - endTime) / 1_000)), after + 1),
    figures: { [RATING]: isGood ? 1 : 0 },
    comment: words && sanitizeText(words, redact, maxChars),
  };
}
