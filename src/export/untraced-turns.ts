import type { Entry } from '../state/entry.js';
import { findGaps } from '../state/runs.js';
import { Places } from '../transcript/file/place.js';
import { Originals } from '../transcript/sessions/originals.js';
import { readAllTurns } from '../transcript/turns/read-all-turns.js';
import type { Turn } from '../transcript/turns/turn.js';
import { RunLookup } from './run-lookup.js';

/** Counts the turns of a session that no run is known for: hooks never send them, and a backfill does. */
export function countUntraced(
  { path, sessionId, bytes }: { readonly path: string; readonly sessionId: string; readonly bytes: number },
  entry: Entry | undefined,
  originals = new Originals(path),
): number {
  const count = (isWanted: (turn: Turn) => boolean) => countTurns({ path, sessionId, originals }, isWanted);
  if (!entry) return count(({ copied }) => !copied);
  const last = entry.runs.at(-1);
  const isOver = last?.to === undefined || bytes <= (entry.bytes ?? 0);
  // Only then the file has to be read.
  if (last && isOver && findGaps(entry.runs, last.from.bytes).length === 0) return 0;
  const lookup = new RunLookup(entry, '', new Places(path));
  return count((turn) => !lookup.isKnown(turn) && !turn.copied && !lookup.isMuted(turn));
}

function countTurns(
  { path, sessionId, originals }: { readonly path: string; readonly sessionId: string; readonly originals: Originals },
  isWanted: (turn: Turn) => boolean,
): number {
  // A turn that goes on after the next prompt is read twice.
  const keys = new Set<string>();
  for (const turn of readAllTurns(path, 'main', sessionId, undefined, originals))
    if (isWanted(turn)) keys.add(turn.key);
  return keys.size;
}
