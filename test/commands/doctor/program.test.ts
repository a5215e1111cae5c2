import { appendFileSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
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

test('what Claude Code writes and this version does not know is named and counted, without any content', async () => {
  const odd = (type: string) => `${JSON.stringify({ type, content: 'hunter2' })}\n`;
  const write = (n: number, lines: string) => {
    const startsAt = Date.now() - n * 86_400_000;
    const path = writeSession(home.projects, { sessionId: sessionIdOf(n), cwd: '/x', turns: 1, startsAt });
    appendFileSync(path, lines);
    return path;
  };
  write(1, '');
  expect((await home.check()).of('transcripts')).toEqual([]);
  write(2, odd('tea-break') + odd('my password'));
  const attachment = JSON.stringify({ parentUuid: null, attachment: { type: 'kettle', content: 'hunter2' } });
  write(3, odd('tea-break') + attachment.replace(/}$/, ',"type":"attachment","uuid":"a"}\n'));
  expect((await home.check()).of('transcripts')).toEqual([
    {
      status: 'none',
      message: 'unknown to this version: line type tea-break (2), attachment kettle (1), line type ? (1)',
    },
  ]);
});

test('for that, only the ends of the newest transcripts are read', async () => {
  for (let n = 1; n <= 21; n += 1) {
    const session = { sessionId: sessionIdOf(n), cwd: '/x', turns: 1, startsAt: Date.now() - n * 86_400_000 };
    const path = writeSession(home.projects, session);
    const early = `{"type":"early-${n}"}\n{"type":"summary","summary":"${'x'.repeat(600_000)}"}\n`;
    writeFileSync(path, `${n === 1 ? early : ''}${readFileSync(path, 'utf8')}{"type":"late-${n}"}\n`);
    const at = new Date(session.startsAt);
    utimesSync(path, at, at);
  }
  const [found] = (await home.check()).of('transcripts');
  expect(found?.message).toMatch(/line type late-1 \(1\).*and 8 more$/);
  expect(found?.message).not.toContain('early');
});
