import { lstatSync, realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import picomatch from 'picomatch';
import { findTranscripts, projectsFolder } from '../transcript/overview/discover.js';
import { lastActivity, readOverview, type SessionOverview } from '../transcript/overview/overview.js';
import { UsageError } from './command-line.js';

/** Which sessions are meant. */
export interface Selection {
  /** Session ids, or how one alone begins, or paths; with any, nothing else is looked at. */
  readonly named: readonly string[];
  /** Undefined for all projects. */
  readonly project: string | undefined;
  /** By the last activity, in ms since 1970. */
  readonly since: number | undefined;
  readonly until: number | undefined;
  readonly limit: number | undefined;
  /** Globs on the transcript's path. */
  readonly exclude: readonly string[];
}

/** The sessions on disk that are meant, the newest first. */
export function selectSessions(
  selection: Selection,
  claudeFolder: string,
  onUnreadable: OnUnreadable,
): SessionOverview[] {
  const { named, project, since = 0, until = Number.POSITIVE_INFINITY, limit, exclude } = selection;
  if (named.length > 0) {
    const sessions = named.map((name) => sessionNamed(name, claudeFolder, onUnreadable));
    return [...new Map(sessions.map((session) => [session.sessionId, session])).values()];
  }
  const excluded = exclude.map((glob) => picomatch(glob, { dot: true, basename: !glob.includes('/') }));
  const folders = project === undefined ? undefined : [...new Set([project, resolve(project), realPath(project)])];
  return listSessions(claudeFolder, onUnreadable)
    .filter(({ path, folders: ranIn, ...session }) => {
      const at = lastActivity(session);
      const isOfProject = !folders || ranIn.some((folder) => folders.includes(folder));
      return isOfProject && at >= since && at <= until && !excluded.some((matches) => matches(path));
    })
    .slice(0, limit);
}

/** Told of what cannot be read, with the reason. */
export type OnUnreadable = (path: string, reason: string) => void;

/** Every session on disk, the newest first. */
export function listSessions(claudeFolder: string, onUnreadable: OnUnreadable): SessionOverview[] {
  const sessions = new Map<string, SessionOverview>();
  for (const path of pathsIn(claudeFolder, onUnreadable)) {
    const session = tryOverview(path, onUnreadable);
    const same = session && sessions.get(session.sessionId);
    if (session && (!same || isRather(session, same))) sessions.set(session.sessionId, session);
  }
  return [...sessions.values()].toSorted((a, b) => lastActivity(b) - lastActivity(a));
}

/** Of two files of one session the one that bears its name, and of equals the one that goes on for longer: a copy ends before. */
function isRather(one: SessionOverview, other: SessionOverview): boolean {
  const [isNamed, isOtherNamed] = [one, other].map(({ path, sessionId }) => basename(path) === `${sessionId}.jsonl`);
  if (isNamed !== isOtherNamed) return isNamed === true;
  return (
    lastActivity(one) - lastActivity(other) > 0 ||
    (lastActivity(one) === lastActivity(other) && one.bytes > other.bytes)
  );
}

function sessionNamed(name: string, claudeFolder: string, onUnreadable: OnUnreadable): SessionOverview {
  if (!name.includes('/') && !name.endsWith('.jsonl')) return sessionWithId(name, claudeFolder, onUnreadable);
  const path = resolve(name);
  if (basename(path).startsWith('agent-'))
    throw new UsageError(`${name}: is a subagent's; name its session, which takes it along`);
  const file = statusOf(path, name);
  if (!file) throw new UsageError(`${name}: there is no such file`);
  if (!file.isFile()) throw new UsageError(`${name}: expected a transcript, a regular file that ends in .jsonl`);
  const session = tryOverview(path, (_, reason) => {
    throw new UsageError(`${name}: cannot be read (${reason})`);
  });
  if (!session) throw new UsageError(`${name}: is no transcript of Claude Code`);
  return session;
}

/** What is shorter may be a number or a word that was meant otherwise. */
const SHORTEST_BEGINNING = 4;

function sessionWithId(name: string, claudeFolder: string, onUnreadable: OnUnreadable): SessionOverview {
  const sessions = listSessions(claudeFolder, onUnreadable);
  if (name.length < SHORTEST_BEGINNING)
    throw new UsageError(`${name}: write at least ${SHORTEST_BEGINNING} characters of a session's id`);
  const beginning = sessions.filter(({ sessionId }) => sessionId.startsWith(name));
  const [found, another] = sessions.filter(({ sessionId }) => sessionId === name).concat(beginning);
  if (!found) throw new UsageError(`no session ${name} in ${projectsFolder(claudeFolder)}; see cc-langfuse sessions`);
  if (found.sessionId !== name && another)
    throw new UsageError(`${name}: ${beginning.length} sessions begin so; write more of the id`);
  return found;
}

function statusOf(path: string, name: string) {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new UsageError(`${name}: cannot be read (${codeOf(error)})`);
  }
}

function pathsIn(claudeFolder: string, onUnreadable: OnUnreadable): string[] {
  const folder = projectsFolder(claudeFolder);
  try {
    return [...findTranscripts(folder, (path, error) => onUnreadable(path, codeOf(error)))];
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw new UsageError(`${folder} cannot be read (${codeOf(error)}); CLAUDE_CONFIG_DIR names another`);
  }
}

function tryOverview(path: string, onUnreadable: OnUnreadable): SessionOverview | undefined {
  try {
    return readOverview(path);
  } catch (error) {
    // Claude Code deletes old ones in time; what is gone by now is no failure.
    if (codeOf(error) !== 'ENOENT') onUnreadable(path, codeOf(error));
    return undefined;
  }
}

function codeOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
