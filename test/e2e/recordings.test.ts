import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Ended, run, Workplace } from '../support/program.js';
import { play, recordings } from '../support/recording.js';
import { describeTraces } from '../support/traces.js';

/** If a call of one process runs when a turn of another one is sent, it is sent then, and again with its result. */
const CALLS_THAT_RUN_AT_ANOTHER_STOP: { readonly [recording: string]: readonly string[] } = {
  'q-twop': ['tool Bash'],
};

/** When its session ended, an agent was sent as it was then, with the call that it waited for. It went on in the next session. */
const WENT_ON: { readonly [name: string]: readonly string[] } = {
  'q-branchbg': ['tool Bash', 'agent general-purpose: Long one'],
  'q-clearbg': ['tool Bash', 'agent general-purpose: Long one'],
};

describe('the built hook, called as when the session was recorded,', () => {
  let awaitedAnswers = 0;

  test.concurrent.each(recordings())('sends the observations in expected.json: $name', async (recording) => {
    const workplace = await Workplace.open();
    try {
      const runs: Ended[] = [];
      const answersMissedByTheirStop: string[] = [];
      await play(recording, workplace.home, async ({ payload, awaited }) => {
        runs.push(await workplace.hook(payload));
        if (awaited === undefined) return;
        awaitedAnswers += 1;
        const hasArrived = workplace.server.observations.some(({ metadata }) => metadata.message_id === awaited);
        if (!hasArrived) answersMissedByTheirStop.push(awaited);
      });
      const { observations, lost } = workplace.server;
      expect(describeTraces(observations)).toBe(readFileSync(join(recording.folder, 'expected.json'), 'utf8'));
      expect(answersMissedByTheirStop).toEqual([]);
      expect(runs.map(({ exitCode, stdout, stderr }) => ({ exitCode, stdout, stderr }))).toEqual(
        runs.map(() => ({ exitCode: 0, stdout: '', stderr: '' })),
      );
      const sentAgain = observations.filter(
        // The root of a turn that went on is sent again, and so is a compaction once its cost is known.
        (each) =>
          each.parentId !== undefined && workplace.server.timesSent(each) > (each.name === 'compaction' ? 2 : 1),
      );
      const expectedAgain = [
        ...(CALLS_THAT_RUN_AT_ANOTHER_STOP[recording.name] ?? []),
        ...(WENT_ON[recording.name] ?? []),
      ];
      expect(sentAgain.map(({ type, name }) => `${type} ${name}`)).toEqual(expectedAgain);
      expect(workplace.server.repeated).toEqual([]);
      expect({ lost, log: workplace.log }).toEqual({ lost: 0, log: [] });
      const { exitCode, stdout } = await run(['verify', '--all', '--json'], workplace.env);
      expect(exitCode).toBe(0);
      // Whether an agent that went on is done, its first session knows only later.
      const { sessions } = JSON.parse(stdout) as { sessions: { others: number }[] };
      if (!(recording.name in WENT_ON)) expect(sessions.filter(({ others }) => others > 0)).toEqual([]);
    } finally {
      await workplace.close();
    }
  });

  test('waits in 154 of all these calls for an answer that is not in the transcript yet', () => {
    expect(awaitedAnswers).toBe(154);
  });
});
