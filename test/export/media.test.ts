import { expect, test } from 'vitest';
import { settleMedia } from '../../src/export/media-export.js';
import { buildTurn } from '../../src/observations/build/turn.js';
import { assistant, groupTurns, SESSION, user } from '../support/lines.js';
import { OPTIONS } from '../support/traces.js';

test('what refers to nothing waits for nothing to be brought', async () => {
  const [turn] = groupTurns([user('go'), assistant('m1', 'ok')]).all;
  const root = turn && buildTurn(turn, { ...OPTIONS, sessionId: SESSION }).root;
  const unwanted = () => expect.unreachable();
  for (const media of [undefined, []]) {
    const observation = root && { ...root, ...(media && { media }) };
    expect(observation && (await settleMedia(observation, { bring: unwanted, onMissing: unwanted }))).toBe(observation);
  }
});
