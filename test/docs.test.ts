import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { SETTING_NAMES, variableNames } from '../src/config/settings-table.js';
import { OUTCOMES } from '../src/observations/build/ending.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const README = read('README.md');

const listPages = (folder: string, recursive: boolean) =>
  readdirSync(join(ROOT, folder), { recursive, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name.replaceAll('\\', '/')));
const PAGES = [...listPages('.', false), ...listPages('bench', false), ...listPages('docs', true)];

/** The anchors that GitHub makes of headings. */
function findAnchors(text: string): string[] {
  const headings = text.replace(/^```.*?^```/gms, '').matchAll(/^#+ (.+)$/gm);
  const dropped = /[^\p{L}\p{N} _-]/gu;
  return Array.from(headings, ([, heading = '']) => heading.toLowerCase().replace(dropped, '').replaceAll(' ', '-'));
}

/** The links of a page to files, or to headings, that do not exist. */
function findBrokenLinks(page: string, text: string): string[] {
  const links = Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link);
  return links.filter((link) => {
    if (/^https?:/.test(link)) return false;
    // GitHub resolves these against the page's address, in whichever repository it is.
    const [, workflow] = /^\.\.\/\.\.\/actions\/workflows\/([^/]+)(?:\/badge\.svg)?$/.exec(link) ?? [];
    if (page === 'README.md' && workflow !== undefined) return !existsSync(join(ROOT, '.github/workflows', workflow));
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page : join(dirname(page), path);
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && !findAnchors(read(target)).includes(anchor);
  });
}

/** The links of a page whose text is the end of another path than that of the file. */
function findMisnamedLinks(text: string): string[] {
  const links = text.matchAll(/\[`([\w./-]+\.\w+)`\]\(([^)#\s]+)/g);
  return Array.from(links).flatMap(([link, named, path]) => (`/${path}`.endsWith(`/${named}`) ? [] : [link]));
}

describe('the documentation', () => {
  test('has these pages, among others', () => {
    expect(PAGES).toEqual(expect.arrayContaining(['README.md', 'bench/README.md', 'docs/architecture.md']));
  });

  test.each(PAGES)('%s links to files and headings that exist', (page) => {
    expect(findBrokenLinks(page, read(page))).toEqual([]);
  });

  test.each(PAGES)('%s gives a file that it links its own name', (page) => {
    expect(findMisnamedLinks(read(page))).toEqual([]);
  });

  test('has all outcomes of a turn', () => {
    const [, list = ''] = /^- \*\*`outcome`\*\* is ([^.]+)\./m.exec(read('docs/how-it-works.md')) ?? [];
    const named = Array.from(list.matchAll(/`(\w+)`/g), ([, outcome]) => outcome);
    expect(named.toSorted()).toEqual(Object.keys(OUTCOMES).toSorted());
  });

  test('names recordings that exist', () => {
    const named = Array.from(
      read('docs/claude-code.md').matchAll(/`([a-z]-[a-z]\w+|v\d[\d.]+-\w+)`/g),
      ([, name = '']) => name,
    );
    expect(named).toEqual(expect.arrayContaining(['p-simple', 'v2.1.90-simple']));
    expect(named.filter((name) => !existsSync(join(ROOT, 'fixtures/recorded', name)))).toEqual([]);
  });

  test.each(PAGES)('%s names npm scripts and settings that exist', (page) => {
    const { scripts } = JSON.parse(read('package.json'));
    const variables = SETTING_NAMES.flatMap(variableNames);
    const text = read(page);
    const named = Array.from(text.matchAll(/npm run (?:-s )?([\w:]+)/g), ([, script = '']) => script);
    expect(named.filter((script) => !(script in scripts))).toEqual([]);
    const settings = text.match(/\bCC_LANGFUSE_[A-Z_]*[A-Z]\b/g) ?? [];
    expect(settings.filter((setting) => !variables.includes(setting))).toEqual([]);
  });

  test('begins with a README of at most 150 lines that names npm start and npm test', () => {
    expect(README.trimEnd().split('\n').length).toBeLessThanOrEqual(150);
    expect(README).toMatch(/^npm start\b/m);
    expect(README).toMatch(/^npm test\b/m);
  });

  test('shows the first trace, and how to get it, on the first screen of the README', () => {
    const firstScreen = README.split('\n').slice(0, 16).join('\n');
    expect(firstScreen).toMatch(/^npm start\b/m);
    expect(firstScreen).toContain('](docs/preview.png)');
  });
});

test('a link with the name of another file is seen', () => {
  const good = '[`install.md`](docs/install.md#a) [`docs/x.ts`](../docs/x.ts) [`src/`](other) [text](x.ts)';
  expect(findMisnamedLinks(good)).toEqual([]);
  expect(findMisnamedLinks('[`a.ts`](src/b.ts) [`b.ts`](ab.ts)')).toEqual(['[`a.ts`](src/b.ts', '[`b.ts`](ab.ts']);
});

test('a link to a missing file or heading is seen', () => {
  expect(findAnchors('# What is `here`?\n\n```sh\n# no heading\n```\n## In CI')).toEqual(['what-is-here', 'in-ci']);
  const good = '[a](docs) [b](docs/install.md#in-ci) [c](#quick-start) [d](https://example.com/#none)';
  const bad = '[a](docs/none.md) [b](docs/install.md#none) [c](#none) [d](../../actions/workflows/none.yml)';
  expect(findBrokenLinks('README.md', good)).toEqual([]);
  expect(findBrokenLinks('README.md', bad)).toEqual([
    'docs/none.md',
    'docs/install.md#none',
    '#none',
    '../../actions/workflows/none.yml',
  ]);
});
