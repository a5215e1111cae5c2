import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { fitColumn, quoteForShell } from '../../src/cli/terminal.js';

describe('fitColumn', () => {
  test.each([
    ['plain text', 'x'.repeat(20), `${'x'.repeat(9)}…`],
    ['text after a box-drawing character', `│  ${'x'.repeat(20)}`, `│  ${'x'.repeat(6)}…`],
    ['characters that take two columns', '语'.repeat(20), `${'语'.repeat(4)}… `],
  ])('cuts %s to the width, with an ellipsis', (_, text, shown) => {
    expect(fitColumn(text, 10)).toBe(shown);
  });

  test('pads a short text on the side asked for', () => {
    expect([fitColumn('ab', 4), fitColumn('ab', 4, 'right')]).toEqual(['ab  ', '  ab']);
  });
});

// On Windows it quotes for another shell.
describe.skipIf(process.platform === 'win32')('quoteForShell', () => {
  test.each(['/home/me/.claude/state', 'C:', '/home/j\u00fcrgen/a-b_c@1.json'])('leaves %s without quotes', (path) => {
    expect(quoteForShell(path)).toBe(path);
  });

  test.each(['/home/my user', "o'brien", '$(id) `id` $HOME', 'a"b\\c', '~/x', '*', '', 'a;b&c|d(e)<f>#g', 'one\ntwo'])(
    'makes %j one word that a shell does not change',
    (path) => {
      expect(execFileSync('/bin/sh', ['-c', `printf '<%s>' ${quoteForShell(path)}`], { encoding: 'utf8' })).toBe(
        `<${path}>`,
      );
    },
  );
});
