import { mkdtempSync, rmSync, statSync, readFileSync, existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sessionIdOf, writeSession } from '../test/support/generated.js';
import { time, measureUsage } from './measure.js';
import { startSink } from './sink.js';
import { environment } from './hook-bench.js';
const program = process.argv[2] ?? '';
const what = process.argv[3] ?? 'calls';
const sink = await startSink();
const home = mkdtempSync(join(tmpdir(), 'cc-bench-'));
const s = { sessionId: sessionIdOf(1), cwd: '/home/dev/bench', startsAt: Date.now() - 2 * 86_400_000, turns: 1 };
const path = writeSession(join(home, '.claude', 'projects'), what === 'calls' ? { ...s, callsPerTurn: 50_000 } : { ...s, callsPerTurn: 6_000, resultChars: 10_000, requestChars: 1_500 });
console.log(what, 'bytes', statSync(path).size);
const payload = { session_id: s.sessionId, transcript_path: path, hook_event_name: 'SessionEnd' };
const state = join(home, '.claude', 'state');
const hook = (ms: string) => ({ name: 'hook', args: [program, 'hook'], env: { ...environment(home, sink.url), CC_LANGFUSE_TIMEOUT: ms }, stdin: JSON.stringify(payload) });
for (const mode of (process.argv[4] ?? 'hook,backfill,runs').split(',')) {
  rmSync(state, { recursive: true, force: true });
  if (mode === 'hook') { const t = performance.now(); console.log('hook', (await measureUsage(hook('600000'))).rssMB, 'MB', Math.round(performance.now() - t), 'ms');
    console.log('again', (await measureUsage(hook('600000'))).rssMB, 'MB'); }
  if (mode === 'backfill') { const t = performance.now(); console.log('backfill', (await measureUsage({ name: 'b', args: [program, 'backfill', '--yes', path, '--include-open', '--quiet'], env: environment(home, sink.url) })).rssMB, 'MB', Math.round(performance.now() - t), 'ms'); }
  if (mode === 'runs') {
    for (let run = 1; run <= 14; run += 1) {
      const before = sink.bytes();
      const u = await measureUsage(hook('4000'));
      const f = join(state, 'cc-langfuse_parts'); 
      const at = existsSync(f) ? readdirSync(f).map((n) => { const j = JSON.parse(readFileSync(join(f, n), 'utf8')); return `${statSync(join(f, n)).size} bytes, line ${j.checkpoints.map((c: any) => c.point.to.line)}`; }).join() : '-';
      const st = readFileSync(join(state, 'cc-langfuse_state.json'), 'utf8');
      console.log('run', run, sink.bytes() - before, 'bytes sent', Math.round(u.rssMB), 'MB', at, /"sent_line":\d+/.exec(st)?.[0], /"reason":"[^"]*"/.exec(st)?.[0]);
      if (!/"pending"/.test(st)) break;
    }
  }
}
sink.stop(); rmSync(home, { recursive: true, force: true });
