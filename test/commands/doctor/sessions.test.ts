import { afterEach, beforeEach, expect, test } from 'vitest';
import { DoctorHome } from '../../support/doctor.js';
import { sessionIdOf } from '../../support/generated.js';

let home: DoctorHome;

beforeEach(async () => {
  home = await DoctorHome.open();
});

afterEach(() => home.close());

const [last_line, turn_count] = [3, 1];

test('of many waiting sessions the five that failed last are named, and the others are counted', async () => {
  const pending = (hour: number) => ({ since: `2026-10-01T0${hour}:00:00Z`, attempts: 2, reason: 'HTTP 400' });
  home.writeState(
    Object.fromEntries(
      [4, 1, 7, 2, 6, 3, 5].map((n) => [sessionIdOf(n), { last_line, turn_count, pending: pending(n) }]),
    ),
  );
  const found = (await home.check()).of('pending');
  expect(found.map(({ message }) => message.split(' ')[0])).toEqual([...[7, 6, 5, 4, 3].map(sessionIdOf), 'and']);
  expect(found.at(-1)).toEqual({
    status: 'warning',
    message: 'and 2 more',
    fix: 'cc-langfuse sessions --limit all (lists them all)',
  });
});

test('the session that was exported last is named', async () => {
  const updated = (hour: number) => ({ last_line, turn_count, updated: `2026-10-01T0${hour}:00:00.000Z` });
  const pending = { since: '2026-10-01T09:00:00Z', attempts: 1, reason: 'HTTP 400' };
  home.writeState({ a: updated(1), b: { ...updated(3), turn_count: 2 }, c: updated(2), d: { ...updated(4), pending } });
  expect((await home.check()).of('last-export')).toEqual([
    { status: 'ok', message: expect.stringMatching(/^2026-10-01 .* ago: session b, 2 turns$/) },
  ]);
});

test('a state that someone wrote by hand is read as far as it makes sense', async () => {
  home.writeState({
    a: { last_line, turn_count, updated: 'yesterday' },
    b: { last_line, turn_count, pending: { since: 'long ago', attempts: 1, reason: 'none' } },
    c: '[]',
  });
  const found = await home.check();
  expect(found.of('last-export')).toEqual([{ status: 'none', message: 'no turn has been exported yet' }]);
  expect(found.of('pending')).toMatchObject([{ message: expect.stringMatching(/^b since 1970-01-01/) }]);
});
