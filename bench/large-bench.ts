import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sessionIdOf, writeSession } from '../test/support/generated.js';
import { appendTurn, assistant, jsonLines, user } from '../test/support/lines.js';
import { environment, PROGRAM } from './hook-bench.js';
import { type Case, measureUsage, timeCases } from './measure.js';
import type { Sink } from './sink.js';

const SESSION = sessionIdOf(1);

/** Writes a session and returns the path of its transcript. */
type Write = (projects: string) => string;

/** Compares a session with one of half the size, and measures the memory of the larger. */
export async function benchHalves(sink: Sink, runs: number, writeOf: (count: number) => Write, count: number) {
  const [whole, half] = [prepareExport(sink, writeOf(count)), prepareExport(sink, writeOf(count / 2))];
  try {
    const times = await timeCases({ whole: whole.hook, half: half.hook }, runs);
    return { ...times, rssMB: (await measureUsage(whole.hook)).rssMB };
  } finally {
    for (const { home } of [whole, half]) rmSync(home, { recursive: true, force: true });
  }
}

/** Compares a session that has a line of so many MB with the same session without it. */
export async function benchLongLine(sink: Sink, runs: number, megabytes: number) {
  const writeTurns = (hole: number) => (projects: string) => {
    const path = join(projects, '-home-dev-bench', `${SESSION}.jsonl`);
    appendTurn(path, 1);
    // A hole takes no space on the disk.
    truncateSync(path, statSync(path).size + hole);
    if (hole > 0) appendFileSync(path, '\n');
    appendTurn(path, 2);
    return path;
  };
  const [long, short] = [prepareExport(sink, writeTurns(megabytes * 1_000_000)), prepareExport(sink, writeTurns(0))];
  try {
    const times = await timeCases({ long: long.hook, short: short.hook }, runs);
    return { ...times, rssMB: (await measureUsage(long.hook)).rssMB };
  } finally {
    for (const { home } of [long, short]) rmSync(home, { recursive: true, force: true });
  }
}

/** Writes a session with one turn of so many calls. */
export function writeCalls(calls: number): Write {
  return (projects) =>
    writeSession(projects, {
      sessionId: SESSION,
      cwd: '/home/dev/bench',
      startsAt: Date.now() - 2 * 86_400_000,
      turns: 1,
      callsPerTurn: calls,
    });
}

/** Writes a session with one turn in which each call starts an agent. */
export function writeAgents(agents: number): Write {
  return (projects) => {
    const path = writeCalls(agents)(projects);
    const folder = join(path.replace(/\.jsonl$/, ''), 'subagents');
    mkdirSync(folder, { recursive: true });
    const calls = [...readFileSync(path, 'utf8').matchAll(/"tool_use_id":"([^"]+)"/g)].map(([, call]) => call);
    for (const [n, toolUseId] of calls.entries()) {
      const own = { isSidechain: true, agentId: `a${n}`, timestamp: new Date().toISOString() };
      const lines = [user(`do ${n}`, { ...own, uuid: `a${n}` }), assistant(`a${n}-m`, `done ${n}`, own)];
      writeFileSync(join(folder, `agent-a${n}.jsonl`), jsonLines(lines));
      writeFileSync(join(folder, `agent-a${n}.meta.json`), JSON.stringify({ agentType: 'Explore', toolUseId }));
    }
    return path;
  };
}

function prepareExport(sink: Sink, write: Write): { readonly home: string; readonly hook: Case } {
  const home = mkdtempSync(join(tmpdir(), 'cc-langfuse-bench-'));
  const transcript = write(join(home, '.claude', 'projects'));
  const payload = { session_id: SESSION, transcript_path: transcript, hook_event_name: 'SessionEnd' };
  const hook: Case = {
    name: `export of ${statSync(transcript).size} bytes`,
    args: [PROGRAM, 'hook'],
    env: environment(home, sink.url),
    stdin: JSON.stringify(payload),
    prepare: () => rmSync(join(home, '.claude', 'state'), { recursive: true, force: true }),
  };
  return { home, hook };
}
