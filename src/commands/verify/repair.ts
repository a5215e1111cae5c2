import { ownCommand } from '../../cli/own-command.js';
import type { Twice } from './compare.js';
import type { Verified } from './verify-session.js';

/** What the user can do so that a session is complete. */
export interface Repair {
  /** Traces to be deleted in Langfuse first: they have rows that would stay beside what is sent again. */
  readonly deleteTraces: readonly string[];
  readonly command: string | undefined;
}

export function findRepair({ session, comparison, unsent, needsOpen }: Verified): Repair {
  const { missing, different, twice } = comparison;
  const moved = different.filter(({ fields }) => fields.some((field) => MOVING.has(field)));
  const doubled = twice.filter(({ how }) => how !== 'unmerged');
  const deleteTraces = [...new Set([...doubled.flatMap(tracesToDelete), ...moved.map(({ traceId }) => traceId)])];
  const own = new Set([...comparison.found, ...missing].map(({ traceId }) => traceId));
  const isForced =
    missing.some(({ id }) => !unsent.has(id)) || different.length > 0 || deleteTraces.some((trace) => own.has(trace));
  const isNeeded = isForced || missing.length > 0;
  const options = [...(isForced ? ['--force'] : []), ...(needsOpen ? ['--include-open'] : [])];
  const command = [ownCommand(), 'backfill', ...options, session.sessionId].join(' ');
  return { deleteTraces, command: isNeeded ? command : undefined };
}

const MOVING: ReadonlySet<string> = new Set(['start time', 'type', 'trace']);

function tracesToDelete({ expected, how, traceIds }: Twice): readonly string[] {
  const foreign = traceIds.filter((id) => id !== expected.traceId);
  return how === 'other id' || foreign.length > 0 ? foreign : traceIds;
}
