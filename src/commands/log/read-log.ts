import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorReason } from '../../cli/command-line.js';
import { TranscriptReader } from '../../transcript/file/reader.js';

const POLL_MS = 250;

/** Yields the lines of the file that was set aside, then those of the log. With `onWait`, calls it and goes on with what is added, without end. */
export async function* readLog(path: string, onWait?: () => void): AsyncGenerator<string[], void, undefined> {
  const aside = openIfExists(`${path}.1`);
  if (aside) yield readToEnd(aside);
  let log = openIfExists(path);
  if (onWait && log) yield readNewLines(log);
  onWait?.();
  while (onWait) {
    if (log) yield readNewLines(log);
    // A new file is shorter than the one that was set aside.
    if (log && findSize(path) < log.offset) {
      yield readToEnd(log);
      log = undefined;
    } else await sleep(POLL_MS);
    log ??= openIfExists(path);
  }
  if (log) yield readToEnd(log);
}

function openIfExists(path: string): TranscriptReader | undefined {
  try {
    return TranscriptReader.open(path);
  } catch (error) {
    const reason = errorReason(error);
    if (reason === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be read (${reason})`);
  }
}

function findSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function readNewLines(log: TranscriptReader): string[] {
  return Array.from(log.lines(), ({ bytes }) => bytes.toString());
}

/** A last line without a newline is one that is still being written, or that a kill has cut. */
function readToEnd(log: TranscriptReader): string[] {
  const lines = readNewLines(log);
  const last = log.unfinishedLine()?.bytes.toString() ?? [];
  log.close();
  return lines.concat(last);
}
