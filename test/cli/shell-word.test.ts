import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { quoteForShell } from '../../src/cli/shell-word.js';

test.each(['/home/me/.claude/state', 'C:', '/home/j\u00fcrgen/a-b_c@1.json'])('%s needs no quotes', (path) => {
  expect(quoteForShell(path)).toBe(path);
});

test.each(['/home/my user', "o'brien", '$(id) `id` $HOME', 'a"b\\c', '~/x', '*', '', 'a;b&c|d(e)<f>#g', 'one\ntwo'])(
  '%j is one word to a shell, and means itself',
  (path) => {
    expect(execFileSync('/bin/sh', ['-c', `printf '<%s>' ${quoteForShell(path)}`], { encoding: 'utf8' })).toBe(
      `<${path}>`,
    );
  },
);
