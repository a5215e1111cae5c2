/** Nobody waits for a worker, so it may take its time. But it must end. */
export const WORKER_MS = 50_000;
const WORKER_KILL_MS = 58_000;

/** An exit would wait for a pending address lookup, so a worker that takes too long is killed. */
export function killInTime(): NodeJS.Timeout {
  return setTimeout(() => process.kill(process.pid, 'SIGKILL'), WORKER_KILL_MS).unref();
}
