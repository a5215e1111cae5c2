import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { buildAbsoluteCommands } from '../src/commands/setup/program-path.js';
import { AS_RECORDED, sessionIdOf, writeSession } from '../test/support/generated.js';
import { removeFolder } from '../test/support/remove-folder.js';
import { alternate, type Case, measureUsage, median, time, timeCases } from './measure.js';
import type { Sink } from './sink.js';

export const PROGRAM = new URL('../dist/cli.cjs', import.meta.url).pathname;
const baseline = (name: string) => new URL(`baselines/${name}.cjs`, import.meta.url).pathname;

/** The smallest thing that Node can do. */
export const BARE_NODE: Case = { name: 'bare node', args: ['-e', '0'] };

const SESSION = sessionIdOf(1);
const CWD = '/home/dev/bench';

export function environment(home: string, url: string) {
  return {
    HOME: home,
    TRACE_TO_LANGFUSE: 'true',
    LANGFUSE_PUBLIC_KEY: 'pk-lf-embedded',
    LANGFUSE_SECRET_KEY: 'sk-lf-embedded',
    LANGFUSE_BASE_URL: url,
    CC_LANGFUSE_TIMEOUT: '600000',
  };
}

/** A session of which all but the last turns have been exported. */
interface Prepared {
  readonly home: string;
  readonly transcript: string;
  /** The folder of its state, and a copy of it from before the hook. */
  readonly stateFolder: string;
  readonly before: string;
  readonly hook: Case;
  readonly remove: () => void;
}

/** Prepares a transcript of so many MB whose last turns, of four responses each, are new. */
export async function prepare(sink: Sink, megabytes: number, newTurns = 1): Promise<Prepared> {
  const home = mkdtempSync(join(tmpdir(), 'cc-langfuse-bench-'));
  const projects = join(home, '.claude', 'projects');
  const startsAt = Date.now() - 86_400_000;
  const common = { sessionId: SESSION, cwd: CWD, startsAt, callsPerTurn: 3 };
  const perTurn = 62_000;
  const large = Math.floor((megabytes * 1_000_000) / perTurn);
  const transcript = writeSession(projects, { ...common, turns: large, ...AS_RECORDED });
  const writePart = (firstTurn: number, turns: number) => {
    const path = writeSession(join(home, 'parts'), {
      ...common,
      firstTurn,
      turns,
      startsAt: startsAt + firstTurn * 60_000,
    });
    return readFileSync(path);
  };
  appendFileSync(transcript, writePart(large + 1, 3));
  const env = environment(home, sink.url);
  await time({
    name: 'preparation',
    args: [PROGRAM, 'backfill', '--yes', transcript, '--include-open', '--quiet'],
    env,
  });
  const stateFolder = join(home, '.claude', 'state');
  const before = join(home, 'state-before');
  cpSync(stateFolder, before, { recursive: true });
  appendFileSync(transcript, writePart(large + 4, newTurns));
  const hook: Case = {
    name: `hook, ${newTurns} turns of ${megabytes} MB`,
    args: [PROGRAM, 'hook'],
    env,
    stdin: JSON.stringify({
      session_id: SESSION,
      transcript_path: transcript,
      hook_event_name: 'Stop',
      last_assistant_message: `answer ${large + 3 + newTurns}`,
    }),
    prepare: () => cpSync(before, stateFolder, { recursive: true }),
  };
  return { home, transcript, stateFolder, before, hook, remove: () => rmSync(home, { recursive: true, force: true }) };
}

/** Returns the same hook with so many other sessions in its state, of which nothing is left to be sent. */
export function withOtherSessions({ home, before, hook }: Prepared, count: number): Case {
  const folder = join(home, `state-${count}`);
  cpSync(before, folder, { recursive: true });
  const own = join(folder, 'cc-langfuse_sessions', SESSION);
  for (let n = 2; n < count + 2; n += 1) cpSync(own, join(dirname(own), sessionIdOf(n)), { recursive: true });
  return {
    ...hook,
    name: `${hook.name}, ${count} sessions`,
    env: { ...hook.env, CC_LANGFUSE_STATE_DIR: folder },
    prepare: () => cpSync(before, folder, { recursive: true }),
  };
}

/** Returns the smallest program that reads the same bytes and sends the same bytes. */
export async function minimalPost({ home, hook, before, transcript }: Prepared, sink: Sink): Promise<Case> {
  await time(hook);
  const body = join(home, 'body.json');
  writeFileSync(body, gunzipSync(sink.lastBody()));
  const session = join(before, 'cc-langfuse_sessions', SESSION);
  const progress = readdirSync(session).find((name) => name !== 'session.json' && name.endsWith('.json')) ?? '';
  const { offset } = JSON.parse(readFileSync(join(session, progress), 'utf8'));
  const url = `${sink.url}/api/public/otel/v1/traces`;
  return {
    name: 'minimal post',
    args: [baseline('post'), transcript, String(offset), body, url],
    stdin: hook.stdin ?? '',
  };
}

/** Compares what Claude Code waits for at each event, with the hooks as `install` registers them, with a bare start of Node. */
export async function benchLauncher(runs: number) {
  const home = mkdtempSync(join(tmpdir(), 'cc-langfuse-bench-'));
  mkdirSync(join(home, '.claude'));
  const inTerminal = { ...environment(home, 'http://127.0.0.1:1'), CLAUDE_CODE_ENTRYPOINT: 'cli' };
  const registered = buildAbsoluteCommands(dirname(PROGRAM), { PATH: process.env.PATH });
  const hook = (event: string, env: Case['env'] = inTerminal): Case => ({
    name: event,
    program: '/bin/sh',
    args: ['-c', registered(event).command],
    env: env ?? {},
    stdin: JSON.stringify({ session_id: SESSION, transcript_path: '/none.jsonl', hook_event_name: event }),
  });
  try {
    // The worker must have ended before the next case is timed, also on a busy machine.
    const restMs = Math.max(400, 8 * (await time(BARE_NODE)));
    return await timeCases(
      {
        bare: BARE_NODE,
        off: hook('Stop', { ...inTerminal, TRACE_TO_LANGFUSE: 'false' }),
        start: hook('SessionStart'),
        stop: hook('Stop'),
        headless: hook('Stop', { ...inTerminal, CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' }),
      },
      runs,
      restMs,
    );
  } finally {
    await removeFolder(home);
  }
}

/** Measures how long after Stop the server gets the first byte, with the start of Node, if the answer is in the file already. */
export async function benchArrival({ hook }: Prepared, sink: Sink, runs: number) {
  const stop: Case = {
    ...hook,
    name: 'Stop in the terminal',
    program: '/bin/sh',
    args: ['-c', buildAbsoluteCommands(dirname(PROGRAM), { PATH: process.env.PATH })('Stop').command],
    env: { ...hook.env, CLAUDE_CODE_ENTRYPOINT: 'cli' },
  };
  // The worker must have ended before the next run is timed.
  const restMs = Math.max(400, 8 * (await time(BARE_NODE)));
  const arrive = async () => {
    const arrival = sink.nextRequest();
    const startedAt = performance.now();
    const ended = time(stop);
    const delay = (await arrival) - startedAt;
    await ended;
    return delay;
  };
  return alternate({ arrive, bare: () => time(BARE_NODE) }, runs, restMs);
}

/** Measures how long after the answer is written the server gets the first byte, and how much CPU the wait uses. */
export async function benchWait({ hook, transcript }: Prepared, sink: Sink, runs: number) {
  const whole = readFileSync(transcript);
  const lastLine = whole.subarray(whole.lastIndexOf(0x0a, whole.length - 2) + 1);
  const without = statSync(transcript).size - lastLine.length;
  const delays: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    truncateSync(transcript, without);
    const ended = time(hook);
    await sleep(600 + run * 3);
    const arrival = sink.nextRequest();
    const writtenAt = performance.now();
    appendFileSync(transcript, lastLine);
    delays.push((await arrival) - writtenAt);
    await ended;
  }
  const withAnswer = await measureUsage(hook);
  truncateSync(transcript, without);
  const withoutAnswer = await measureUsage(hook);
  appendFileSync(transcript, lastLine);
  return { delayMs: median(delays), cpuShare: (withoutAnswer.cpuMs - withAnswer.cpuMs) / 2_000 };
}
