import { chmodSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import pino, { type Logger } from 'pino';
import { memoize } from './memoize.js';

const ROTATE_AT_BYTES = 5_000_000;

/** Opens the log file. It is written synchronously, so that what was logged survives a kill. */
export const openLogFile = memoize(createLogger);

function createLogger(path: string): Logger {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing && !existing.isFile()) throw new Error(`${path} is not a regular file`);
  if (existing && existing.size > ROTATE_AT_BYTES) renameSync(path, `${path}.1`);
  // Another exporter may have created it, readable by everyone.
  else if (existing) chmodSync(path, 0o600);
  return pino(
    { level: 'debug', timestamp: false, base: { pid: process.pid }, formatters: { level: (level) => ({ level }) } },
    pino.destination({ dest: path, sync: true, mode: 0o600 }),
  );
}
