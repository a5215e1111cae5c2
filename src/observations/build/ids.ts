import { createHash } from 'node:crypto';

/**
 * Ids are derived, never random: the same turn has the same ids on every machine, in every run, so that what is sent
 * again replaces what is there.
 */
export function deriveTraceId(firstPrompt: string): string {
  return sha256(firstPrompt).slice(0, 32);
}

export function deriveSpanId(scope: string, kind: 'agent' | 'generation' | 'tool' | 'event', nativeId: string): string {
  return sha256(`${scope}:${kind}:${nativeId}`).slice(0, 16);
}

export function deriveScoreId(scored: string, name: string): string {
  return sha256(`${scored}:score:${name}`).slice(0, 32);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
