import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, uptime } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { attempt } from '../shared/attempt.js';

/** The right to do something that only one process at a time may do. */
export interface Lock {
  /** Whether it is still ours: a process that was suspended for long may have lost it. */
  isHeld(): boolean;
  release(): void;
}

const RETRY_MS = 10;
const HEARTBEAT_MS = 2_000;
/** An owner without a heartbeat for this long is gone, even if another process has its pid now. */
const STALE_MS = 60_000;
/** An owner writes its name at once. A lock without one for this long was left by a process that died in between. */
const UNNAMED_MS = 1_000;

let attempts = 0;

/** Waits for the lock until the deadline (ms since 1970) or until it is stopped; returns undefined if it was not free by then. */
export async function takeLock(path: string, deadline: number, stop?: AbortSignal): Promise<Lock | undefined> {
  attempts += 1;
  const token = `${nameProcess(process.pid)} ${process.hrtime.bigint()}.${attempts}`;
  for (;;) {
    if (create(path, token) || (dropIfStale(path, token) && create(path, token))) return hold(path, token);
    if (Date.now() >= deadline || stop?.aborted) return undefined;
    await sleep(RETRY_MS);
  }
}

/** Returns whether the lock is ours now. If its folder is not there, it is the next time. */
function create(path: string, token: string): boolean {
  try {
    writeFileSync(path, token, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    if (code === 'ENOENT') {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      return false;
    }
    // On a full disk the file is there, without the whole name.
    const owner = readOwner(path);
    if (owner !== undefined && token.startsWith(owner)) rmSync(path, { force: true });
    throw error;
  }
}

function hold(path: string, token: string): Lock {
  const isHeld = () => readOwner(path) === token;
  // If the disk rejects the heartbeat it rejects every other write too, and those report it.
  const beat = () => attempt(() => isHeld() && utimesSync(path, new Date(), new Date()));
  const heartbeat = setInterval(beat, HEARTBEAT_MS);
  heartbeat.unref();
  let isReleased = false;
  return {
    isHeld,
    release() {
      clearInterval(heartbeat);
      // Looking for it first, as rmSync does, takes two more operations.
      if (!isReleased && isHeld()) attempt(() => unlinkSync(path));
      isReleased = true;
    },
  };
}

/** Returns whether the lock is free now. */
function dropIfStale(path: string, token: string): boolean {
  const owner = readOwner(path);
  if (owner === undefined) return !existsSync(path);
  if (!isStale(path, owner)) {
    redateIfAhead(path);
    return false;
  }
  const aside = `${path}.${token.replace(/[^\w.]/g, '-')}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    throw error;
  }
  // Another process may have dropped it and taken it in the meantime: then put it back, unless a third one holds it by now.
  if (readOwner(aside) !== owner) attempt(() => linkSync(aside, path));
  rmSync(aside, { force: true });
  return true;
}

/** A date in the future would keep a lock for ever. From now on it ages, unless its owner touches it again. */
function redateIfAhead(path: string): void {
  const changedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (changedAt - Date.now() > STALE_MS) attempt(() => utimesSync(path, new Date(), new Date()));
}

/** Whether the owner of a lock is gone. The next process that wants it drops it. */
export function isAbandoned(path: string): boolean {
  const owner = readOwner(path);
  return owner !== undefined && isStale(path, owner);
}

function isStale(path: string, owner: string): boolean {
  const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  const isFromBeforeBoot = ageMs > uptime() * 1_000;
  if (ageMs > STALE_MS || isFromBeforeBoot) return true;
  // The clock may have been set back since.
  if (owner === '') return Math.abs(ageMs) > UNNAMED_MS;
  return hasGone(owner);
}

/** Names a process for others that share the home. */
export function nameProcess(pid: number): string {
  return `${pid} ${hostname()}`;
}

/** Whether a process that was named is known to have ended. Containers may share a home: a pid means something only on its own host. */
export function hasGone(name: string): boolean {
  const [pid, host] = name.split(' ');
  return host === hostname() && !isRunning(Number(pid));
}

/** Whether a process runs: one that has ended but was not waited for does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** A process that was killed keeps its pid until its parent notices; in some containers that is never. Only Linux says so here. */
function isZombie(pid: number): boolean {
  const status = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  return status !== undefined && /^\d+ \(.*\) [ZX]/s.test(status);
}

function readOwner(path: string): string | undefined {
  return attempt(() => readFileSync(path, 'utf8'));
}
