import { readdirSync, rmSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stateFolder } from '../../config/claude-folder.js';
import type { OwnVariables } from '../../config/own-variables.lazy.js';
import { readSettings } from '../../config/settings.js';
import { fingerprint } from '../../langfuse/endpoint.js';
import { attempt } from '../../shared/attempt.js';
import { isRunning } from '../../state/lock.js';
import type { How } from './hook.lazy.js';
import { readEvents } from './passed-events.js';
import { parsePayload } from './payload.js';
import { findDeadline } from './server-health.js';
import { killInTime, WORKER_MS } from './worker-time.js';

/** The pipes that hook.sh has opened: it writes events into one, and waits at the other one until the last event is exported. */
const EVENTS = 3;
const ANSWERS = 4;
/** More would only fill the memory. In further runs each event starts a worker. */
const STANDBYS_AT_ONCE = 4;
/** An application can keep a session open for days. */
const IDLE_MS = 10 * 60_000;
const POLL_MS = 2_000;
/** A launcher may have found the pipes just before they were removed. */
const LAST_EVENT_MS = 100;

type ReadOwnVariables = (env: NodeJS.ProcessEnv) => Promise<OwnVariables>;

/**
 * Handles the SessionStart on stdin as any worker does, then the later events of the run, each with its own environment, until the
 * last one has been handled or Claude Code is gone. `pipes` is their path without the endings.
 */
export async function standBy(pipes: string, start: How, readOwnVariables: ReadOwnVariables): Promise<void> {
  const { hook } = await import('./hook.lazy.js');
  let usedAt = Date.now();
  let work = Promise.resolve();
  const handle = (env: NodeJS.ProcessEnv, how: How) => {
    work = work.then(async () => {
      const killer = killInTime();
      await hook(await readOwnVariables(env), how);
      clearTimeout(killer);
      usedAt = Date.now();
    });
    return work;
  };
  void handle(process.env, start);
  await new Promise<void>((leave) => {
    readEvents(EVENTS, ({ env, payload }) => {
      const readPayload = () => Promise.resolve(payload);
      // If it is not a payload, this ends the process, and the launcher starts another one.
      const isLast = parsePayload(payload).hook_event_name === 'SessionEnd';
      if (!isLast) return handle(env, { worker: { forMs: WORKER_MS }, readPayload });
      void releaseInTime(env, readOwnVariables);
      return handle(env, { readPayload, onExported: release }).then(release).then(leave);
    });
    const isNeeded = () => isRunning(findClaude(pipes)) && Date.now() - usedAt < IDLE_MS;
    setInterval(() => isNeeded() || leave(), POLL_MS);
    if (!isNeeded() || countStandbys(dirname(pipes)) > STANDBYS_AT_ONCE) leave();
  });
  removePipes(pipes);
  await sleep(LAST_EVENT_MS);
  await work;
}

/** Lets the launcher, for which Claude Code waits, end. */
function release(): void {
  attempt(() => writeSync(ANSWERS, 'done\n'));
}

/** Claude Code waits no longer than for a process of its own, even if events that came before take longer. */
async function releaseInTime(passed: NodeJS.ProcessEnv, readOwnVariables: ReadOwnVariables): Promise<void> {
  const startedAt = Date.now();
  const { env } = await readOwnVariables(passed);
  const settings = await readSettings(env);
  const deadline = startedAt + settings.timeoutMs;
  const timing = { folder: stateFolder(env), startedAt, deadline, worker: undefined, settings };
  const until = settings.destination ? findDeadline(timing, fingerprint(settings.destination)) : deadline;
  setTimeout(release, until - Date.now());
}

/** The name of a pipe is the session, the process of Claude Code, and the ending. */
function findClaude(pipes: string): number {
  return Number(basename(pipes).split('.')[1]);
}

function removePipes(pipes: string): void {
  for (const ending of ['in', 'out']) attempt(() => rmSync(`${pipes}.${ending}`));
}

/** Counts the runs that have such a process. Removes what is left of those that were killed. */
function countStandbys(folder: string): number {
  const names = attempt(() => readdirSync(folder)) ?? [];
  const pipes = new Set(names.map((name) => join(folder, name.replace(/\.(?:in|out)$/, ''))));
  const dead = [...pipes].filter((each) => !isRunning(findClaude(each)));
  for (const each of dead) removePipes(each);
  return pipes.size - dead.length;
}
