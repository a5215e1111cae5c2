import { appendFileSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { kill } from '../support/home-processes.js';
import type { Misbehaviour, StoredObservation } from '../support/langfuse-server.js';
import { LAUNCHER, PROGRAM, Workplace } from '../support/program.js';
import { recording, transcriptsOf } from '../support/recording.js';
import { startHook } from '../support/start-hook.js';
import { StartedNodes } from '../support/started-nodes.js';
import { listWaiting } from '../support/state-files.js';
import { describeTraces } from '../support/traces.js';
import { numbersFrom } from './random.js';

interface Figures {
  readonly kills: number;
  /** Kills of launchers and of their workers among them. */
  readonly launchersKilled: number;
  readonly workersKilled: number;
  readonly faults: number;
  readonly turns: number;
  readonly lost: number;
  /** Spans that are there twice, with another start time or in another trace. */
  readonly duplicates: number;
  /** References to images that were not uploaded. */
  readonly imagesMissing: number;
  /** Events that were left to another worker and are still there in the end. */
  readonly left: number;
  /** Rows that arrived again: of turns that continued, and of requests whose answer did not arrive. */
  readonly resent: number;
  readonly exitsOtherThanZero: number;
  readonly bytesOnStdout: number;
}

const SOURCES = ['i-simple', 'i-queue', 'p-toolloop', 'h-block1', 'p-streamjson', 'i-interrupt', 'p-media'];
/** Kills come within this many times the time that a run with little to send takes. Later it has ended by itself. */
const KILLED_WITHIN_RUNS = 2;
/** On a fast machine it has ended by then. Its worker goes on, and meets the next run, unless it is killed, too. */
const LAUNCHER_KILLED_WITHIN_MS = 10;
const LONGEST_PAUSE_MS = 60;
const POLL_MS = 5;

/**
 * Exports recorded sessions while their hooks are killed at random moments and the server fails at random, and then once
 * more undisturbed. What has arrived in the end must be what one undisturbed export sends.
 */
export async function disturb(kills: number, seed: number): Promise<Figures> {
  const random = numbersFrom(seed);
  const sum = {
    kills: 0,
    launchersKilled: 0,
    workersKilled: 0,
    faults: 0,
    turns: 0,
    lost: 0,
    duplicates: 0,
    imagesMissing: 0,
    left: 0,
    resent: 0,
    exitsOtherThanZero: 0,
    bytesOnStdout: 0,
  };
  let runMs = await timeRun();
  for (let round = 0; sum.kills < kills; round += 1) {
    const source = recording(SOURCES[round % SOURCES.length] ?? '');
    const workplace = await Workplace.open();
    const nodes = new StartedNodes();
    try {
      let requests = 0;
      workplace.server.misbehave = ({ url = '' }) => {
        requests += 1;
        // If an image cannot be uploaded, a placeholder replaces it for good.
        const fault = /media|storage/.test(url) ? undefined : faultFor(random());
        if (fault) sum.faults += 1;
        return fault;
      };
      const [from = ''] = transcriptsOf(source);
      const path = join(workplace.home, '.claude', 'projects', basename(dirname(from)), basename(from));
      const payload = JSON.stringify({
        session_id: basename(from, '.jsonl'),
        transcript_path: path,
        hook_event_name: 'Stop',
      });
      mkdirSync(dirname(path), { recursive: true });
      await workplace.start(JSON.parse(payload));
      for (const part of split(readFileSync(from, 'utf8'), random)) {
        appendFileSync(path, part);
        const isLaunched = random() < 0.7;
        const [command, killAfterMs] = isLaunched
          ? [[LAUNCHER, 'Stop', nodes.path], random() < 0.5 ? random() * LAUNCHER_KILLED_WITHIN_MS : undefined]
          : [[process.execPath, PROGRAM, 'hook'], random() * KILLED_WITHIN_RUNS * runMs];
        const ended = await runAndKill(workplace.env, payload, command, killAfterMs);
        if (ended.isKilled) sum.kills += 1;
        if (ended.isKilled && isLaunched) sum.launchersKilled += 1;
        if (!ended.isKilled && ended.exitCode !== 0) sum.exitsOtherThanZero += 1;
        sum.bytesOnStdout += ended.stdoutBytes;
        // However slow the machine is, half of the workers reach the server.
        const before = requests;
        if (random() < 0.5) while (requests === before && nodes.findAlive().length > 0) await sleep(POLL_MS);
        if (random() < 0.5) await sleep(random() * LONGEST_PAUSE_MS);
        // The oldest is at work, and the newest is about to leave its event to it.
        const alive = nodes.findAlive();
        const victim = random() < 0.5 ? alive[0] : alive.at(-1);
        if (victim === undefined || random() < 0.5 || !kill(victim)) continue;
        sum.kills += 1;
        sum.workersKilled += 1;
      }
      workplace.server.misbehave = () => undefined;
      // Those too that a killed launcher has started only just now.
      await workplace.haveEnded();
      const { exitCode, stdout, ms } = await workplace.hook(payload);
      // It depends on what else the machine does at the moment.
      runMs = ms;
      if (exitCode !== 0) sum.exitsOtherThanZero += 1;
      sum.bytesOnStdout += stdout.length;
      const { observations, arrivals, media } = workplace.server;
      const expected: { observations: { id: string }[] }[] = JSON.parse(
        readFileSync(join(source.folder, 'expected.json'), 'utf8'),
      );
      const expectedIds = expected.flatMap((trace) => trace.observations.map(({ id }) => `${id}`));
      const ids = observations.map(({ id }) => id);
      sum.turns += expected.length;
      sum.lost += expectedIds.filter((id) => !ids.includes(id)).length;
      sum.duplicates += ids.length - new Set(ids).size;
      sum.imagesMissing += findReferences(observations).filter(
        (id) => media.stored.get(id)?.uploadStatus !== 200,
      ).length;
      sum.resent += [...arrivals.values()].reduce((times, one) => times + one - 1, 0);
      if (describeTraces(observations) !== readFileSync(join(source.folder, 'expected.json'), 'utf8')) sum.lost += 1;
      sum.left += countLeft(workplace);
    } finally {
      await workplace.close();
      await nodes.remove();
    }
  }
  return sum;
}

/** Returns how long a hook takes that has nothing to send. */
async function timeRun(): Promise<number> {
  const workplace = await Workplace.open();
  try {
    const payload = { session_id: 'none', transcript_path: '/none.jsonl', hook_event_name: 'SessionEnd' };
    return (await workplace.hook(payload)).ms;
  } finally {
    await workplace.close();
  }
}

function countLeft({ stateFolder }: Workplace): number {
  return listWaiting(stateFolder).length;
}

function findReferences(observations: readonly StoredObservation[]): string[] {
  return [...JSON.stringify(observations).matchAll(/@@@langfuseMedia:[^@]*\|id=([^|]+)/g)].map(([, id = '']) => id);
}

function faultFor(part: number): Misbehaviour | undefined {
  if (part < 0.1) return { status: 500 };
  if (part < 0.15) return { status: 502, body: '<html>Bad Gateway</html>' };
  if (part < 0.2) return { status: 429, headers: { 'retry-after': '0' } };
  if (part < 0.25) return { disconnect: 'before taking' };
  if (part < 0.3) return { disconnect: 'after taking' };
  // Long enough for the next event to come while a worker waits. What is stored last counts, so it is stored at once: a request
  // of a worker that was killed meanwhile must not overtake that of the next one.
  return part < 0.45 ? { answerDelayMs: part < 0.35 ? 50 : 400 } : undefined;
}

/** Splits a text at random places, also in the middle of lines. */
function split(text: string, random: () => number): string[] {
  const pieces: string[] = [];
  for (let from = 0; from < text.length; ) {
    const to = from + Math.ceil(random() * (text.length / 6));
    pieces.push(text.slice(from, to));
    from = to;
  }
  return pieces;
}

async function runAndKill(env: Workplace['env'], payload: string, command: readonly string[], afterMs?: number) {
  const { exitCode, signal, output } = await startHook(command, payload, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
    onStart: (hook) => {
      if (afterMs === undefined) return;
      const timer = setTimeout(() => hook.kill('SIGKILL'), afterMs);
      hook.on('close', () => clearTimeout(timer));
    },
  });
  return { isKilled: signal === 'SIGKILL', exitCode, stdoutBytes: output.length };
}
