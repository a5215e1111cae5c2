import { describe, expect, test } from 'vitest';
import { column } from '../../src/cli/columns.js';

describe('a column', () => {
  test.each([
    ['words', 'x'.repeat(20), `${'x'.repeat(9)}…`],
    ['a line of a frame', `│  ${'x'.repeat(20)}`, `│  ${'x'.repeat(6)}…`],
    ['characters that take two columns', '语'.repeat(20), `${'语'.repeat(4)}… `],
  ])('of %s that are too long takes what it may', (_, text, shown) => {
    expect(column(text, 10)).toBe(shown);
  });

  test('is filled up on either side', () => {
    expect([column('ab', 4), column('ab', 4, 'right')]).toEqual(['ab  ', '  ab']);
  });
});
