import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { assistant, at, jsonLines, SESSION, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { fuzz } from './fuzz.js';
import { playHanging } from './hanging.js';
import { disturb } from './kills.js';
import { playQuickTurns } from './quick-turns.js';
import { numbersFrom } from './random.js';

test('hooks that are killed at random lose and duplicate nothing, even if the server fails at random', async () => {
  const figures = await disturb(60, 20_261_118);
  expect(figures).toMatchObject({
    lost: 0,
    duplicates: 0,
    imagesMissing: 0,
    left: 0,
    exitsOtherThanZero: 0,
    bytesOnStdout: 0,
  });
  expect(figures.kills).toBeGreaterThanOrEqual(60);
  expect(figures.launchersKilled).toBeGreaterThan(0);
  expect(figures.workersKilled).toBeGreaterThan(0);
  expect(figures.faults).toBeGreaterThan(0);
  expect(figures.turns).toBeGreaterThan(0);
});

test('turns that follow each other faster than their lines are written arrive once, before the session ends', async () => {
  const figures = await playQuickTurns(15, 20_261_119);
  expect(figures).toEqual({ sessions: 15, turns: expect.any(Number), missing: 0, sentAgain: 0 });
  expect(figures.turns).toBeGreaterThanOrEqual(30);
});

test('a server that hangs holds up no turn for another one', async () => {
  const figures = await playHanging(4, 20_261_119);
  expect(figures).toEqual({ sessions: 4, turns: 24, heldUp: 0, missing: 0, sentAgain: 0 });
});

test('hooks exit with 0 and print nothing if bytes of payloads and transcripts are changed at random', async () => {
  const figures = await fuzz(60, numbersFrom(20_261_118));
  expect(figures).toMatchObject({ runs: 60, exitsOtherThanZero: 0, bytesOnStdout: 0 });
  expect(figures.observations).toBeGreaterThan(60);
});

test('fifty hooks at once, 40 of them for the same session, send each observation once', async () => {
  const workplace = await Workplace.open();
  try {
    const pathOf = (session: string) => join(workplace.home, '.claude', 'projects', '-work', `${session}.jsonl`);
    const sessions = [
      SESSION,
      ...Array.from({ length: 10 }, (_, n) => `44444444-4444-4444-8444-${String(n).padStart(12, '0')}`),
    ];
    for (const session of sessions) {
      mkdirSync(dirname(pathOf(session)), { recursive: true });
      for (let n = 0; n < 3; n += 1) {
        const lines = [
          user(`q${n}`, { uuid: `${session}-u${n}`, timestamp: at(n * 10) }),
          assistant(`${session}-m${n}`, 'a', { timestamp: at(n * 10 + 1) }),
        ];
        appendFileSync(pathOf(session), jsonLines(lines));
      }
    }
    for (const session of sessions) await workplace.start({ session_id: session, transcript_path: pathOf(session) });
    const all = [...Array.from({ length: 40 }, () => SESSION), ...sessions.slice(1)];
    const hooks = all.map((session) =>
      workplace.hook({ session_id: session, transcript_path: pathOf(session), hook_event_name: 'Stop' }),
    );
    for (const { exitCode, stdout } of await Promise.all(hooks))
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
    expect(workplace.server.observations).toHaveLength(sessions.length * 6);
    expectEachSentOnce(workplace.server);
    expect(Object.keys(workplace.state).toSorted()).toEqual(sessions.toSorted());
    for (const session of sessions) expect(workplace.state[session]).toMatchObject({ lastLine: 6, turnCount: 3 });
  } finally {
    await workplace.close();
  }
});
