import type { SessionOverview } from '../transcript/sessions/overview.js';
import { IDLE_MS } from './read-turns.js';
import type { SessionState, SessionStates } from './session-state.js';

const DAY_MS = 24 * 60 * 60_000;
/** Who wants to keep all transcripts sets any number of days, but a date ends somewhere. */
const LATEST = Date.UTC(9999, 11, 31);
/** How long before its deletion a transcript counts as one that goes soon. */
export const SOON_DAYS = 7;

/** What sends those, after the name of the program. */
export const EXPIRING = `backfill --expiring sends what goes within ${SOON_DAYS} days`;

type Changed = Pick<SessionOverview, 'changedAt'>;

/** Claude Code deletes a transcript when it starts for the first time after this, in ms since 1970. */
export function deletedAfter({ changedAt }: Changed, cleanupDays: number): number {
  return Math.min(changedAt + cleanupDays * DAY_MS, LATEST);
}

export function goesSoon(session: Changed, cleanupDays: number, now: number): boolean {
  return deletedAfter(session, cleanupDays) <= now + SOON_DAYS * DAY_MS;
}

/** The sessions that a backfill would send something of, and that would be lost with their transcripts. */
export interface Unsent {
  readonly count: number;
  /** How many of them wait for the server, and go soon. */
  readonly endangered: number;
  /** When the first of them may be deleted, in ms since 1970. */
  readonly firstGoes: number;
}

/** Undefined if there is none. A session that is still being written does not count. */
export async function findUnsent(
  sessions: readonly SessionOverview[],
  states: SessionStates,
  cleanupDays: number,
  now: number,
): Promise<Unsent | undefined> {
  const unsent: { session: SessionOverview; state: SessionState }[] = [];
  for (const session of sessions) {
    if (now - session.changedAt <= IDLE_MS) continue;
    const state = await states.find(session);
    if (isUnsent(state)) unsent.push({ session, state });
  }
  if (unsent.length === 0) return undefined;
  return {
    count: unsent.length,
    endangered: unsent.filter(({ session, state }) => state.kind === 'pending' && goesSoon(session, cleanupDays, now))
      .length,
    firstGoes: Math.min(...unsent.map(({ session }) => deletedAfter(session, cleanupDays))),
  };
}

/** Whether a backfill would send something of a session. */
export function isUnsent({ kind, isAnswered }: SessionState): boolean {
  return kind === 'pending' || kind === 'partly' || (kind === 'not' && isAnswered);
}
