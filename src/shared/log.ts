import { join } from 'node:path';

type Details = { readonly [key: string]: string | number | boolean | undefined };
type Level = 'debug' | 'info' | 'warn' | 'error';

/** The log of one run. It contains neither content nor keys. The file is only opened if there is something to write. */
export interface Log extends Readonly<Record<Level, (message: string, details?: Details) => void>> {
  /** Resolves when everything is on disk. */
  flush(): Promise<void>;
}

export function logPath(folder: string): string {
  return join(folder, 'cc-langfuse_hook.log');
}

export function openLog(folder: string, options: { debug: boolean }): Log {
  let written = Promise.resolve();
  const writeAt =
    (level: Level) =>
    (message: string, details: Details = {}) => {
      if (level === 'debug' && !options.debug) return;
      const time = new Date().toISOString();
      written = written
        .then(async () => {
          const { openLogFile } = await import('./log-file.lazy.js');
          openLogFile(logPath(folder))[level]({ ...details, time }, message);
        })
        .catch((error: Error) => {
          // The last resort: Claude Code does not show a hook's stderr.
          process.stderr.on('error', () => {});
          process.stderr.write(`cc-langfuse: ${message} (no log: ${error.message})\n`);
        });
    };
  return {
    debug: writeAt('debug'),
    info: writeAt('info'),
    warn: writeAt('warn'),
    error: writeAt('error'),
    flush: () => written,
  };
}
