import { describe, expect, test } from 'vitest';
import { AnswerWatcher, hashAnswer } from '../../../src/transcript/turns/answer-watcher.js';
import { assistant, linesOf, user } from '../../support/lines.js';

const prompt = (name: string) => user(`prompt ${name}`, { uuid: name, parentUuid: 'root', promptId: `id-${name}` });
const answer = (name: string, parentUuid: string) => assistant(`m-${name}`, 'Done.', { uuid: name, parentUuid });
const feedback = user('Stop hook feedback:\nagain', { uuid: 'f', parentUuid: 'a1', promptId: 'id-a', isMeta: true });

/** Returns the line that is found to be the answer to prompt `a`, if lines up to `after` were sent before. */
function found(lines: readonly object[], after = 0, isAfterFeedback = false): number | undefined {
  const watcher = new AnswerWatcher({ hash: hashAnswer('Done.'), promptId: 'id-a', isAfterFeedback }, after);
  for (const line of linesOf(lines)) watcher.observe(line);
  return watcher.line;
}

describe('the answer that a Stop hook waits for', () => {
  test('is not that of another process, even if it has the same text', () => {
    expect(found([prompt('a'), prompt('b'), answer('b1', 'b')])).toBeUndefined();
    expect(found([prompt('a'), prompt('b'), answer('b1', 'b'), answer('a1', 'a')])).toBe(4);
    expect(found([prompt('a'), prompt('b'), answer('a1', 'a'), answer('b1', 'b')])).toBe(3);
  });

  test('can have been sent already, together with a turn of another process', () => {
    expect(found([prompt('a'), answer('a1', 'a')], 2)).toBe(2);
  });

  test('is not the one to which a Stop hook has objected', () => {
    expect(found([prompt('a'), answer('a1', 'a'), feedback], 0, true)).toBeUndefined();
    expect(found([prompt('a'), answer('a1', 'a'), feedback, answer('a2', 'f')], 0, true)).toBe(4);
  });

  test('is found even if another Stop hook has objected to it before this one looks', () => {
    expect(found([prompt('a'), answer('a1', 'a'), feedback])).toBe(2);
  });

  test('is a new line with its text, as long as the prompt has not been seen', () => {
    expect(found([answer('x', 'unknown')], 1)).toBeUndefined();
    expect(found([answer('x', 'unknown')])).toBe(1);
  });
});
