import { createHash } from 'node:crypto';
import type { Observation, Trace } from '../model.js';

/**
 * Ids are derived, never random: the same turn has the same ids on every machine and in every run, so that what is sent
 * again replaces what is there.
 */
export function deriveTraceId(firstPrompt: string): string {
  return sha256(firstPrompt).slice(0, 32);
}

/** `nativeId` is its id in the transcript or, if it has none, its file and line. */
export function deriveSpanId({ scope }: Pick<Trace, 'scope'>, type: Observation['type'], nativeId: string): string {
  return sha256(`${scope}:${type}:${nativeId}`).slice(0, 16);
}

export function deriveScoreId(scoredId: string, name: string): string {
  return sha256(`${scoredId}:score:${name}`).slice(0, 32);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
