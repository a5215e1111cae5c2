import { createHash } from 'node:crypto';
import type { Trace } from '../model.js';

/**
 * Ids are derived, never random: the same turn has the same ids on every machine and in every run, so that what is sent
 * again replaces what is there.
 */
export function deriveTraceId(firstPrompt: string): string {
  return sha256(firstPrompt).slice(0, 32);
}

/** `nativeId` is what the transcript calls it or, if it has no id there, whose line it is on. */
export function deriveSpanId(
  { scope }: Pick<Trace, 'scope'>,
  kind: 'agent' | 'generation' | 'tool' | 'event',
  nativeId: string,
): string {
  return sha256(`${scope}:${kind}:${nativeId}`).slice(0, 16);
}

/** Scores are of a trace or, in a caller's trace, of an observation. */
export function deriveScoreId(scoredId: string, name: string): string {
  return sha256(`${scoredId}:score:${name}`).slice(0, 32);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
