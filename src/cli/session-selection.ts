import { existsSync, lstatSync, realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import picomatch from 'picomatch';
import { findTranscripts, projectsFolder } from '../transcript/sessions/find-transcripts.js';
import { readOverview, type SessionOverview } from '../transcript/sessions/overview.js';
import { errorReason, UsageError } from './command-line.js';
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
  readonly limit?: number | undefined;
  /** Globs for the transcript's path. */
  readonly exclude: readonly string[];
}

/** Called for each file or folder that cannot be read. */
export type OnUnreadable = (path: string, reason: string) => void;

const printUnreadable: OnUnreadable = (path, reason) => printStderr(`${path} cannot be read (${reason})`);

/** Finds the selected sessions on disk, newest first. */
export function selectSessions(
  selection: Selection,
  claudeFolder: string,
  onUnreadable: OnUnreadable = printUnreadable,
): SessionOverview[] {
  const { named, project, since = 0, until = Number.POSITIVE_INFINITY, limit, exclude } = selection;
  if (named.length > 0) {
    const sessions = named.map((name) =>
      /\/|\.jsonl$/.test(name) ? readTranscript(name) : findSessionById(name, claudeFolder, onUnreadable),
    );
    return [...new Map(sessions.map((session) => [session.sessionId, session])).values()];
  }
  const excluded = exclude.map((glob) => picomatch(glob, { dot: true, basename: !glob.includes('/') }));
  const folders = project === undefined ? [] : [project, resolve(project)];
  if (project !== undefined && existsSync(project)) folders.push(realpathSync(project));
  return listSessions(claudeFolder, onUnreadable)
    .filter(({ path, folders: ranIn, ...session }) => {
      const at = session.lastActivityAt;
      const isOfProject = project === undefined || ranIn.some((folder) => folders.includes(folder));
      return isOfProject && at >= since && at <= until && !excluded.some((matches) => matches(path));
    })
    .slice(0, limit);
}

/** Lists every session on disk, newest first. */
export function listSessions(claudeFolder: string, onUnreadable = printUnreadable): SessionOverview[] {
  const sessions = new Map<string, SessionOverview>();
  for (const path of listTranscripts(claudeFolder, onUnreadable)) {
    const session = tryReadOverview(path, onUnreadable);
    const known = session && sessions.get(session.sessionId);
    if (session && (!known || isPreferred(session, known))) sessions.set(session.sessionId, session);
  }
  return [...sessions.values()].toSorted((a, b) => b.lastActivityAt - a.lastActivityAt);
}

/** Prefers the file named after the session, then the one with the later activity: a copy ends earlier than its original. */
function isPreferred(session: SessionOverview, known: SessionOverview): boolean {
  const [isNamed, isKnownNamed] = [session, known].map(
    ({ path, sessionId }) => basename(path) === `${sessionId}.jsonl`,
  );
  if (isNamed !== isKnownNamed) return isNamed === true;
  const later = session.lastActivityAt - known.lastActivityAt;
  return later > 0 || (later === 0 && session.bytes > known.bytes);
}

function readTranscript(name: string): SessionOverview {
  const path = resolve(name);
  if (basename(path).startsWith('agent-'))
    throw new UsageError(`${name}: belongs to a subagent; name its session instead, which includes it`);
  try {
    if (!lstatSync(path).isFile())
      throw new UsageError(`${name}: expected a transcript, a regular file that ends in .jsonl`);
    const session = readOverview(path);
    if (!session) throw new UsageError(`${name}: not a Claude Code transcript`);
    return session;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const reason = errorReason(error);
    throw new UsageError(`${name}: ${reason === 'ENOENT' ? 'no such file' : `cannot be read (${reason})`}`);
  }
}

/** Anything shorter may be a number or a word that was meant as something else. */
const MIN_ID_CHARS = 4;

function findSessionById(id: string, claudeFolder: string, onUnreadable: OnUnreadable): SessionOverview {
  const sessions = listSessions(claudeFolder, onUnreadable);
  if (id.length < MIN_ID_CHARS)
    throw new UsageError(`${id}: give at least ${MIN_ID_CHARS} characters of the session id`);
  const exact = sessions.find(({ sessionId }) => sessionId === id);
  const [found, ...others] = exact ? [exact] : sessions.filter(({ sessionId }) => sessionId.startsWith(id));
  if (!found)
    throw new UsageError(`no session ${id} in ${projectsFolder(claudeFolder)}; cc-langfuse sessions lists them`);
  if (others.length > 0)
    throw new UsageError(`${id}: ${others.length + 1} sessions have ids that begin with it; give more characters`);
  return found;
}

function listTranscripts(claudeFolder: string, onUnreadable: OnUnreadable): string[] {
  const folder = projectsFolder(claudeFolder);
  try {
    return [...findTranscripts(folder, (path, error) => onUnreadable(path, errorReason(error)))];
  } catch (error) {
    const reason = errorReason(error);
    if (reason === 'ENOENT') return [];
    throw new UsageError(
      `${folder} cannot be read (${reason}); if Claude Code uses another folder, set CLAUDE_CONFIG_DIR`,
    );
  }
}

function tryReadOverview(path: string, onUnreadable: OnUnreadable): SessionOverview | undefined {
  try {
    return readOverview(path);
  } catch (error) {
    // Claude Code deletes old transcripts, so a missing file is not a failure.
    const reason = errorReason(error);
    if (reason !== 'ENOENT') onUnreadable(path, reason);
    return undefined;
  }
}
