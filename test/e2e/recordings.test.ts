import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { StoredObservation } from '../support/langfuse-server.js';
import { type Ended, Workplace } from '../support/program.js';
import { play, recordings } from '../support/recording.js';
import { describeTraces } from '../support/traces.js';

describe('the built hook, called as it was when the session was recorded', () => {
  test.concurrent.each(recordings())('$name', async (recording) => {
    const workplace = await Workplace.open();
    try {
      const runs: Ended[] = [];
      const answersMissedByTheirStop: string[] = [];
      await play(recording, workplace.home, async ({ payload, awaited }) => {
        runs.push(await workplace.hook(payload));
        const has = workplace.server.observations.some((observation) => isOf(awaited, observation));
        if (awaited !== undefined && !has) answersMissedByTheirStop.push(awaited);
      });
      const { observations, arrivals, lost } = workplace.server;
      expect(describeTraces(observations)).toBe(readFileSync(join(recording.folder, 'expected.json'), 'utf8'));
      expect(answersMissedByTheirStop).toEqual([]);
      expect(runs.map(({ exitCode, stdout, stderr }) => ({ exitCode, stdout, stderr }))).toEqual(
        runs.map(() => ({ exitCode: 0, stdout: '', stderr: '' })),
      );
      const sentAgain = observations.filter(
        // Of a turn that went on the root comes again, and of a compaction the event, once its cost is told.
        ({ traceId, id, startTime, parentId, name }) =>
          parentId !== undefined &&
          (arrivals.get(`${traceId} ${id} ${startTime}`) ?? 0) > (name === 'compaction' ? 2 : 1),
      );
      expect(sentAgain).toEqual([]);
      expect({ lost, log: workplace.log }).toEqual({ lost: 0, log: [] });
    } finally {
      await workplace.close();
    }
  });
});

function isOf(messageId: string | undefined, { metadata }: StoredObservation): boolean {
  return metadata.message_id === messageId;
}
