import { describe, expect, test } from 'vitest';
import { buildScores } from '../../../src/langfuse/scores.lazy.js';
import { buildRating, type Rating } from '../../../src/observations/build/rating.js';
import { buildTurn } from '../../../src/observations/build/turn.js';
import { createRedactor } from '../../../src/observations/redaction/redact.js';
import { assistant, at, groupTurns, ms, SESSION, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

const SIMPLE = [user('go', { uuid: 'u', timestamp: at(0) }), assistant('m', 'done', { timestamp: at(2) })];
const [TURN] = groupTurns(SIMPLE).all;
const END = ms(2);
const DAY = 86_400_000;

function rate(rating: Partial<Rating>, options: Partial<typeof OPTIONS> = {}) {
  if (!TURN) throw new Error('no turn');
  const all = { ...OPTIONS, redact: createRedactor([]), ...options, sessionId: SESSION };
  return buildRating(buildTurn(TURN, all).root, { isGood: true, comment: undefined, at: END, ...rating }, all);
}

describe('the rating of a turn', () => {
  test('is a boolean score of its trace, with the comment', () => {
    const { root } = buildTurn(TURN as NonNullable<typeof TURN>, { ...OPTIONS, sessionId: SESSION });
    expect(buildScores(rate({ isGood: false, comment: 'too long' }))).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f]{32}$/),
        traceId: root.trace.id,
        observationId: undefined,
        environment: undefined,
        name: 'user_rating',
        value: 0,
        dataType: 'BOOLEAN',
        comment: 'too long',
      },
    ]);
  });

  test('given again has the same id, and without a comment removes the earlier one', () => {
    const [bad] = buildScores(rate({ isGood: false, comment: 'too long' }));
    const [good] = buildScores(rate({}));
    expect(good).toEqual({ ...bad, value: 1, comment: '' });
  });

  test('is of the day on which the turn ended, and later if it is given later', () => {
    const times = [0, 1, 1_000, 2_500, DAY, 30 * DAY].map((passed) => rate({ at: END + passed }).endTime);
    expect(times).toEqual([END, END + 1, END + 1, END + 3, END + 86_400, END + 2_592_000]);
    expect(rate({ at: END - DAY }).endTime).toBe(END);
    expect(rate({ at: END + 3_000 * DAY }).endTime).toBe(Date.UTC(2025, 0, 16) - 60_001);
  });

  test.each([
    ['in the same millisecond', 0],
    ['by a clock that has been set back', -DAY],
    ['years later', 3_000 * DAY],
  ])('is later than the one before, but of the same day, if it is given %s', (_, passed) => {
    const first = rate({ at: END + passed }).endTime ?? 0;
    const second = rate({ at: END + passed, after: first }).endTime;
    expect(second).toBe(first + 1);
    expect(new Date(second ?? 0).toISOString().slice(0, 10)).toBe(at(2).slice(0, 10));
  });

  test('has room in its day, even if the turn ended in the last millisecond of one', () => {
    const lines = SIMPLE.map((line) => ({ ...line, timestamp: '2025-01-15T23:59:59.999Z' }));
    const all = { ...OPTIONS, sessionId: SESSION };
    const [turn] = groupTurns(lines).all;
    const { root } = buildTurn(turn as NonNullable<typeof turn>, all);
    const times = [0, Date.UTC(2025, 0, 15, 23, 58, 59, 999)].map(
      (after) => buildRating(root, { isGood: true, comment: undefined, at: root.endTime, after }, all).endTime,
    );
    expect(times).toEqual([Date.UTC(2025, 0, 15, 23, 58, 59, 999), Date.UTC(2025, 0, 15, 23, 59)]);
  });

  test('has a comment without secrets, cut as other texts are, and none if no content is sent', () => {
    const comment = 'it printed password=hunter2hunter2 again';
    expect(rate({ comment }).comment).toBe('it printed password=[redacted] again');
    expect(rate({ comment: 'abcdef' }, { maxChars: 3 }).comment).toBe('abc… [3 more characters]');
    expect(rate({ comment }, { capture: 'no_tool_io' }).comment).toBe('it printed password=[redacted] again');
    expect(rate({ comment }, { capture: 'metadata' }).comment).toBeUndefined();
  });
});
