import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Something that one process at a time may do; given back with `release`. */
export interface Lock {
  release(): void;
}

const RETRY_MS = 10;
const HEARTBEAT_MS = 2_000;
/** Without a heartbeat for this long an owner is gone, even where another process has its number now. */
const STALE_MS = 20_000;

let taken = 0;

/** Waits for the lock until the deadline (ms since 1970); undefined where it was not to be had by then. */
export async function takeLock(path: string, deadline: number): Promise<Lock | undefined> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  taken += 1;
  const token = `${process.pid} ${process.hrtime.bigint()}.${taken}`;
  for (;;) {
    if (create(path, token)) return hold(path, token);
    if (dropIfStale(path, token)) continue;
    if (Date.now() >= deadline) return undefined;
    await sleep(RETRY_MS);
  }
}

function create(path: string, token: string): boolean {
  try {
    const file = openSync(path, 'wx', 0o600);
    writeSync(file, token);
    closeSync(file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function hold(path: string, token: string): Lock {
  const heartbeat = setInterval(() => {
    if (ownerOf(path) === token) utimesSync(path, new Date(), new Date());
  }, HEARTBEAT_MS);
  heartbeat.unref();
  return {
    release() {
      clearInterval(heartbeat);
      if (ownerOf(path) === token) rmSync(path, { force: true });
    },
  };
}

function dropIfStale(path: string, token: string): boolean {
  const owner = ownerOf(path);
  if (owner === undefined) return !existsSync(path);
  if (!isStale(path, owner)) return false;
  const aside = `${path}.${token.replace(' ', '-')}`;
  try {
    renameSync(path, aside);
  } catch {
    return true;
  }
  // Another process may have dropped it and taken it in the meantime: then it is put back.
  if (ownerOf(aside) !== owner) {
    try {
      linkSync(aside, path);
    } catch {
      // a third one holds it by now
    }
  }
  rmSync(aside, { force: true });
  return true;
}

function isStale(path: string, owner: string): boolean {
  const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  if (age > STALE_MS) return true;
  const pid = Number.parseInt(owner, 10);
  return pid > 0 && !isRunning(pid);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

function ownerOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
