import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DoctorHome } from '../../support/doctor.js';
import { sessionIdOf, writeSession } from '../../support/generated.js';

let home: DoctorHome;

beforeEach(async () => {
  home = await DoctorHome.open();
});

afterEach(() => home.close());

test.each([
  [
    '2.1.97',
    'warning',
    `2.1.97, according to the last session (${sessionIdOf(1)}): versions up to 2.1.97 record too few output tokens of some answers`,
  ],
  ['2.1.98', 'ok', `2.1.98, according to the last session (${sessionIdOf(1)})`],
])('a session of Claude Code %s is: %s', async (version, status, message) => {
  const session = { sessionId: sessionIdOf(1), cwd: '/x', turns: 1, startsAt: 0 };
  const path = writeSession(home.projects, session);
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll('2.1.326', version));
  const fix = status === 'warning' ? { fix: 'claude update' } : {};
  expect((await home.check()).of('claude-code')).toEqual([{ status, message, ...fix }]);
});
