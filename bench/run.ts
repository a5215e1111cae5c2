import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Workplace } from '../test/support/program.js';
import { recording, transcriptsOf } from '../test/support/recording.js';
import { type Case, measure, median } from './measure.js';

const isShort = process.argv.includes('--short');
const RUNS = isShort ? 7 : 20;
const PROGRAM = new URL('../dist/cli.cjs', import.meta.url).pathname;
const BARE = 'bare node';

const workplace = await Workplace.open();
try {
  const [source = ''] = transcriptsOf(recording('p-toolloop'));
  const transcript = join(workplace.home, basename(source));
  cpSync(source, transcript);
  const stdin = JSON.stringify({
    session_id: basename(source, '.jsonl'),
    transcript_path: transcript,
    hook_event_name: 'Stop',
    last_assistant_message: 'All done with the tool loop.',
  });
  const forget = () => rmSync(workplace.stateFolder, { recursive: true, force: true });
  const hook: Case = { name: 'hook, one turn', args: [PROGRAM, 'hook'], env: workplace.env, stdin, prepare: forget };
  const off: Case = { name: 'hook, tracing off', args: [PROGRAM, 'hook'], stdin };
  const terminal: Case = {
    ...hook,
    name: 'hook, in the terminal',
    env: { ...workplace.env, CLAUDE_CODE_ENTRYPOINT: 'cli', LANGFUSE_PUBLIC_KEY: undefined },
  };
  const times = await measure([{ name: BARE, args: ['-e', '0'] }, off, terminal, hook], RUNS);
  report(times);
} finally {
  await workplace.close();
}

function report(times: Map<string, number[]>): void {
  const bare = median(times.get(BARE) ?? []);
  const rows = [...times].map(([name, values]) => ({ name, medianMs: median(values), ratio: median(values) / bare }));
  for (const { name, medianMs, ratio } of rows) {
    process.stdout.write(
      `${name.padEnd(24)} ${medianMs.toFixed(1).padStart(7)} ms  ${ratio.toFixed(2).padStart(5)} ×\n`,
    );
  }
  process.stdout.write(`medians of ${RUNS}, by turns\n`);
  const folder = new URL('.', import.meta.url).pathname;
  writeFileSync(join(folder, 'results.json'), `${JSON.stringify({ runs: RUNS, rows }, null, 2)}\n`);
}
