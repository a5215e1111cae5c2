import { join } from 'node:path';

type Details = { readonly [key: string]: string | number | boolean | undefined };
type Level = 'debug' | 'warn' | 'error';

/** The log of one run. It holds no content and no keys; the file is opened only when there is something to write. */
export interface Log {
  readonly isDebug: boolean;
  debug(message: string, details?: Details): void;
  warn(message: string, details?: Details): void;
  error(message: string, details?: Details): void;
  /** Resolves when everything is on disk. */
  flush(): Promise<void>;
}

export function logPath(folder: string): string {
  return join(folder, 'cc-langfuse_hook.log');
}

export function openLog(folder: string, options: { debug: boolean }): Log {
  let written = Promise.resolve();
  const write = (level: Level, message: string, details: Details = {}) => {
    if (level === 'debug' && !options.debug) return;
    const time = new Date().toISOString();
    written = written
      .then(async () => {
        const { openLogFile: logFile } = await import('./log-file.lazy.js');
        logFile(logPath(folder))[level]({ ...details, time }, message);
      })
      .catch((error: Error) => {
        // The last resort, where Claude Code keeps it out of sight.
        process.stderr.on('error', () => {});
        process.stderr.write(`cc-langfuse: ${message} (no log: ${error.message})\n`);
      });
  };
  return {
    isDebug: options.debug,
    debug: (message, details) => write('debug', message, details),
    warn: (message, details) => write('warn', message, details),
    error: (message, details) => write('error', message, details),
    flush: () => written,
  };
}
