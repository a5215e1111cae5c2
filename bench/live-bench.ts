import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { sessionIdOf } from '../test/support/generated.js';
import { removeFolder } from '../test/support/remove-folder.js';
import { environment, PROGRAM } from './hook-bench.js';
import { measureUsage, median, time } from './measure.js';

const SESSION = sessionIdOf(1);
/** A call each second is more than Claude Code makes in most hours. */
const PACE_MS = 1_000;
/** Until it has started and has sent what was there. */
const START_MS = 8_000;
/** What takes part in a step of a turn, in the proportions of long recordings. */
const [ANSWER, RESULT, SKIPPED] = ['a'.repeat(5_000), 'r'.repeat(1_500), 's'.repeat(11_000)];

interface FollowerFigures {
  readonly idleCpuShare: number;
  readonly idleRssMB: number;
  readonly busyCpuShare: number;
  readonly busyRssMB: number;
  /** The memory of the hook that sends the same turn when it is over. */
  readonly hookRssMB: number;
  readonly requestsPerMinute: number;
  readonly medianDelayMs: number;
  /** The delay that 19 of 20 calls do not exceed. */
  readonly longestDelayMs: number;
}

/**
 * Measures a follower for so many seconds in which nothing happens, and as many with a call in each. By then the turn has been
 * running for `before` hours, with a call in each second.
 */
export async function benchFollower(seconds: number, before: number): Promise<FollowerFigures> {
  const home = mkdtempSync(join(tmpdir(), 'cc-langfuse-bench-'));
  const transcript = join(home, '.claude', 'projects', '-bench', `${SESSION}.jsonl`);
  const server = await startServer();
  const env = { ...environment(home, server.url), CC_LANGFUSE_LIVE: 'true', CLAUDE_PID: `${process.pid}` };
  const payload = (event: string, more: object = {}) =>
    JSON.stringify({ session_id: SESSION, transcript_path: transcript, hook_event_name: event, ...more });
  const hook = (stdin: string) => ({
    name: 'hook',
    args: [PROGRAM, 'hook'],
    env: { ...env, CC_LANGFUSE_WAIT: '1' },
    stdin,
  });
  try {
    await time(hook(payload('SessionStart', { source: 'startup' })));
    mkdirSync(dirname(transcript), { recursive: true });
    const steps = Math.round(before * 3_600);
    const prompt = { type: 'user', uuid: 'u', timestamp: now(), message: { role: 'user', content: 'work' } };
    appendFileSync(transcript, line(prompt) + Array.from({ length: steps }, (_, n) => step(n)).join(''));
    const follower = spawn(process.execPath, [PROGRAM, 'follow'], { env: { PATH: process.env.PATH, ...env } });
    follower.stdin.end(payload('UserPromptSubmit'));
    const { pid = 0 } = follower;
    await waitUntil(() => server.arrivals.has(`call${steps - 1}`));
    await sleep(START_MS);
    const idle = await measure(pid, () => sleep(seconds * 1_000));
    const requests = server.requests();
    const written = new Map<string, number>();
    const busy = await measure(pid, async () => {
      for (let n = steps; n < steps + seconds; n += 1) {
        appendFileSync(transcript, step(n));
        written.set(`call${n}`, Date.now());
        await sleep(PACE_MS);
      }
    });
    const requestsPerMinute = ((server.requests() - requests) * 60) / seconds;
    await waitUntil(() => server.arrivals.has(`call${steps + seconds - 1}`));
    const delays = [...written].map(([id, at]) => (server.arrivals.get(id) ?? Number.NaN) - at);
    const ended = new Promise((resolve) => follower.on('close', resolve));
    follower.kill();
    await ended;
    const { rssMB } = await measureUsage({
      ...hook(payload('Stop')),
      prepare: () => removeFolder(join(home, '.claude', 'state')),
    });
    return {
      idleCpuShare: idle.cpuShare,
      idleRssMB: idle.rssMB,
      busyCpuShare: busy.cpuShare,
      busyRssMB: busy.rssMB,
      hookRssMB: rssMB,
      requestsPerMinute,
      medianDelayMs: median(delays),
      longestDelayMs: delays.toSorted((a, b) => a - b)[Math.floor(delays.length * 0.95)] ?? Number.NaN,
    };
  } finally {
    server.stop();
    await removeFolder(home);
  }
}

function now(): string {
  return new Date().toISOString();
}

function line(content: object): string {
  return `${JSON.stringify(content)}\n`;
}

/** A response with a call, the call's result, and the next request. */
function step(n: number): string {
  const block = { type: 'tool_use', id: `call${n}`, name: 'Bash', input: { command: `echo ${n}`, why: ANSWER } };
  const message = { role: 'assistant', model: 'claude-opus-5', id: `m${n}`, stop_reason: 'tool_use', content: [block] };
  const result = [{ type: 'tool_result', tool_use_id: `call${n}`, content: RESULT }];
  return [
    { type: 'assistant', uuid: `a${n}`, timestamp: now(), message },
    { type: 'user', uuid: `r${n}`, timestamp: now(), message: { role: 'user', content: result } },
    { type: 'api-request-blob', blob: SKIPPED },
    { type: 'api-request', id: `request${n}`, timestamp: now() },
  ]
    .map(line)
    .join('');
}

/** A server that knows when each call has arrived. */
async function startServer() {
  const arrivals = new Map<string, number>();
  let requests = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      requests += 1;
      const at = Date.now();
      const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(Buffer.concat(chunks)).toString() : '';
      for (const [, id = ''] of body.matchAll(/tool_id","value":\{"stringValue":"(call\d+)"/g)) arrivals.set(id, at);
      response.setHeader('content-type', 'application/json');
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, arrivals, requests: () => requests, stop: () => server.close() };
}

async function waitUntil(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(50);
}

/** Returns which share of a processor a process takes meanwhile, and the most memory that it has ever had. */
async function measure(pid: number, meanwhile: () => Promise<void>): Promise<{ cpuShare: number; rssMB: number }> {
  const read = (name: string) => readFileSync(`/proc/${pid}/${name}`, 'utf8');
  const cpuMs = () => Number(read('schedstat').split(' ')[0]) / 1e6;
  const [before, startedAt] = [cpuMs(), performance.now()];
  await meanwhile();
  const cpuShare = (cpuMs() - before) / (performance.now() - startedAt);
  return { cpuShare, rssMB: Number(/VmHWM:\s+(\d+)/.exec(read('status'))?.[1]) / 1_000 };
}
