import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publint } from 'publint';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod/mini';
import { portableCommand } from '../../src/config/claude-hooks.js';
import { version } from '../../src/shared/version.js';
import { listSourceFiles, parseImports, readSourceFile } from '../support/import-graph.js';
import { POLL } from '../support/program.js';

const ROOT = new URL('../../', import.meta.url).pathname;
let folder: string;
let prefix: string;
let packed: { filename: string; size: number; files: { path: string }[] };

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-package-'));
  // The program is already built, and other tests are running it.
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  [packed] = JSON.parse(
    execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  );
  prefix = join(folder, 'prefix');
  const install = ['install', '--global', '--prefix', prefix, '--offline', join(folder, packed.filename)];
  execFileSync('npm', install, { stdio: 'ignore' });
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

/** What the schema of CycloneDX 1.5 requires, of the parts that the build writes. */
const LICENCES = z.array(z.strictObject({ license: z.strictObject({ id: z.string() }) }));
const COMPONENT = z.strictObject({
  'bom-ref': z.string().check(z.minLength(1)),
  type: z.enum(['application', 'library']),
  group: z.optional(z.string()),
  name: z.string(),
  version: z.string(),
  author: z.optional(z.string()),
  hashes: z.optional(
    z.array(z.strictObject({ alg: z.literal('SHA-512'), content: z.string().check(z.regex(/^[a-f0-9]{128}$/)) })),
  ),
  licenses: LICENCES,
  purl: z.string(),
});
const BILL = z.strictObject({
  $schema: z.literal('http://cyclonedx.org/schema/bom-1.5.schema.json'),
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.literal('1.5'),
  version: z.int().check(z.minimum(1)),
  metadata: z.strictObject({
    lifecycles: z.array(z.strictObject({ phase: z.literal('build') })),
    component: COMPONENT,
  }),
  components: z.array(COMPONENT),
  dependencies: z.array(z.strictObject({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

describe('the package says whose code it contains', () => {
  const inDist = (name: string) => readFileSync(join(ROOT, 'dist', name), 'utf8');
  const readBill = () => BILL.parse(JSON.parse(inDist('sbom.cdx.json')));
  const nameOf = ({ group, name }: z.infer<typeof COMPONENT>) => (group ? `${group}/${name}` : name);

  test('in a bill of materials that scanners can read, with the versions and hashes of package-lock.json', () => {
    const { metadata, components, dependencies } = readBill();
    expect(metadata.component).toMatchObject({ name: 'cc-langfuse', version });
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
    for (const component of components) {
      const locked = packages[`node_modules/${nameOf(component)}`];
      const integrity = Buffer.from(component.hashes?.[0]?.content ?? '', 'hex').toString('base64');
      expect({ version: component.version, integrity: `sha512-${integrity}` }, nameOf(component)).toEqual({
        version: locked.version,
        integrity: locked.integrity,
      });
    }
    const refs = components.map((component) => component['bom-ref']);
    expect(new Set(refs).size).toBe(refs.length);
    expect(dependencies).toEqual([{ ref: metadata.component['bom-ref'], dependsOn: refs }]);
  });

  test('and lists each package that the source imports, the same ones in both files', () => {
    const names = readBill().components.map(nameOf);
    const imported = listSourceFiles()
      .flatMap((file) => parseImports(file, readSourceFile(file)))
      .flatMap(({ to, kind }) => (kind === 'type' || /^node:|\.(?:ts|json)$/.test(to) ? [] : to))
      .map((to) => /^(?:@[^/]+\/)?[^/]+/.exec(to)?.[0]);
    expect(imported).toContain('zod');
    expect(names).toEqual(expect.arrayContaining(imported));
    const entries = Array.from(inDist('THIRD_PARTY_LICENSES').matchAll(/^(\S+) \S+ \([\w-]+\)$/gm), ([, name]) => name);
    expect(entries.toSorted()).toEqual(names.toSorted());
  });
});

test('the package has no scripts that npm runs when it is installed, and less than 430 KB', () => {
  const { scripts, dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  expect(Object.keys(scripts).filter((name) => /^(?:(?:pre|post)?install|(?:pre|post)?prepare)$/.test(name))).toEqual(
    [],
  );
  expect(dependencies).toBeUndefined();
  expect(packed.size).toBeLessThan(430_000);
});

test('npm links the launcher next to the program, and it starts it there', async () => {
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

test('the package is a program: nothing in it can be imported', () => {
  const modules = join(prefix, 'lib');
  const load = (name: string) =>
    spawnSync(process.execPath, ['-p', `require(${JSON.stringify(name)}).name`], { cwd: modules, encoding: 'utf8' });
  expect(load('cc-langfuse/package.json').stdout).toBe('cc-langfuse\n');
  for (const name of ['cc-langfuse', 'cc-langfuse/dist/cli.cjs', 'cc-langfuse/dist/shared.cjs'])
    expect(load(name).stderr, name).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED');
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
