import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { attempt } from '../../src/shared/attempt.js';

const POLL_MS = 10;
const LONGEST_POLL_MS = 100;

/**
 * The processes that have a home in their environment, the oldest first: all that was started in it, and what that has started,
 * from the moment on at which it was. Only Linux tells.
 */
export function findProcesses(home: string): number[] {
  const belongs = new Map<number, boolean>();
  // One that ends meanwhile may have started another one, which the first list does not have.
  for (let fresh = listProcesses(); fresh.length > 0; fresh = listProcesses().filter((pid) => !belongs.has(pid)))
    for (const pid of fresh) {
      const isOurs = belongsTo(home, pid);
      if (isOurs !== undefined) belongs.set(pid, isOurs);
    }
  return [...belongs].flatMap(([pid, isOurs]) => (isOurs ? [pid] : [])).toSorted((a, b) => a - b);
}

function listProcesses(): number[] {
  const names = attempt(() => readdirSync('/proc')) ?? [];
  return names.filter((name) => /^\d+$/.test(name)).map(Number);
}

/** Undefined while another program takes the place of its own: until then it has neither an environment nor arguments. */
function belongsTo(home: string, pid: number): boolean | undefined {
  const read = (name: string) => attempt(() => readFileSync(`/proc/${pid}/${name}`, 'latin1'));
  // Threads of the kernel, and processes that have ended, have no program.
  const hasProgram = () => attempt(() => readlinkSync(`/proc/${pid}/exe`)) !== undefined;
  let environment = read('environ');
  if (environment === '') {
    if (read('cmdline') === '' && hasProgram()) return undefined;
    environment = read('environ');
  }
  // The launcher may hold HOME back, under another name.
  return environment?.split('\0').some((variable) => variable.endsWith(`=${home}`)) ?? false;
}

/** Waits until no process of a home runs. Each look takes the time of others, so a long wait has few. */
export async function waitForProcesses(home: string): Promise<void> {
  for (let pause = POLL_MS; findProcesses(home).length > 0; pause = Math.min(2 * pause, LONGEST_POLL_MS))
    await sleep(pause);
}

/** Kills all processes of a home, those too that they start meanwhile. */
export async function killProcesses(home: string): Promise<void> {
  for (let found = findProcesses(home); found.length > 0; found = findProcesses(home)) {
    for (const pid of found) kill(pid);
    await sleep(POLL_MS);
  }
}

/** Returns false if it has just ended. */
export function kill(pid: number): boolean {
  return attempt(() => process.kill(pid, 'SIGKILL')) ?? false;
}
