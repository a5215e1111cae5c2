import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { version } from '../../src/shared/version.js';

const ROOT = new URL('../../', import.meta.url).pathname;
let folder: string;
let packed: { filename: string; files: { path: string }[] };

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-package-'));
  // The program is already built, and other tests are running it.
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  [packed] = JSON.parse(
    execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  );
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the package contains only the program, its licence, its README and an example', () => {
  const built = readdirSync(join(ROOT, 'dist')).map((name) => `dist/${name}`);
  expect(packed.files.map(({ path }) => path).toSorted()).toEqual(
    ['LICENSE', 'README.md', 'hooks.example.json', 'package.json', ...built].toSorted(),
  );
});

test('the package runs in an empty folder, without installing anything', () => {
  const empty = join(folder, 'empty');
  const home = join(folder, 'home');
  for (const each of [empty, home]) mkdirSync(each);
  const env = { PATH: process.env.PATH, HOME: home, npm_config_offline: 'true' };
  const npx = (...args: string[]) =>
    execFileSync('npx', ['--yes', `../${packed.filename}`, ...args], {
      cwd: empty,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  expect(npx('--version')).toBe(`${version}\n`);
  expect(() => npx('doctor', '--json')).toThrow(expect.objectContaining({ status: 1 }));
});
