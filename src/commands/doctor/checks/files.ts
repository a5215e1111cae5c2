import { formatBytes, formatMoment, plural } from '../../../cli/format.js';
import { moveAsideCommand, quoteForShell } from '../../../cli/terminal.js';
import type { FileFact, FileFacts, Obstacle } from '../facts/files.js';
import { broken, type Finding, none, ok, warning } from '../finding.js';

const LEAST_FREE_BYTES = 10_000_000;
const RECENT_MS = 7 * 24 * 60 * 60_000;
const MESSAGES_SHOWN = 3;

export function checkFiles(facts: FileFacts, now: number): Finding[] {
  return [
    checkFolder(facts.folder),
    checkState(facts.state),
    ...checkSetAside(facts.state),
    ...checkLocks(facts),
    checkLog(facts.log, now),
    ...[facts.state, facts.log].flatMap(checkMode),
  ];
}

function checkFolder({ path, isThere, obstacle, freeBytes }: FileFacts['folder']): Finding {
  const details = { path, freeBytes };
  if (obstacle) {
    const message = `${path} cannot be written (${obstacle.path}: ${obstacle.reason}): nothing is sent without it`;
    return broken('state-folder', message, remedyFor(obstacle), details);
  }
  if (freeBytes !== undefined && freeBytes < LEAST_FREE_BYTES)
    return broken(
      'state-folder',
      `${path}: its disk is full (${formatBytes(freeBytes)} free)`,
      'make room on it',
      details,
    );
  return isThere
    ? ok('state-folder', path, details)
    : none('state-folder', `${path} is made by the first hook`, details);
}

function remedyFor({ path, reason }: Obstacle): string {
  switch (reason) {
    case 'no folder':
      return moveAsideCommand(path);
    case 'EROFS':
      return 'set CLAUDE_CONFIG_DIR to a folder on a disk that can be written';
    default:
      return takenBack(path, 'rwx');
  }
}

/** A program that was started with sudo leaves files that are root's. */
function takenBack(path: string, rights: string): string {
  return `sudo chown "$(id -un)" ${quoteForShell(path)} && chmod u+${rights} ${quoteForShell(path)}`;
}

function checkState({ path, bytes, unreadable, isCorrupt, sessions }: FileFacts['state']): Finding {
  const details = { path, bytes, sessions };
  if (unreadable !== undefined) {
    const fix = unreadable.endsWith('EACCES') ? takenBack(path, 'rw') : moveAsideCommand(path);
    return broken('state', unreadable, fix, details);
  }
  if (isCorrupt)
    return warning(
      'state',
      `${path} is corrupt: the next hook sets it aside and keeps what stands whole in it`,
      'nothing has to be done; what it has lost is sent again, under the same ids',
      details,
    );
  if (bytes === undefined) return none('state', 'nothing has been exported yet', details);
  return ok('state', `${path} (${plural(sessions, 'session')}, ${formatBytes(bytes)})`, details);
}

function checkSetAside({ setAside }: FileFacts['state']): Finding[] {
  if (setAside.length === 0) return [];
  const message = `${plural(setAside.length, 'corrupt state file')} set aside: ${setAside.join(', ')}`;
  return [warning('state-set-aside', message, `rm ${setAside.map(quoteForShell).join(' ')}`, { paths: setAside })];
}

function checkLocks({ leftLocks }: FileFacts): Finding[] {
  if (leftLocks.length === 0) return [];
  const message = `${plural(leftLocks.length, 'lock')} of runs that were killed; the next run drops what it meets`;
  return [warning('locks', message, `rm ${leftLocks.map(quoteForShell).join(' ')}`, { paths: leftLocks })];
}

/** What the last week's runs had to say, the most frequent first. */
function checkLog({ path, bytes, troubles }: FileFacts['log'], now: number): Finding {
  if (bytes === undefined) return none('log', 'no hook has had anything to say', { path });
  const recent = troubles.filter(({ at }) => now - at < RECENT_MS);
  const details = { path, bytes };
  if (recent.length === 0) return ok('log', `${path} (${formatBytes(bytes)}): nothing in the last 7 days`, details);
  const messages = [...new Set(recent.map(({ message }) => message))]
    .map((message) => {
      const same = recent.filter((each) => each.message === message);
      return { message, times: same.length, last: new Date(Math.max(...same.map(({ at }) => at))).toISOString() };
    })
    .toSorted((a, b) => b.times - a.times);
  const shown = messages
    .slice(0, MESSAGES_SHOWN)
    .map(({ message, times, last }) => `${times} × "${message}" (last ${formatMoment(Date.parse(last))})`);
  const more = messages.length > MESSAGES_SHOWN ? [`${messages.length - MESSAGES_SHOWN} others`] : [];
  return warning('log', `in the last 7 days: ${[...shown, ...more].join(', ')}`, `tail ${quoteForShell(path)}`, {
    ...details,
    messages,
  });
}

/** Each file is made for its user alone; on Windows a mode says nothing. */
function checkMode({ path, mode }: FileFact): Finding[] {
  if (mode === undefined || (mode & 0o077) === 0 || process.platform === 'win32') return [];
  return [
    warning('file-mode', `others may read ${path} (${mode.toString(8)})`, `chmod 600 ${quoteForShell(path)}`, { path }),
  ];
}
