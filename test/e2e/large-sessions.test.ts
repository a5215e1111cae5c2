import { appendFileSync, statSync, truncateSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendTurn, SESSION } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const transcript = () => workplace.transcriptOf(SESSION);
const names = () => workplace.server.observations.map(({ name }) => name).toSorted();

describe('a line that is longer than 32 MB', () => {
  const GENERATION = 'claude-opus-5';
  const ALL = ['Turn 1', 'Turn 2', GENERATION, GENERATION];
  const isSkipped = { level: 'warn', msg: 'skipped a line that cannot be read', line: 3 };

  beforeEach(() => {
    appendTurn(transcript(), 1);
    // A hole takes no space on the disk.
    truncateSync(transcript(), statSync(transcript()).size + (1 << 26) + 1);
    appendFileSync(transcript(), '\n');
    appendTurn(transcript(), 2);
  });

  test('is left out by the hook with a line in the log, once, and all else is sent', async () => {
    const payload = { session_id: SESSION, transcript_path: transcript(), last_assistant_message: 'answer 2' };
    await workplace.hook({ ...payload, hook_event_name: 'Stop' });
    await workplace.hook({ ...payload, hook_event_name: 'SessionEnd' });
    expect(names()).toEqual(ALL);
    expect(workplace.log).toMatchObject([{ ...isSkipped, file: transcript(), reason: 'longer than 67108864 bytes' }]);
    expectEachSentOnce(workplace.server);
  });

  test('is left out by a backfill, and the list of sessions shows its session', async () => {
    workplace.letIdle();
    const { exitCode, stdout } = await workplace.backfill('--all');
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(/^exported {2}1 session\n/) });
    expect(names()).toEqual(ALL);
    expect(workplace.log).toMatchObject([{ ...isSkipped, file: transcript() }]);
    expect((await run(['sessions'], workplace.env)).stdout).toContain('question 1');
    expectEachSentOnce(workplace.server);
  });
});
