import { lstatSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import picomatch from 'picomatch';
import { UsageError } from './command-line.js';
import { projectsFolder, transcriptsIn } from './transcript/discover.js';
import { overviewOf, type SessionOverview } from './transcript/overview.js';

/** Which sessions are meant. */
export interface Selection {
  /** Session ids or paths; with any, nothing else is looked at. */
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
export function selectSessions(selection: Selection, claudeFolder: string): SessionOverview[] {
  const { named, project, since = 0, until = Number.POSITIVE_INFINITY, limit, exclude } = selection;
  if (named.length > 0) return named.flatMap((name) => sessionNamed(name, claudeFolder));
  const excluded = exclude.map((glob) => picomatch(glob, { dot: true, basename: !glob.includes('/') }));
  const folders = project === undefined ? undefined : [...new Set([resolve(project), realPath(project)])];
  return sessionsIn(claudeFolder)
    .filter(({ path, folders: ranIn, ...session }) => {
      const at = lastActivity(session);
      const isOfProject = !folders || ranIn.some((folder) => folders.includes(folder));
      return isOfProject && at >= since && at <= until && !excluded.some((matches) => matches(path));
    })
    .slice(0, limit);
}

/** Every session on disk, the newest first. */
export function sessionsIn(claudeFolder: string): SessionOverview[] {
  const newest = new Map<string, SessionOverview>();
  for (const path of pathsIn(claudeFolder)) {
    const session = tryOverview(path);
    const same = session && newest.get(session.sessionId);
    // A session that was moved may have left a copy behind.
    if (session && (!same || same.changedAt < session.changedAt)) newest.set(session.sessionId, session);
  }
  return [...newest.values()].toSorted((a, b) => lastActivity(b) - lastActivity(a));
}

/** When something last happened in a session, in ms since 1970. */
export function lastActivity({ lastAt, changedAt }: Pick<SessionOverview, 'lastAt' | 'changedAt'>): number {
  return lastAt ?? changedAt;
}

function sessionNamed(name: string, claudeFolder: string): SessionOverview {
  if (!name.includes('/') && !name.endsWith('.jsonl')) {
    const found = sessionsIn(claudeFolder).find(({ sessionId }) => sessionId === name);
    if (!found) throw new UsageError(`no session ${name} in ${projectsFolder(claudeFolder)}; see cc-langfuse sessions`);
    return found;
  }
  const path = resolve(name);
  const file = lstatSync(path, { throwIfNoEntry: false });
  if (!file) throw new UsageError(`${name}: there is no such file`);
  if (!file.isFile()) throw new UsageError(`${name}: expected a transcript, a file that ends in .jsonl`);
  const session = tryOverview(path);
  if (!session) throw new UsageError(`${name}: is no transcript of Claude Code, or cannot be read`);
  return session;
}

function pathsIn(claudeFolder: string): string[] {
  const folder = projectsFolder(claudeFolder);
  try {
    return [...transcriptsIn(folder)];
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    throw new UsageError(`${folder} cannot be read (${code}); CLAUDE_CONFIG_DIR names another`);
  }
}

function tryOverview(path: string): SessionOverview | undefined {
  try {
    return overviewOf(path);
  } catch {
    // gone by now, or of somebody else
    return undefined;
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
