import { formatDuration, formatMoment, plural } from '../../../cli/format.js';
import type { PendingSession, SessionFacts } from '../facts/sessions.js';
import { type Finding, none, ok, warning } from '../finding.js';

const SHOWN = 5;

/** `destination` is where the hooks here send to. */
export function checkSessions(
  { pending, lastExport }: SessionFacts,
  destination: string | undefined,
  now: number,
): Finding[] {
  const newest = pending.toSorted((a, b) => b.since - a.since);
  return [
    lastExported(lastExport, now),
    ...newest.slice(0, SHOWN).map((session) => checkPending(session, destination, now)),
    ...rest(pending.length),
  ];
}

function lastExported(last: SessionFacts['lastExport'], now: number): Finding {
  if (!last) return none('last-export', 'no turn has been exported yet');
  const { sessionId, at, turns } = last;
  const ago = formatDuration(Math.max(0, now - at));
  return ok('last-export', `${formatMoment(at)}, ${ago} ago: session ${sessionId}, ${plural(turns, 'turn')}`, {
    sessionId,
    at: new Date(at).toISOString(),
    turns,
  });
}

function checkPending(session: PendingSession, here: string | undefined, now: number): Finding {
  const { sessionId, since, attempts, reason, destination } = session;
  const isElsewhere = destination !== undefined && here !== undefined && destination !== here;
  const fix = isElsewhere
    ? 'set the keys and the server that it was sent with; its next hook goes on'
    : `cc-langfuse backfill ${sessionId} (the next hook does so, too)`;
  const told = `${sessionId} since ${formatMoment(since)} (${formatDuration(Math.max(0, now - since))}), ${plural(attempts, 'attempt')}`;
  return warning('pending', `${told}${isElsewhere ? ', for another project' : ''}: ${reason}`, fix, {
    sessionId,
    since: new Date(since).toISOString(),
    attempts,
    reason,
  });
}

function rest(count: number): Finding[] {
  if (count === 0) return [ok('pending', 'no session waits to be sent')];
  if (count <= SHOWN) return [];
  return [
    warning('pending', `and ${plural(count - SHOWN, 'session')} more`, 'cc-langfuse sessions (it lists them all)', {
      count,
    }),
  ];
}
