import { accessSync, constants, existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorReason } from '../../../cli/command-line.js';
import { formatBytes, formatMoment, plural } from '../../../cli/format.js';
import { ownCommand } from '../../../cli/own-command.js';
import { moveAsideCommand, quoteForShell } from '../../../cli/terminal.js';
import { attempt } from '../../../shared/attempt.js';
import { isRecord, parseJson } from '../../../shared/json.js';
import { logPath } from '../../../shared/log.js';
import { isAbandoned } from '../../../state/lock.js';
import { serversFolder } from '../../../state/servers.js';
import { sessionsFolder } from '../../../state/session-folder.js';
import type { StateStore } from '../../../state/store.js';
import { about, type Finding } from '../finding.js';
import { findDenied } from '../state-access.lazy.js';
import type { SettingsInForce } from './settings.js';

const LEAST_FREE_BYTES = 10_000_000;
const RECENT_MS = 7 * 24 * 60 * 60_000;
const MESSAGES_SHOWN = 3;

/** Where the hooks keep their state. */
export interface StateFiles {
  readonly stateFolder: string;
  readonly store: StateStore;
  readonly now: number;
}

export const FILE_CHECKS = [checkStateFolder, checkState, checkSetAside, checkLocks, checkLog, checkFileModes];

function checkStateFolder({ stateFolder, hookEnv }: StateFiles & SettingsInForce): Finding {
  // If the folder does not exist, the first hook creates it in the nearest folder that does.
  let nearest = stateFolder;
  while (!existsSync(nearest) && dirname(nearest) !== nearest) nearest = dirname(nearest);
  const freeBytes = attempt(() => countFreeBytes(nearest));
  const folder = about('state-folder', { path: stateFolder, freeBytes });
  const notWritable = (reason: string, fix: string) =>
    folder.broken(`${stateFolder} cannot be written (${nearest}: ${reason}), so nothing is sent`, fix);
  const denied = findDenied(nearest);
  if (denied) return folder.broken(`${denied.message}: nothing is sent`, denied.fix);
  try {
    if (!statSync(nearest).isDirectory()) return notWritable('not a folder', moveAsideCommand(nearest));
    accessSync(nearest, constants.W_OK | constants.X_OK);
  } catch (error) {
    return notWritable(errorReason(error), 'set CC_LANGFUSE_STATE_DIR to a folder on a writable disk');
  }
  if (freeBytes !== undefined && freeBytes < LEAST_FREE_BYTES)
    return folder.broken(`the disk of ${stateFolder} is full (${formatBytes(freeBytes)} free)`, 'free space on it');
  if (nearest !== stateFolder) return folder.none(`${stateFolder} does not exist yet; the first hook creates it`);
  // It may have code that Node has compiled.
  const isChosen = hookEnv.CC_LANGFUSE_STATE_DIR !== undefined && process.platform !== 'win32';
  if (isChosen && (statSync(stateFolder).mode & 0o022) !== 0)
    return folder.warning(`others can write to ${stateFolder}`, `chmod 700 ${quoteForShell(stateFolder)}`);
  return folder.ok(stateFolder);
}

function countFreeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/** Without what is known of a session, nothing of it is sent. */
function* checkState({ stateFolder, store }: StateFiles): Generator<Finding> {
  const path = sessionsFolder(stateFolder);
  const unreadable: string[] = [];
  const sessions = store.all((file) => unreadable.push(file)).length;
  for (const file of unreadable)
    yield about('state', { path: file }).broken(
      `${file} cannot be read, so nothing of its session is sent`,
      moveAsideCommand(file),
    );
  if (unreadable.length > 0) return;
  const state = about('state', { path, sessions });
  yield sessions === 0
    ? state.none('nothing has been exported yet')
    : state.ok(`${path} (${plural(sessions, 'session')})`);
}

function checkSetAside({ stateFolder }: StateFiles): Finding[] {
  const paths = listBelow(stateFolder, /\.json\.corrupt-/);
  if (paths.length === 0) return [];
  const message = `${plural(paths.length, 'corrupt file')} set aside, so their turns are sent again: ${paths.join(', ')}`;
  return [about('state-set-aside', { paths }).warning(message, removeCommand(paths))];
}

/** Locks whose owners no longer run. */
function checkLocks({ stateFolder }: StateFiles): Finding[] {
  // Opening a FIFO would hang.
  const paths = listBelow(stateFolder, /\.lock$/).filter((path) => readStatus(path)?.isFile() && isAbandoned(path));
  if (paths.length === 0) return [];
  const message = `${plural(paths.length, 'lock')} left behind by killed runs; the next run that needs one removes it`;
  return [about('locks', { paths }).warning(message, removeCommand(paths))];
}

/** Files of sessions and servers. */
function listBelow(stateFolder: string, pattern: RegExp): string[] {
  const sessions = attempt(() => readdirSync(sessionsFolder(stateFolder))) ?? [];
  const folders = [serversFolder(stateFolder), ...sessions.map((name) => join(sessionsFolder(stateFolder), name))];
  return folders.flatMap((folder) => listFiles(folder, pattern));
}

function removeCommand(paths: readonly string[]): string {
  return `rm ${paths.map(quoteForShell).join(' ')}`;
}

/** The warnings and errors of the last week, the most frequent first. */
function checkLog({ stateFolder, now }: StateFiles): Finding {
  const path = logPath(stateFolder);
  const bytes = readStatus(path)?.size;
  if (bytes === undefined) return about('log', { path }).none('nothing has been logged yet');
  const recent = readTroubles(path).filter(({ at }) => now - at < RECENT_MS);
  if (recent.length === 0)
    return about('log', { path, bytes }).ok(`${path} (${formatBytes(bytes)}): no problems in the last 7 days`);
  const messages = [...new Set(recent.map(({ message }) => message))]
    .map((message) => {
      const times = recent.filter((trouble) => trouble.message === message).map(({ at }) => at);
      return { message, times: times.length, last: new Date(Math.max(...times)).toISOString() };
    })
    .toSorted((a, b) => b.times - a.times);
  const shown = messages
    .slice(0, MESSAGES_SHOWN)
    .map(({ message, times, last }) => `${times} × "${message}" (last ${formatMoment(Date.parse(last))})`);
  const more = messages.length > MESSAGES_SHOWN ? [`${messages.length - MESSAGES_SHOWN} others`] : [];
  const log = about('log', { path, bytes, messages });
  return log.warning(`in the last 7 days: ${[...shown, ...more].join(', ')}`, `${ownCommand()} log`);
}

function readTroubles(path: string) {
  // Reading a FIFO would hang.
  const text = readStatus(path)?.isFile() ? attempt(() => readFileSync(path, 'utf8')) : undefined;
  return (text ?? '').split('\n').flatMap((line) => {
    const fields = /"level":"(?:warn|error)"/.test(line) ? parseJson(line) : undefined;
    return isRecord(fields) ? [{ at: Date.parse(String(fields.time)), message: String(fields.msg) }] : [];
  });
}

/** State and log are created for their owner alone. On Windows modes mean nothing. */
function* checkFileModes({ stateFolder }: StateFiles): Generator<Finding> {
  if (process.platform === 'win32') return;
  for (const path of [sessionsFolder(stateFolder), logPath(stateFolder)]) {
    const mode = (readStatus(path)?.mode ?? 0) & 0o777;
    const message = `others can read ${path} (its mode is ${mode.toString(8)})`;
    if ((mode & 0o077) !== 0) yield about('file-mode', { path }).warning(message, `chmod go= ${quoteForShell(path)}`);
  }
}

function readStatus(path: string) {
  return attempt(() => statSync(path));
}

function listFiles(folder: string, pattern: RegExp): string[] {
  const names = attempt(() => readdirSync(folder)) ?? [];
  return names.filter((name) => pattern.test(name)).map((name) => join(folder, name));
}
