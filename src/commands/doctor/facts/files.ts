import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  type Stats,
  statfsSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { isRecord, parseJson } from '../../../shared/json.js';
import { logPath } from '../../../shared/log.js';
import { isAbandoned } from '../../../state/lock.js';
import { locksFolder, type StateStore, statePath } from '../../../state/store.js';

export interface FileFacts {
  readonly folder: FolderFacts;
  readonly state: FileFact & {
    /** Why it cannot be read. */
    readonly unreadable: string | undefined;
    readonly isCorrupt: boolean;
    readonly sessions: number;
    /** Corrupt ones that were set aside. */
    readonly setAside: readonly string[];
  };
  readonly log: FileFact & { readonly troubles: readonly Trouble[] };
  /** Locks whose owners are gone. */
  readonly leftLocks: readonly string[];
}

interface FolderFacts {
  readonly path: string;
  readonly isThere: boolean;
  /** What keeps the hook from writing in it, or, where it is not there, from making it. */
  readonly obstacle: Obstacle | undefined;
  readonly freeBytes: number | undefined;
}

export interface Obstacle {
  readonly path: string;
  /** The system's own word, such as EACCES; or that it is no folder. */
  readonly reason: string;
}

export interface FileFact {
  readonly path: string;
  /** Undefined where it is not there. */
  readonly bytes: number | undefined;
  /** Its permissions, as chmod takes them. */
  readonly mode: number | undefined;
}

/** A line of the log that is a warning or an error. */
export interface Trouble {
  readonly at: number;
  readonly message: string;
}

const LOG_TAIL_BYTES = 1 << 18;

export function fileFacts(folder: string, store: StateStore): FileFacts {
  const names = namesIn(folder);
  return {
    folder: folderFacts(folder),
    state: {
      ...fileFact(statePath(folder)),
      ...readability(store),
      setAside: names
        .filter((name) => /^cc-langfuse_state\.json\.corrupt-/.test(name))
        .map((name) => join(folder, name)),
    },
    log: { ...fileFact(logPath(folder)), troubles: troublesIn(logPath(folder)) },
    leftLocks: [
      `${statePath(folder)}.lock`,
      ...namesIn(locksFolder(folder))
        .filter((name) => name.endsWith('.lock'))
        .map((name) => join(locksFolder(folder), name)),
      // A FIFO in the place of one would hang.
    ].filter((path) => statusOf(path)?.isFile() && isAbandoned(path)),
  };
}

function folderFacts(path: string): FolderFacts {
  const isThere = existsSync(path);
  // The first hook makes it, and what leads to it.
  let nearest = path;
  while (!existsSync(nearest) && dirname(nearest) !== nearest) nearest = dirname(nearest);
  return { path, isThere, obstacle: obstacleAt(nearest), freeBytes: freeBytes(nearest) };
}

function obstacleAt(path: string): Obstacle | undefined {
  try {
    if (!statSync(path).isDirectory()) return { path, reason: 'no folder' };
    accessSync(path, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return { path, reason: (error as NodeJS.ErrnoException).code ?? '' };
  }
}

function freeBytes(path: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

function fileFact(path: string): FileFact {
  const status = statusOf(path);
  return { path, bytes: status?.size, mode: status && status.mode & 0o777 };
}

function readability(store: StateStore) {
  try {
    const { isCorrupt } = store;
    return { unreadable: undefined, isCorrupt, sessions: store.all().length };
  } catch (error) {
    return { unreadable: (error as Error).message, isCorrupt: false, sessions: 0 };
  }
}

function troublesIn(path: string): Trouble[] {
  return tailOf(path)
    .split('\n')
    .flatMap((line) => {
      const fields = /"level":"(?:warn|error)"/.test(line) ? parseJson(line) : undefined;
      const at = isRecord(fields) ? Date.parse(String(fields.time)) : Number.NaN;
      return isRecord(fields) && Number.isFinite(at) ? [{ at, message: String(fields.msg) }] : [];
    });
}

function tailOf(path: string): string {
  if (!statusOf(path)?.isFile()) return '';
  try {
    const file = openSync(path, 'r');
    try {
      const { size } = fstatSync(file);
      const tail = Buffer.alloc(Math.min(size, LOG_TAIL_BYTES));
      return tail.toString('utf8', 0, readSync(file, tail, 0, tail.length, size - tail.length));
    } finally {
      closeSync(file);
    }
  } catch {
    return '';
  }
}

function statusOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
