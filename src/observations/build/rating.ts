import { sanitizeText } from '../content/sanitize.js';
import type { ContentSettings, Observation } from '../model.js';
import { RATING, type TurnScores } from './scores.js';

export interface Rating {
  readonly isGood: boolean;
  readonly comment: string | undefined;
  /** In ms since 1970. */
  readonly at: number;
}

const DAY_MS = 86_400_000;

/**
 * Builds a person's rating of a turn, by its root. Of two ratings Langfuse keeps the one with the later time, if both are of the
 * same day (scores.up.sql), and the user may give the second one days later. So their time is the turn's end, plus a millisecond for
 * each second since, as long as that is the same day.
 */
export function buildRating(
  { id, trace, endTime }: Observation,
  { isGood, comment, at }: Rating,
  { capture, redact, maxChars }: ContentSettings,
): TurnScores {
  // What the user says about the turn is content.
  const words = capture === 'metadata' ? undefined : comment;
  return {
    traceId: trace.id,
    observationId: trace.parentId === undefined ? undefined : id,
    environment: trace.environment,
    endTime: Math.min(endTime + Math.ceil(Math.max(0, at - endTime) / 1_000), lastMomentOfDay(endTime)),
    figures: { [RATING]: isGood ? 1 : 0 },
    comment: words && sanitizeText(words, redact, maxChars),
  };
}

function lastMomentOfDay(time: number): number {
  return (Math.floor(time / DAY_MS) + 1) * DAY_MS - 1;
}
