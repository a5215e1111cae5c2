import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publint } from 'publint';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { portableCommand } from '../../src/config/claude-hooks.js';
import { version } from '../../src/shared/version.js';
import { POLL } from '../support/program.js';

const ROOT = new URL('../../', import.meta.url).pathname;
let folder: string;
let packed: { filename: string; size: number; files: { path: string }[] };

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

test('publint, which knows what is wrong with packages, finds nothing', async () => {
  const tarball = readFileSync(join(folder, packed.filename));
  const { messages } = await publint({ pack: { tarball: new Uint8Array(tarball).buffer }, strict: true });
  expect(messages).toEqual([]);
});

test('the package has no scripts that npm runs when it is installed, and less than 375 KB', () => {
  const { scripts, dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  expect(Object.keys(scripts).filter((name) => /^(?:(?:pre|post)?install|(?:pre|post)?prepare)$/.test(name))).toEqual(
    [],
  );
  expect(dependencies).toBeUndefined();
  expect(packed.size).toBeLessThan(375_000);
});

test('npm links the launcher next to the program, and it starts it there', async () => {
  const prefix = join(folder, 'prefix');
  const args = ['install', '--global', '--prefix', prefix, '--offline', join(folder, packed.filename)];
  execFileSync('npm', args, { stdio: 'ignore' });
  const home = join(folder, 'user');
  const env = { PATH: `${join(prefix, 'bin')}:${process.env.PATH}`, HOME: home, TRACE_TO_LANGFUSE: 'true' };
  const command = portableCommand('Stop').command;
  expect(spawnSync('/bin/sh', ['-c', command], { env, input: 'no payload', encoding: 'utf8' })).toMatchObject({
    status: 0,
    stdout: '',
    stderr: '',
  });
  const log = join(home, '.claude', 'state', 'cc-langfuse_hook.log');
  await expect.poll(() => existsSync(log) && readFileSync(log, 'utf8'), POLL).toContain('stdin is not JSON');
  const registered = execFileSync('cc-langfuse', ['install', '--dry-run'], { env, encoding: 'utf8' });
  expect(registered).toContain(`exec \\"${join(home, '.claude', 'cc-langfuse', 'current', 'hook.sh')}\\" Stop`);
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
