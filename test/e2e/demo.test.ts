import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';

/** How many lines npm itself prints before those of the script. */
const NPM_LINES = 4;

test('npm start prints one session in at most 40 lines of 80 columns, and the path of its page', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', 'scripts/demo.ts'], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(40 - NPM_LINES);
  expect(lines.slice(0, -1).filter((line) => line.length > 80)).toEqual([]);
  expect(lines.filter((line) => line.startsWith('Session '))).toHaveLength(1);
  expect(lines.filter((line) => /^Turn \d/.test(line))).toHaveLength(2);
  expect(stdout).toContain('└─ tool Agent [Explore]');
  expect(stdout).toContain('npm start -- --all');
  const [, page = ''] = /: (\/\S+\.html)$/.exec(lines.at(-1) ?? '') ?? [];
  expect(readFileSync(page, 'utf8')).toContain('An invoice test has failed since I merged main. Why?');
  rmSync(dirname(page), { recursive: true });
});
