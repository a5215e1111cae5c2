import { expect, test } from 'vitest';
import { groupBy } from '../../src/shared/group-by.js';
import { Exporter } from '../support/exporter.js';
import type { StoredObservation } from '../support/langfuse-server.js';
import { readTranscript } from '../support/langfuse-transcript.js';
import { appendLines, assistant, at, SESSION, toolResult, toolUse, user } from '../support/lines.js';
import { recordings, transcriptsOf } from '../support/recording.js';

const IN_TURNS = { CC_LANGFUSE_INPUT: 'turn' };
/** Parts of a turn are sent at every response after which something is settled. */
const SMALLEST_PARTS = { partBytes: 0 };
const NO_PARTS = { partBytes: Number.POSITIVE_INFINITY };

async function withExporters(count: number, use: (exporters: Exporter[]) => Promise<void>): Promise<void> {
  const exporters = await Promise.all(Array.from({ length: count }, () => Exporter.open()));
  try {
    await use(exporters);
  } finally {
    await Promise.all(exporters.map((exporter) => exporter.close()));
  }
}

const inputsOf = ({ server }: Exporter) =>
  new Map(server.observations.filter(({ type }) => type === 'generation').map(({ id, input }) => [id, input]));

/** A generation with messages belongs to the turn or agent that it is below. */
function listSpeakers(trace: readonly StoredObservation[]): Set<string | undefined> {
  const speaking = trace.filter(({ type, input, output }) => type === 'generation' && (input ?? output) !== undefined);
  return new Set(speaking.map(({ parentId }) => parentId));
}

test.each(recordings())(
  'each turn and agent of $name is one conversation for Langfuse, in however many parts it is sent',
  async (recording) =>
    withExporters(2, async ([whole, inParts]) => {
      if (!whole || !inParts) return;
      for (const path of transcriptsOf(recording)) {
        await whole.export(path, IN_TURNS, {}, NO_PARTS);
        await inParts.export(path, IN_TURNS, {}, SMALLEST_PARTS);
      }
      expect(inputsOf(inParts)).toEqual(inputsOf(whole));
      for (const trace of groupBy(whole.server.observations, ({ traceId }) => traceId).values())
        expect(readTranscript(trace)).toHaveLength(listSpeakers(trace).size);
    }),
);

test('a long turn that several runs read one after the other has the same inputs', async () =>
  withExporters(2, async ([whole, inRuns]) => {
    if (!whole || !inRuns) return;
    const steps = Array.from({ length: 8 }, (_, n) => [
      assistant(`m${n}`, [toolUse(`t${n}`)], { timestamp: at(2 * n + 1) }),
      user([toolResult(`t${n}`, `result ${n}`)], { timestamp: at(2 * n + 2) }),
    ]).flat();
    const lines = [
      user('go', { uuid: 'u', timestamp: at(0) }),
      ...steps,
      assistant('end', 'done', { timestamp: at(30) }),
    ];
    const path = (exporter: Exporter) => `${exporter.folder}/${SESSION}.jsonl`;
    appendLines(path(whole), ...lines);
    await whole.export(path(whole), IN_TURNS, {}, NO_PARTS);
    for (const [place, line] of lines.entries()) {
      appendLines(path(inRuns), line);
      if (place % 3 === 2 || place === lines.length - 1)
        await inRuns.export(path(inRuns), IN_TURNS, {}, SMALLEST_PARTS);
    }
    expect(inputsOf(inRuns)).toEqual(inputsOf(whole));
    expect(readTranscript(inRuns.server.observations)).toHaveLength(1);
    expect(inRuns.server.repeated).toEqual([]);
  }));
