import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Workplace } from '../support/program.js';
import { recordings, transcriptsOf } from '../support/recording.js';

interface FuzzFigures {
  readonly runs: number;
  readonly exitsOtherThanZero: number;
  readonly bytesOnStdout: number;
  /** How many were sent nevertheless, which shows that not every run failed at its start. */
  readonly observations: number;
  readonly slowestMs: number;
}

/** Runs the hook with payloads and transcripts whose bytes were changed at random. */
export async function fuzz(runs: number, random: () => number): Promise<FuzzFigures> {
  const figures = { runs: 0, exitsOtherThanZero: 0, bytesOnStdout: 0, observations: 0, slowestMs: 0 };
  const sources = recordings().flatMap(transcriptsOf);
  const workplace = await Workplace.open();
  try {
    for (; figures.runs < runs; figures.runs += 1) {
      const source = sources[Math.floor(random() * sources.length)] ?? '';
      const path = join(workplace.home, '.claude', 'projects', String(figures.runs), basename(source));
      const stop = { session_id: basename(source, '.jsonl'), transcript_path: path, hook_event_name: 'Stop' };
      await workplace.start(stop);
      const payload = Buffer.from(JSON.stringify(stop));
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, mutate(readFileSync(source), random));
      const { exitCode, stdout, ms } = await workplace.hook(random() < 0.3 ? mutate(payload, random) : payload);
      if (exitCode !== 0) figures.exitsOtherThanZero += 1;
      figures.bytesOnStdout += stdout.length;
      figures.slowestMs = Math.max(figures.slowestMs, Math.round(ms));
    }
    figures.observations = workplace.server.observations.length;
    return figures;
  } finally {
    await workplace.close();
  }
}

/** Changes some bytes, and removes, repeats or moves some runs of bytes. */
function mutate(bytes: Buffer, random: () => number): Buffer {
  let all = Buffer.from(bytes);
  for (let times = Math.ceil(random() * 12); times > 0 && all.length > 0; times -= 1) {
    const from = Math.floor(random() * all.length);
    const to = Math.min(all.length, from + Math.ceil(random() ** 3 * 5_000));
    const piece = all.subarray(from, to);
    const kind = random();
    if (kind < 0.5) all[from] = Math.floor(random() * 256);
    else if (kind < 0.7) all = Buffer.concat([all.subarray(0, from), all.subarray(to)]);
    else if (kind < 0.85) all = Buffer.concat([all.subarray(0, to), piece, all.subarray(to)]);
    else all = Buffer.concat([all.subarray(0, from), all.subarray(to), piece]);
  }
  return all;
}
