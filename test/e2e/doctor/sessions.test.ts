import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Patient } from '../../support/doctor.js';
import { sessionIdOf, writeSession } from '../../support/generated.js';
import { run } from '../../support/program.js';

let patient: Patient;

beforeEach(async () => {
  patient = await Patient.open();
});

afterEach(() => patient.close());

const write = (n: number) =>
  writeSession(patient.workplace.projects, {
    sessionId: sessionIdOf(n),
    cwd: patient.project,
    turns: 2,
    startsAt: Date.now() - n * 86_400_000,
  });

const AGO = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d \\(\\d+ s\\)';

describe('sessions', () => {
  test('that wait to be sent, with the reason', async () => {
    write(1);
    patient.workplace.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
    await run(['backfill', '--all'], patient.workplace.env);
    patient.workplace.server.misbehave = () => undefined;
    const message = `^${sessionIdOf(1)} since ${AGO}, 1 attempt: the server answers 418$`;
    expect(await patient.told('pending')).toEqual([
      {
        status: 'warning',
        message: expect.stringMatching(RegExp(message)),
        fix: `cc-langfuse backfill ${sessionIdOf(1)} (the next hook does so, too)`,
      },
    ]);
    expect(await patient.told('pending', { LANGFUSE_PUBLIC_KEY: 'pk-lf-another' })).toEqual([
      {
        status: 'warning',
        message: expect.stringMatching(/, for another project: the server answers 418$/),
        fix: 'set the keys and the server that it was sent with; its next hook goes on',
      },
    ]);
  });

  test('are told up to five, and how many more', async () => {
    for (let n = 1; n <= 7; n += 1) write(n);
    patient.workplace.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 400 });
    await run(['backfill', '--all'], patient.workplace.env);
    const waiting = await patient.told('pending');
    expect(waiting).toHaveLength(6);
    expect(waiting.at(-1)).toEqual({
      status: 'warning',
      message: 'and 2 sessions more',
      fix: 'cc-langfuse sessions (it lists them all)',
    });
  });

  test('of which the last that was sent is told', async () => {
    write(2);
    await run(['backfill', '--all'], patient.workplace.env);
    write(1);
    await run(['backfill', '--all'], patient.workplace.env);
    expect(await patient.told('last-export')).toEqual([
      { status: 'ok', message: expect.stringMatching(RegExp(`ago: session ${sessionIdOf(1)}, 2 turns$`)) },
    ]);
  });

  test('whose state somebody has written by hand', async () => {
    const [last_line, turn_count] = [3, 1];
    patient.writeState({
      a: { last_line, turn_count, updated: 'yesterday' },
      b: { last_line, turn_count, pending: { since: 'long ago', attempts: 1, reason: 'none' } },
      c: 'nothing',
    });
    expect(await patient.told('last-export')).toEqual([{ status: 'none', message: 'no turn has been exported yet' }]);
    expect(await patient.told('pending')).toMatchObject([{ message: expect.stringMatching(/^b since 1970-01-01/) }]);
  });
});
