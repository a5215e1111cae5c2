import { describe, expect, test } from 'vitest';
import { fitColumn } from '../../src/cli/columns.js';

describe('a column', () => {
  test.each([
    ['words', 'x'.repeat(20), `${'x'.repeat(9)}…`],
    ['a line of a frame', `│  ${'x'.repeat(20)}`, `│  ${'x'.repeat(6)}…`],
    ['characters that take two columns', '语'.repeat(20), `${'语'.repeat(4)}… `],
  ])('of %s that are too long takes what it may', (_, text, shown) => {
    expect(fitColumn(text, 10)).toBe(shown);
  });

  test('is filled up on either side', () => {
    expect([fitColumn('ab', 4), fitColumn('ab', 4, 'right')]).toEqual(['ab  ', '  ab']);
  });
});
