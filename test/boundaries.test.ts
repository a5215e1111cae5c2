import { describe, expect, test } from 'vitest';
import { findCycles, type Import, listSourceFiles, parseImports, readSourceFile } from './support/import-graph.js';

/** Who may import whom: each folder of `src/`, and the folders that it may import. From a folder in (…) it may import only types. */
const MAY_IMPORT: { readonly [folder: string]: string } = {
  'cli.ts': 'commands cli config shared',
  commands: 'cli costs export git langfuse state config observations transcript shared',
  cli: 'transcript shared',
  costs: 'observations transcript shared',
  export: 'config git langfuse state observations transcript shared',
  langfuse: '(config) observations shared',
  state: '(observations) (transcript) shared',
  config: 'git observations shared',
  observations: 'transcript shared',
  transcript: 'shared',
  git: '',
  shared: '',
};

/** The commands do not import each other, with these exceptions. */
const COMMANDS_THAT_IMPORT_COMMANDS = ['sessions → cost', 'setup → doctor', 'status → doctor'];

/** Folders that may import a `*.lazy.ts` file statically, since the hook never loads them. */
const FOLDERS_THAT_NEED_NOT_BE_LAZY = ['commands/doctor'];

/** The modules of Node that `observations` may use. It is pure: what it builds depends only on its arguments. */
const NODE_MODULES_OF_OBSERVATIONS = ['node:crypto'];
const IMPURE =
  /\b(?:Date\.now|new Date\(\)|Math\.random|random\w+\(|performance\.|process\.|console\.|fetch\(|set(?:Timeout|Interval|Immediate)\()/;

const files = listSourceFiles();
const imports = files.flatMap((file) => parseImports(file, readSourceFile(file)));

const folderOf = (file: string) => file.split('/')[0] ?? file;
const commandOf = (file: string) => /^commands\/([^/]+)/.exec(file)?.[1];
const show = ({ from, to, kind }: Import) => `${from} → ${to}${kind === 'type' ? ' (type)' : ''}`;
const isInSource = ({ to }: Import) => to.endsWith('.ts') && !to.startsWith('..');

function crossesBoundary({ from, to, kind }: Import): boolean {
  if (folderOf(from) === folderOf(to)) return false;
  const allowed = (MAY_IMPORT[folderOf(from)] ?? '').split(' ');
  return !allowed.includes(folderOf(to)) && !(kind === 'type' && allowed.includes(`(${folderOf(to)})`));
}

function joinsCommands({ from, to }: Import): boolean {
  const [importer, imported] = [commandOf(from), commandOf(to)];
  if (!importer || !imported || importer === imported) return false;
  return !COMMANDS_THAT_IMPORT_COMMANDS.includes(`${importer} → ${imported}`);
}

function isEager({ from, to, kind }: Import): boolean {
  const isException = FOLDERS_THAT_NEED_NOT_BE_LAZY.some((folder) => from.startsWith(`${folder}/`));
  return to.endsWith('.lazy.ts') && kind === 'value' && !isException;
}

describe('in src', () => {
  test('every folder is in the table, and every line of the table is a folder', () => {
    expect([...new Set(files.map(folderOf))].toSorted()).toEqual(Object.keys(MAY_IMPORT).toSorted());
  });

  test.each(Object.entries(MAY_IMPORT))('%s imports only: %s', (folder) => {
    const ours = imports.filter((each) => isInSource(each) && folderOf(each.from) === folder);
    expect(ours.filter(crossesBoundary).map(show)).toEqual([]);
  });

  test('no command imports another, except that setup and status import doctor', () => {
    expect(imports.filter(joinsCommands).map(show)).toEqual([]);
  });

  test('imports form no cycles, types included', () => {
    expect(findCycles(imports)).toEqual([]);
  });

  test('only package.json is imported from outside of src', () => {
    const outside = imports.filter(({ to }) => to.startsWith('..')).map(({ to }) => to);
    expect(new Set(outside)).toEqual(new Set(['../package.json']));
  });

  test("import() loads only files that end in .lazy.ts, and Node's modules", () => {
    const loaded = imports.filter(({ kind, to }) => kind === 'lazy' && !/^node:|\.lazy\.ts$/.test(to));
    expect(loaded.map(show)).toEqual([]);
  });

  test('a file that ends in .lazy.ts is loaded only with import(), and otherwise imported only as a type', () => {
    expect(imports.filter(isEager).map(show)).toEqual([]);
  });

  test('observations uses no I/O, clock, randomness or environment', () => {
    const ours = files.filter((file) => folderOf(file) === 'observations');
    expect(ours).not.toEqual([]);
    const foreign = imports.filter((each) => folderOf(each.from) === 'observations' && !isInSource(each));
    expect(foreign.filter(({ to }) => !NODE_MODULES_OF_OBSERVATIONS.includes(to)).map(show)).toEqual([]);
    expect(ours.filter((file) => IMPURE.test(readSourceFile(file)))).toEqual([]);
  });
});

describe('the check of imports', () => {
  const import_ = (from: string, to: string, kind: Import['kind'] = 'value'): Import => ({ from, to, kind });

  test('finds every form of import', () => {
    const text = [
      "import './a.js';",
      "import b from '../b.js';",
      "import * as c from './c.js';",
      "import d, { type D } from 'd';",
      'import {',
      '  e,',
      "} from './e/e.js';",
      "import type { F } from './f.js';",
      "export { g } from './g.js';",
      "export * from './h.js';",
      "export type { I } from './i.js';",
      "const j = await import('./j.lazy.js');",
      "let k: import('./k.js').K;",
      "const l = require('l');",
      "export const m = 'no import';",
    ].join('\n');
    expect(parseImports('room/file.ts', text).map(({ to, kind }) => `${kind} ${to}`)).toEqual([
      'value room/a.ts',
      'value b.ts',
      'value room/c.ts',
      'value d',
      'value room/e/e.ts',
      'type room/f.ts',
      'value room/g.ts',
      'value room/h.ts',
      'type room/i.ts',
      'lazy room/j.lazy.ts',
      'lazy room/k.ts',
      'lazy l',
    ]);
    expect(() => parseImports('room/file.ts', 'await import(name)')).toThrow('must name the module');
  });

  test.each([
    import_('transcript/a.ts', 'observations/b.ts', 'type'),
    import_('observations/a.ts', 'langfuse/b.ts', 'type'),
    import_('langfuse/a.ts', 'transcript/b.ts', 'type'),
    import_('langfuse/a.ts', 'config/b.ts'),
    import_('langfuse/a.ts', 'config/b.lazy.ts', 'lazy'),
    import_('export/a.ts', 'commands/hook/b.ts', 'type'),
    import_('cli/a.ts', 'commands/hook/b.ts', 'type'),
    import_('shared/a.ts', 'cli.ts', 'type'),
  ])('forbids the import of $to in $from ($kind)', (each) => {
    expect(crossesBoundary(each)).toBe(true);
  });

  test('finds commands that import each other, but no command that imports itself', () => {
    expect(joinsCommands(import_('commands/doctor/a.ts', 'commands/setup/b.ts', 'type'))).toBe(true);
    expect(joinsCommands(import_('commands/setup/a.ts', 'commands/doctor/b.ts'))).toBe(false);
    expect(joinsCommands(import_('commands/doctor/a.ts', 'commands/doctor/checks/b.ts'))).toBe(false);
  });

  test('finds cycles of values, types and import()', () => {
    const cycle = [import_('a.ts', 'b.ts'), import_('b.ts', 'c.ts', 'type'), import_('c.ts', 'a.ts', 'lazy')];
    expect(findCycles([import_('x.ts', 'a.ts'), ...cycle])).toEqual([['a.ts', 'b.ts', 'c.ts', 'a.ts']]);
    expect(findCycles([import_('a.ts', 'b.ts'), import_('a.ts', 'c.ts'), import_('b.ts', 'c.ts')])).toEqual([]);
  });
});
