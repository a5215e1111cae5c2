import { describe, expect, test } from 'vitest';
import { findAnswer, hashAnswer } from '../../../src/transcript/turns/answer.js';
import { assistant, groupTurns, text, toolResult, toolUse, user } from '../../support/lines.js';

const prompt = (name: string) => user(`prompt ${name}`, { uuid: name, parentUuid: 'root', promptId: `id-${name}` });
const answer = (name: string, parentUuid: string, words = 'Done.') =>
  assistant(`m-${name}`, words, { uuid: name, parentUuid });
const feedback = user('Stop hook feedback:\nagain', { uuid: 'f', parentUuid: 'a1', promptId: 'id-a', isMeta: true });

/** Returns what is found in the turn of prompt `a`. */
function found(...lines: object[]) {
  const turn = groupTurns(lines).all.find(({ prompts }) => prompts.some(({ promptId }) => promptId === 'id-a'));
  return turn && findAnswer(turn, hashAnswer('Done. '));
}

describe('the answer that a Stop names', () => {
  test('is the last text of its turn, and not that of another process, even if it has the same words', () => {
    expect(found(prompt('a'), answer('a1', 'a'))).toEqual({ line: 2, isObjectedTo: false });
    expect(found(prompt('a'), answer('a0', 'a', 'I will see.'), prompt('b'), answer('b1', 'b'))).toBeUndefined();
    expect(found(prompt('a'), prompt('b'), answer('b1', 'b'), answer('a1', 'a'))).toEqual({
      line: 4,
      isObjectedTo: false,
    });
  });

  test('is not what was said before a tool was called', () => {
    const call = assistant('m1', [text('Done.'), toolUse('t1')], { uuid: 'a1', parentUuid: 'a' });
    const result = user([toolResult('t1')], { uuid: 'r', parentUuid: 'a1', promptId: 'id-a' });
    expect(found(prompt('a'), call)).toEqual({ line: 2, isObjectedTo: false });
    expect(found(prompt('a'), call, result)).toBeUndefined();
    expect(found(prompt('a'), call, result, answer('a2', 'r'))).toEqual({ line: 4, isObjectedTo: false });
  });

  test('can be an error of the API', () => {
    const error = assistant('e1', 'Done.', { uuid: 'a1', parentUuid: 'a', isApiErrorMessage: true });
    expect(found(prompt('a'), error)).toEqual({ line: 2, isObjectedTo: false });
  });

  test('can be the result of a command that ran as an agent', () => {
    const command = user('/review', { uuid: 'a', promptId: 'id-a' });
    const content = '<local-command-stdout>Done.\n</local-command-stdout>';
    const result = { type: 'system', subtype: 'local_command', content, uuid: 'r', parentUuid: 'a' };
    expect(found(command, result)).toEqual({ line: 2, isObjectedTo: false });
  });

  test('is found although another Stop hook has objected to it', () => {
    expect(found(prompt('a'), answer('a1', 'a'), feedback)).toEqual({ line: 2, isObjectedTo: true });
    expect(found(prompt('a'), answer('a1', 'a'), feedback, answer('a2', 'f'))).toEqual({
      line: 4,
      isObjectedTo: false,
    });
    expect(found(prompt('a'), answer('a1', 'a'), feedback, answer('a2', 'f', 'Not yet.'))).toEqual({
      line: 2,
      isObjectedTo: true,
    });
  });
});
