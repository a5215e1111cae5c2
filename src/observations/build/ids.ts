import { hashText } from '../../shared/hash.js';
import type { Caller, Observation, Trace } from '../model.js';

/**
 * Ids are derived, never random: the same turn has the same ids on every machine and in every run, so that what is sent
 * again replaces what is there.
 */
export function deriveTraceId(firstPrompt: string): string {
  return hashText(firstPrompt).slice(0, 32);
}

/** Where a turn's observations go, and what their ids are derived from: the same, unless the caller has a trace of its own. */
export function deriveTurnTrace(
  { key, number }: { readonly key: string; readonly number: number },
  { parent, seed }: Pick<Caller, 'parent' | 'seed'>,
): Pick<Trace, 'id' | 'scope'> {
  const scope = deriveTraceId(seed === undefined || parent ? key : `${seed}:${number}`);
  return { id: parent?.trace ?? scope, scope };
}

/** `nativeId` is its id in the transcript or, if it has none, its file and line. */
export function deriveSpanId({ scope }: Pick<Trace, 'scope'>, type: Observation['type'], nativeId: string): string {
  return hashText(`${scope}:${type}:${nativeId}`).slice(0, 16);
}

export function deriveScoreId(scoredId: string, name: string): string {
  return hashText(`${scoredId}:score:${name}`).slice(0, 32);
}
