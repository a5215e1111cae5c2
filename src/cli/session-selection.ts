import { existsSync, lstatSync, realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import picomatch from 'picomatch';
import { findTranscripts, projectsFolder } from '../transcript/sessions/find-transcripts.js';
import { readOverview, recallOverview, type SessionOverview } from '../transcript/sessions/overview.js';
import type { SessionIndex } from '../transcript/sessions/session-index.js';
import { errorReason, UsageError } from './command-line.js';
import { ownCommand } from './own-command.js';
import { printStderr } from './terminal.js';

/** The sessions that the user asked for. */
export interface Selection {
  /** Session ids, unique beginnings of ids, or paths. If there are any, the rest of the selection is ignored. */
  readonly named: readonly string[];
  /** A folder; undefined for all projects. */
  readonly project: string | undefined;
  /** Bounds for the last activity, in ms since 1970. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  /** Whether a session is one of those that are wanted. */
  readonly isWanted?: (session: SessionOverview) => boolean;
  readonly limit?: number | undefined;
  /** Globs for the transcript's path. */
  readonly exclude: readonly string[];
}

/** Finds the selected sessions on disk, newest first. */
export function selectSessions(
  selection: Selection,
  claudeFolder: string,
  onUnreadable = printUnreadable,
  index?: SessionIndex,
) {
  const {
    named,
    project,
    since = 0,
    until = Number.POSITIVE_INFINITY,
    isWanted = () => true,
    limit,
    exclude,
  } = selection;
  const isPath = (name: string) => /\/|\.jsonl$/.test(name);
  const all = named.length > 0 && named.every(isPath) ? [] : listSessions(claudeFolder, onUnreadable, index);
  if (named.length > 0) {
    const sessions = named.map((name) => (isPath(name) ? readTranscript(name) : findById(name, all, claudeFolder)));
    return [...new Map(sessions.map((session) => [session.sessionId, session])).values()];
  }
  const excluded = exclude.map((glob) => picomatch(glob, { dot: true, basename: !glob.includes('/') }));
  const isOfProject = project === undefined ? () => true : ranIn(project);
  return all
    .filter((session) => {
      const { path, lastActivityAt: at } = session;
      const isIncluded = at >= since && at <= until && !excluded.some((matches) => matches(path));
      return isIncluded && isOfProject(session) && isWanted(session);
    })
    .slice(0, limit);
}

/** Returns a function that says whether a session ran in a folder. */
export function ranIn(folder: string): (session: SessionOverview) => boolean {
  const names = [folder, resolve(folder), ...(existsSync(folder) ? [realpathSync(folder)] : [])];
  return ({ folders }) => folders.some((each) => names.includes(each));
}

/**
 * Returns the session that a command is about: the one that the user names or, without a name, the one that Claude Code runs the
 * command in, or else the newest of the current directory.
 */
export function selectSession(
  command: string,
  [name, another]: readonly string[],
  claudeFolder: string,
  env: NodeJS.ProcessEnv,
): SessionOverview {
  if (another !== undefined) throw new UsageError(`${name} and ${another}: ${command} takes one session`);
  const wanted = name ?? (env.CLAUDE_CODE_SESSION_ID || undefined);
  const selection = { named: wanted === undefined ? [] : [wanted], project: process.cwd(), limit: 1, exclude: [] };
  const [session] = selectSessions(selection, claudeFolder);
  if (!session) throw new UsageError(`no session ran in this directory; name one, ${ownCommand()} sessions lists them`);
  return session;
}

/**
 * Lists every session on disk, newest first. `onUnreadable` is called for each file or folder that cannot be read. With an index,
 * only what has changed is read.
 */
export function listSessions(
  claudeFolder: string,
  onUnreadable: (path: string, reason: string) => void,
  index?: SessionIndex,
): SessionOverview[] {
  const report = (path: string, error: unknown) => {
    // Claude Code deletes old transcripts, so a missing file is not a failure.
    if (errorReason(error) !== 'ENOENT') onUnreadable(path, errorReason(error));
  };
  const sessions = new Map<string, SessionOverview>();
  const paths = listTranscripts(projectsFolder(claudeFolder), report);
  index?.keepOnly(paths);
  for (const path of paths) {
    try {
      const session = index ? recallOverview(path, index) : readOverview(path);
      const known = session && sessions.get(session.sessionId);
      if (session && (!known || isPreferred(session, known))) sessions.set(session.sessionId, session);
    } catch (error) {
      report(path, error);
    }
  }
  return [...sessions.values()].toSorted((a, b) => b.lastActivityAt - a.lastActivityAt);
}

function printUnreadable(path: string, reason: string): void {
  printStderr(`${path} cannot be read (${reason})`);
}

function listTranscripts(folder: string, onUnreadable: (path: string, error: unknown) => void): string[] {
  try {
    return [...findTranscripts(folder, onUnreadable)];
  } catch (error) {
    const reason = errorReason(error);
    if (reason === 'ENOENT') return [];
    throw new UsageError(
      `${folder} cannot be read (${reason}); if Claude Code uses another folder, set CLAUDE_CONFIG_DIR`,
    );
  }
}

/** Prefers the file named after the session, then the one with the later activity: a copy ends earlier than its original. */
function isPreferred(session: SessionOverview, known: SessionOverview): boolean {
  const isNamed = ({ path, sessionId }: SessionOverview) => basename(path) === `${sessionId}.jsonl`;
  if (isNamed(session) !== isNamed(known)) return isNamed(session);
  return (session.lastActivityAt - known.lastActivityAt || session.bytes - known.bytes) > 0;
}

function readTranscript(name: string): SessionOverview {
  const path = resolve(name);
  if (basename(path).startsWith('agent-'))
    throw new UsageError(`${name}: belongs to a subagent; name its session instead, which includes it`);
  try {
    const session = lstatSync(path).isFile() ? readOverview(path) : undefined;
    if (session) return session;
  } catch (error) {
    const reason = errorReason(error);
    throw new UsageError(`${name}: ${reason === 'ENOENT' ? 'no such file' : `cannot be read (${reason})`}`);
  }
  throw new UsageError(`${name}: not a Claude Code transcript`);
}

/** Anything shorter may be a number or a word that was meant as something else. */
const MIN_ID_CHARS = 4;

function findById(id: string, sessions: readonly SessionOverview[], claudeFolder: string): SessionOverview {
  if (id.length < MIN_ID_CHARS)
    throw new UsageError(`${id}: give at least ${MIN_ID_CHARS} characters of the session id`);
  const exact = sessions.find(({ sessionId }) => sessionId === id);
  const [found, ...others] = exact ? [exact] : sessions.filter(({ sessionId }) => sessionId.startsWith(id));
  if (!found)
    throw new UsageError(`no session ${id} in ${projectsFolder(claudeFolder)}; ${ownCommand()} sessions lists them`);
  if (others.length > 0)
    throw new UsageError(`${id}: ${others.length + 1} sessions have ids that begin with it; give more characters`);
  return found;
}
