import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { assembleMarketplace } from '../../scripts/marketplace.js';

const SCRIPT = fileURLToPath(new URL('../../scripts/push-plugin.sh', import.meta.url));
let folder: string;
let clone: string;
let origin: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-branch-'));
  [clone, origin] = [join(folder, 'clone'), join(folder, 'origin')];
  mkdirSync(join(clone, 'scripts'), { recursive: true });
  cpSync(SCRIPT, join(clone, 'scripts', 'push-plugin.sh'));
  writeFileSync(join(clone, '.gitignore'), '/marketplace/\n');
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', origin]);
  execFileSync('git', ['init', '--quiet', '--initial-branch=main', clone]);
  git('remote', 'add', 'origin', origin);
  git('add', '.');
  git('-c', 'user.name=a', '-c', 'user.email=a@b.c', 'commit', '--quiet', '--message=source');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const git = (...args: string[]) =>
  execFileSync('git', ['-C', clone, ...args], { encoding: 'utf8', stdio: 'pipe' }).trim();
const inOrigin = (...args: string[]) =>
  execFileSync('git', ['-C', origin, ...args], { encoding: 'utf8', stdio: 'pipe' }).trim();
const pushPlugin = (tag: string) =>
  execFileSync(join(clone, 'scripts', 'push-plugin.sh'), [tag], { encoding: 'utf8', stdio: 'pipe' });

test('a release adds a commit with nothing but the marketplace to the branch of the plugin, and tags it', () => {
  const marketplace = join(clone, 'marketplace');
  assembleMarketplace(marketplace);
  pushPlugin('v1.0.0');
  const files = inOrigin('ls-tree', '-r', '--name-only', 'plugin').split('\n');
  expect(files).toEqual(
    expect.arrayContaining(['.claude-plugin/marketplace.json', 'plugin/.claude-plugin/plugin.json']),
  );
  expect(files.filter((file) => !/^(?:\.claude-plugin|plugin)\//.test(file))).toEqual([]);
  const launcher = readFileSync(join(marketplace, 'plugin', 'dist', 'hook.sh'), 'utf8').trim();
  expect(inOrigin('show', 'plugin:plugin/dist/hook.sh')).toBe(launcher);
  expect(inOrigin('ls-tree', 'plugin', 'plugin/dist/hook.sh')).toMatch(/^100755 /);

  writeFileSync(join(marketplace, 'plugin', 'dist', 'new.cjs'), '');
  rmSync(join(marketplace, 'plugin', 'LICENSE'));
  pushPlugin('v1.1.0');
  expect(inOrigin('log', '--format=%s', 'plugin').split('\n')).toEqual(['v1.1.0', 'v1.0.0']);
  const changed = inOrigin('diff', '--name-status', 'plugin-v1.0.0', 'plugin-v1.1.0').split('\n');
  expect(changed).toEqual(['D\tplugin/LICENSE', 'A\tplugin/dist/new.cjs']);
  expect(git('status', '--porcelain')).toBe('');
});
