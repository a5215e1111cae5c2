import { describeUnsent, formatDuration, formatMoment, plural } from '../../../cli/format.js';
import { ownCommand } from '../../../cli/own-command.js';
import { listSessions } from '../../../cli/session-selection.js';
import { claudeFolder } from '../../../config/claude-folder.js';
import { readCleanupDays } from '../../../config/claude-settings.js';
import { EXPIRING, findUnsent, SOON_DAYS } from '../../../export/deletion.js';
import { SessionStates } from '../../../export/session-state.js';
import { fingerprint } from '../../../langfuse/open-destination.js';
import { attempt } from '../../../shared/attempt.js';
import { isMutedNow } from '../../../state/runs.js';
import { hasAcknowledged } from '../../../state/servers.js';
import type { KnownSession } from '../../../state/store.js';
import { SessionIndex } from '../../../transcript/sessions/session-index.js';
import { about, type Finding } from '../finding.js';
import type { StateFiles } from './files.js';
import type { HookSetup } from './hooks.js';
import type { SettingsInForce } from './settings.js';

const SHOWN = 5;

export const SESSION_CHECKS = [checkLastExport, checkPending, checkMuted, checkDeletion];

function checkLastExport({ store, now }: StateFiles): Finding {
  const [last] = readSessions(store)
    .flatMap(({ session, progress }) => [...progress.values()].map((each) => ({ ...each, sessionId: session.id })))
    .filter(({ turnCount, pending, updated }) => turnCount > 0 && !pending && Number.isFinite(Date.parse(updated)))
    .toSorted((a, b) => b.updated.localeCompare(a.updated));
  if (!last) return about('last-export').none('no turn has been exported yet');
  const { sessionId, updated, turnCount: turns } = last;
  const at = Date.parse(updated);
  return about('last-export', { sessionId, at: new Date(at).toISOString(), turns }).ok(
    `${formatMoment(at)}, ${formatAge(at, now)} ago: session ${sessionId}, ${plural(turns, 'turn')}`,
  );
}

/** The sessions that wait to be sent, those that failed last first. */
function* checkPending({ store, stateFolder, now, settings }: StateFiles & SettingsInForce): Generator<Finding> {
  const here = settings.destination && fingerprint(settings.destination);
  const waiting = listPending(readSessions(store));
  if (waiting.length === 0) yield about('pending').ok('no session is waiting to be sent');
  for (const { sessionId, since, attempts, reason, destination } of waiting.slice(0, SHOWN)) {
    const isElsewhere = here !== undefined && destination !== here;
    const hasWorked = isElsewhere && hasAcknowledged(stateFolder, destination);
    const age = `since ${formatMoment(since)} (${formatAge(since, now)})`;
    yield about('pending', { sessionId, since: new Date(since).toISOString(), attempts, reason }).warning(
      `${sessionId} ${age}, ${plural(attempts, 'attempt')}${isElsewhere ? ', for another project' : ''}: ${reason}`,
      hasWorked
        ? 'set the keys and the server of its project, or CC_LANGFUSE_PROJECT_KEYS if these are its new keys; then the next hook sends it'
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
export function listPending(sessions: readonly KnownSession[]) {
  return sessions
    .flatMap(({ session, progress }) =>
      [...progress].flatMap(([destination, { pending }]) => {
        const { since = '', attempts = 0, reason = '' } = pending ?? {};
        return pending ? [{ sessionId: session.id, destination, attempts, reason, since: Date.parse(since) || 0 }] : [];
      }),
    )
    .toSorted((a, b) => b.since - a.since);
}

function* checkMuted({ store }: StateFiles): Generator<Finding> {
  const muted = readSessions(store).filter(({ session }) => isMutedNow(session.mutes));
  for (const {
    session: { id: sessionId },
  } of muted.slice(0, SHOWN))
    yield about('muted', { sessionId }).none(`${sessionId} is muted; ${ownCommand()} unmute ${sessionId} ends that`);
}

/** A warning only if something waits for the server: what ran without tracing may stay where it is. */
async function checkDeletion({
  store,
  now,
  shell,
  hookEnv,
  settings,
  files,
  stateFolder,
}: StateFiles & SettingsInForce & HookSetup) {
  const cleanupDays = readCleanupDays(files);
  const index = new SessionIndex(stateFolder);
  const states = new SessionStates(store, shell, settings.destination && fingerprint(settings.destination), index);
  const sessions = listSessions(claudeFolder(hookEnv), () => {}, index);
  const unsent = await findUnsent(sessions, states, cleanupDays, now);
  index.save();
  if (!unsent) return [];
  const { count, endangered, firstGoes } = unsent;
  const deletion = about('deletion', {
    sessions: count,
    firstDeletedAfter: new Date(firstGoes).toISOString(),
    cleanupDays,
  });
  const message = describeUnsent(unsent, cleanupDays, now);
  if (endangered === 0) return [deletion.none(`${message}; ${ownCommand()} ${EXPIRING}`)];
  const verbs = endangered === 1 ? ['waits', 'goes'] : ['wait', 'go'];
  const waiting = `${endangered} of them ${verbs[0]} to be sent, and ${verbs[1]} within ${SOON_DAYS} days`;
  return [deletion.warning(`${message}; ${waiting}`, `${ownCommand()} backfill --expiring`)];
}

export function formatAge(at: number, now: number): string {
  return formatDuration(Math.max(0, now - at));
}

/** Another check reports that the state cannot be read. */
function readSessions(store: StateFiles['store']) {
  return attempt(() => store.all()) ?? [];
}
