import { chmodSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import pino, { type Logger } from 'pino';

const ROTATE_AT_BYTES = 5_000_000;

const open = new Map<string, Logger>();

/** The log file, written synchronously: what has been logged outlives a kill. */
export function openLogFile(path: string): Logger {
  const logger = open.get(path) ?? create(path);
  open.set(path, logger);
  return logger;
}

function create(path: string): Logger {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const there = statSync(path, { throwIfNoEntry: false });
  if (there && !there.isFile()) throw new Error(`${path} is not a regular file`);
  if (there && there.size > ROTATE_AT_BYTES) renameSync(path, `${path}.1`);
  // Another exporter may have made it, for everyone to read.
  else if (there) chmodSync(path, 0o600);
  return pino(
    { level: 'debug', timestamp: false, base: { pid: process.pid }, formatters: { level: (level) => ({ level }) } },
    pino.destination({ dest: path, sync: true, mode: 0o600 }),
  );
}
