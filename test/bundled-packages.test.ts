import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BundledPackage, findBundledPackages } from '../scripts/bundled-packages.js';
import { describeBundle } from '../scripts/sbom.js';
import { formatLicences } from '../scripts/third-party-licences.js';

const MIT = (owner: string, title = 'MIT License\n\n') => `${title}Copyright (c) ${owner}

Permission is hereby granted, to deal in the "Software". In no event shall the
COPYRIGHT HOLDERS be liable.
`;
const ISC = 'ISC License\n\nCopyright (c) Eve\n\nPermission to use is hereby granted.\n';

let root: string;
let installed: { [folder: string]: object };

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cc-langfuse-bundled-'));
  installed = {};
  add('node_modules/two', { name: 'two', version: '2.0.0', license: 'MIT' }, { LICENSE: MIT('Bob, 2020') });
  const one = { name: '@a/one', version: '1.2.3', license: 'MIT', author: 'Ann <ann@example.com>' };
  add('node_modules/@a/one', one, { 'license.md': MIT('Ann', '(The MIT License)\n\n').replaceAll('"', "'") });
  const inner = {
    name: 'inner',
    version: '0.1.0',
    license: 'ISC',
    author: { name: 'Eve', url: 'https://eve.example' },
  };
  add('node_modules/two/node_modules/inner', inner, { 'LICENSE.txt': ISC });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Installs a package, as package-lock.json says. */
function add(folder: string, manifest: object, files: { readonly [name: string]: string } = {}): void {
  const path = join(root, folder);
  mkdirSync(path, { recursive: true });
  for (const [name, text] of Object.entries({ 'package.json': JSON.stringify(manifest), ...files }))
    writeFileSync(join(path, name), text);
  installed[folder] = { integrity: 'sha512-/wA=' };
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages: installed }));
}

/** What esbuild says of a bundle that has so many bytes of each file. */
function bundleOf(bytes: { readonly [path: string]: number }): Metafile {
  const inputs = Object.entries(bytes).map(([path, bytesInOutput]) => [join(root, path), { bytesInOutput }]);
  const output = { bytes: 0, imports: [], exports: [], inputs: Object.fromEntries(inputs) };
  return { inputs: {}, outputs: { 'dist/x.cjs': output } };
}

const find = () =>
  findBundledPackages(
    [
      bundleOf({ 'src/cli.ts': 100, 'node_modules/two/lib/a.js': 10, 'node_modules/two/b.js': 1 }),
      bundleOf({
        'node_modules/@a/one/index.js': 5,
        'node_modules/two/node_modules/inner/i.js': 3,
        'node_modules/unused/index.js': 0,
      }),
    ],
    root,
  );

test('the packages in a bundle are those of which it has code, each once, by name', () => {
  expect(find()).toEqual([
    {
      name: '@a/one',
      version: '1.2.3',
      licence: 'MIT',
      author: 'Ann',
      sha512: 'ff00',
      text: MIT('Ann', '(The MIT License)\n\n').replaceAll('"', "'"),
    },
    { name: 'inner', version: '0.1.0', licence: 'ISC', author: 'Eve', sha512: 'ff00', text: ISC },
    { name: 'two', version: '2.0.0', licence: 'MIT', author: undefined, sha512: 'ff00', text: MIT('Bob, 2020') },
  ] satisfies BundledPackage[]);
});

describe('the build fails if a bundled package', () => {
  test.each<[string, object, { [name: string]: string }, string]>([
    ['has no licence text', { license: 'MIT' }, {}, 'bad@1.0.0 is bundled, and has no licence text'],
    ['names no licence', {}, { LICENSE: 'Free!' }, 'bad@1.0.0 is bundled, and has the licence undefined'],
    [
      'has another licence',
      { license: 'GPL-3.0' },
      { LICENSE: 'GPL' },
      'bad@1.0.0 is bundled, and has the licence GPL-3.0',
    ],
  ])('%s', (_, manifest, files, problem) => {
    add('node_modules/bad', { name: 'bad', version: '1.0.0', ...manifest }, files);
    expect(() => findBundledPackages([bundleOf({ 'node_modules/bad/index.js': 1 })], root)).toThrow(problem);
  });
});

test('THIRD_PARTY_LICENSES has each copyright notice, and the same licence once, however it is wrapped and quoted', () => {
  expect(formatLicences(find())).toBe(`cc-langfuse contains code of these packages. Each has the licence below its name.

@a/one 1.2.3 (MIT)
  Copyright (c) Ann
two 2.0.0 (MIT)
  Copyright (c) Bob, 2020

Permission is hereby granted, to deal in the 'Software'. In no event shall the
COPYRIGHT HOLDERS be liable.

--------

inner 0.1.0 (ISC)
  Copyright (c) Eve

Permission to use is hereby granted.
`);
});

test('the bill of materials names the program, what is in it, and nothing that differs between two builds', () => {
  const own = { name: 'cc-langfuse', version: '9.9.9', license: 'Apache-2.0' };
  const describe = () => describeBundle(own, find());
  expect(describe()).toEqual(describe());
  expect(describe()).toEqual({
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      lifecycles: [{ phase: 'build' }],
      component: {
        'bom-ref': 'pkg:npm/cc-langfuse@9.9.9',
        type: 'application',
        name: 'cc-langfuse',
        version: '9.9.9',
        licenses: [{ license: { id: 'Apache-2.0' } }],
        purl: 'pkg:npm/cc-langfuse@9.9.9',
      },
    },
    components: [
      {
        'bom-ref': 'pkg:npm/%40a/one@1.2.3',
        type: 'library',
        group: '@a',
        name: 'one',
        version: '1.2.3',
        author: 'Ann',
        hashes: [{ alg: 'SHA-512', content: 'ff00' }],
        licenses: [{ license: { id: 'MIT' } }],
        purl: 'pkg:npm/%40a/one@1.2.3',
      },
      expect.objectContaining({ name: 'inner', version: '0.1.0', purl: 'pkg:npm/inner@0.1.0' }),
      expect.objectContaining({ name: 'two', version: '2.0.0', purl: 'pkg:npm/two@2.0.0' }),
    ],
    dependencies: [
      {
        ref: 'pkg:npm/cc-langfuse@9.9.9',
        dependsOn: ['pkg:npm/%40a/one@1.2.3', 'pkg:npm/inner@0.1.0', 'pkg:npm/two@2.0.0'],
      },
    ],
  });
});
