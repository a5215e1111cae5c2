import { formatDuration, formatMoment, plural } from '../../../cli/format.js';
import { ownCommand } from '../../../cli/own-command.js';
import { fingerprint } from '../../../langfuse/endpoint.js';
import { attempt } from '../../../shared/attempt.js';
import type { SessionEntry } from '../../../state/entry.js';
import { isMutedNow } from '../../../state/runs.js';
import { about, type Finding } from '../finding.js';
import type { StateFiles } from './files.js';
import type { SettingsInForce } from './settings.js';

const SHOWN = 5;

export const SESSION_CHECKS = [checkLastExport, checkPending, checkMuted];

function checkLastExport({ store, now }: StateFiles): Finding {
  const [last] = readEntries(store)
    .filter(([, { turnCount, pending, updated }]) => turnCount > 0 && !pending && Number.isFinite(Date.parse(updated)))
    .toSorted(([, a], [, b]) => b.updated.localeCompare(a.updated));
  if (!last) return about('last-export').none('no turn has been exported yet');
  const [sessionId, { updated, turnCount: turns }] = last;
  const at = Date.parse(updated);
  return about('last-export', { sessionId, at: new Date(at).toISOString(), turns }).ok(
    `${formatMoment(at)}, ${formatAge(at, now)} ago: session ${sessionId}, ${plural(turns, 'turn')}`,
  );
}

/** The sessions that wait to be sent, those that failed last first. */
function* checkPending({ store, now, settings }: StateFiles & SettingsInForce): Generator<Finding> {
  const here = settings.destination && fingerprint(settings.destination);
  const waiting = listPending(readEntries(store));
  if (waiting.length === 0) yield about('pending').ok('no session is waiting to be sent');
  for (const { sessionId, since, attempts, reason, destination } of waiting.slice(0, SHOWN)) {
    // The destination is unknown for sessions that the original cc-langfuse exported.
    const isElsewhere = destination !== undefined && here !== undefined && destination !== here;
    const hasWorked = isElsewhere && store.hasAcknowledged(destination);
    const age = `since ${formatMoment(since)} (${formatAge(since, now)})`;
    yield about('pending', { sessionId, since: new Date(since).toISOString(), attempts, reason }).warning(
      `${sessionId} ${age}, ${plural(attempts, 'attempt')}${isElsewhere ? ', for another project' : ''}: ${reason}`,
      hasWorked
        ? 'set the keys and the server that it is for; then the next hook sends it'
        : `${ownCommand()} backfill ${sessionId} (the next hook ${isElsewhere ? 'in its folder ' : ''}sends it, too)`,
    );
  }
  const count = waiting.length - SHOWN;
  if (count > 0)
    yield about('pending', { count }).warning(
      `and ${count} more`,
      `${ownCommand()} sessions --limit all (lists them all)`,
    );
}

/** What waits to be sent, by session and destination, with what failed last first. */
export function listPending(entries: readonly SessionEntry[]) {
  return entries
    .flatMap(([sessionId, { pending, destination, elsewhere = {} }]) => {
      const others = Object.entries(elsewhere).map(([id, progress]) => ({ destination: id, ...progress.pending }));
      return [{ destination, ...pending }, ...others].map((each) => ({ sessionId, ...each }));
    })
    .flatMap(({ sessionId, destination, since, attempts = 0, reason = '' }) =>
      since === undefined ? [] : [{ sessionId, destination, attempts, reason, since: Date.parse(since) || 0 }],
    )
    .toSorted((a, b) => b.since - a.since);
}

function* checkMuted({ store }: StateFiles): Generator<Finding> {
  const muted = readEntries(store).filter(([, { mutes }]) => isMutedNow(mutes));
  for (const [sessionId] of muted.slice(0, SHOWN))
    yield about('muted', { sessionId }).none(`${sessionId} is muted; ${ownCommand()} unmute ${sessionId} ends that`);
}

export function formatAge(at: number, now: number): string {
  return formatDuration(Math.max(0, now - at));
}

/** Another check reports that the state cannot be read. */
function readEntries(store: StateFiles['store']) {
  return attempt(() => store.all()) ?? [];
}
