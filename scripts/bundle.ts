import { chmodSync, copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild';
import { findBundledPackages } from './bundled-packages.js';
import { buildPreviewTemplate } from './preview-template.js';
import { describeBundle } from './sbom.js';
import { formatLicences } from './third-party-licences.js';

const source = resolve(dirname(fileURLToPath(import.meta.url)), '../src');
const target = resolve(source, '../dist');

/** Modules that are imported with `await import()` end in `.lazy.ts`: each becomes its own file in `dist/`. */
const LAZY = '.lazy.ts';
const lazyModules = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith(LAZY));
/** Claude Code may wait for these, so they load no other file. */
const ALONE = ['cli.ts', 'commands/hook/detach.lazy.ts'];
/** It is one file with all that it needs, since every file that is read takes time. Other files take from it what they need, too. */
const WORKER = 'commands/hook/hook.lazy.ts';

/** CommonJS starts a tenth faster, but esbuild splits only ESM. So each `import()` stays and names a file of `dist/`. */
const keepDynamicImports: Plugin = {
  name: 'keep-dynamic-imports',
  setup({ onResolve }) {
    onResolve({ filter: /^\./ }, ({ path, kind, importer }) => {
      if (kind !== 'dynamic-import') return undefined;
      const file = relative(source, resolve(dirname(importer), path)).replace(/\.js$/, '.ts');
      if (!file.endsWith(LAZY)) throw new Error(`${file} is imported dynamically: its name must end in ${LAZY}`);
      return { path: `./${outputName(file)}.cjs`, external: true };
    });
  },
};

const PACKAGE = resolve(source, '../package.json');

/** Of package.json the program needs only the version. The rest would be in every file of `dist/`. */
const takeOnlyVersion: Plugin = {
  name: 'take-only-version',
  setup({ onLoad }) {
    onLoad({ filter: /package\.json$/ }, ({ path }) => {
      if (path !== PACKAGE) return undefined;
      const { version } = JSON.parse(readFileSync(path, 'utf8'));
      return { contents: JSON.stringify({ version }), loader: 'json' };
    });
  },
};

/** A proxy agent loads it for Kerberos, if it is asked to, which it never is. It has no licence text. */
const leaveOutNegotiate: Plugin = {
  name: 'leave-out-negotiate',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^proxy-agent-negotiate$/ }, ({ path }) => ({ path, namespace: 'left-out' }));
    onLoad({ filter: /.*/, namespace: 'left-out' }, () => ({
      contents: 'export const createNegotiateAuth = undefined',
    }));
  },
};

function outputName(file: string): string {
  return file.replace(/(?:\.lazy)?\.ts$/, '').replaceAll(/[/\\]/g, '-');
}

const entryPoints = (files: readonly string[]) =>
  files.map((file) => ({ in: resolve(source, file), out: outputName(file) }));

const FROM_SOURCE: BuildOptions = {
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  legalComments: 'none',
  // Its package.json names a build for Node that renames `require`, which esbuild cannot bundle.
  alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
  plugins: [keepDynamicImports, takeOnlyVersion, leaveOutNegotiate],
  logLevel: 'warning',
};

const TO_DIST: BuildOptions = {
  outdir: target,
  outExtension: { '.js': '.cjs' },
  format: 'cjs',
  // Without this, `import()` would load Node's ESM loader, which takes longer than all our own code.
  supported: { 'dynamic-import': false },
  // A process spends most of its start compiling, so a third less code makes a noticeable difference.
  minify: true,
};

/** What Claude Code starts. It is a shell script, and starts the program. */
const LAUNCHER = 'commands/hook/hook.sh';

/** Builds `dist/` from scratch. */
export async function bundle(): Promise<void> {
  rmSync(target, { recursive: true, force: true });
  const { metafile } = await build({ ...FROM_SOURCE, ...TO_DIST, entryPoints: entryPoints(ALONE), metafile: true });
  const shared = await bundleShared(lazyModules.filter((file) => !ALONE.includes(file)));
  describeContents([metafile, ...shared]);
  const launcher = resolve(target, 'hook.sh');
  copyFileSync(resolve(source, LAUNCHER), launcher);
  chmodSync(launcher, 0o755);
}

/** Writes down whose code the program contains: for people, and for scanners, which cannot see what is bundled. */
function describeContents(bundles: readonly Metafile[]): void {
  const packages = findBundledPackages(bundles, dirname(PACKAGE));
  const bill = describeBundle(JSON.parse(readFileSync(PACKAGE, 'utf8')), packages);
  writeFileSync(resolve(target, 'THIRD_PARTY_LICENSES'), formatLicences(packages));
  writeFileSync(resolve(target, 'sbom.cdx.json'), `${JSON.stringify(bill, null, 2)}\n`);
}

/** Builds files that share what several of them need. Each on its own would make the package three times as large. */
async function bundleShared(files: readonly string[]): Promise<readonly Metafile[]> {
  const { template, bundles } = await buildPreviewTemplate();
  const { outputFiles, metafile } = await build({
    ...FROM_SOURCE,
    entryPoints: entryPoints(files),
    outdir: target,
    format: 'esm',
    splitting: true,
    write: false,
    metafile: true,
    define: { PREVIEW_TEMPLATE: JSON.stringify(template) },
  });
  const modules = new Map(outputFiles.map(({ path, text }) => [basename(path, '.js'), text]));
  const fileFor = chooseFiles(metafile, files.map(outputName));
  await build({
    ...TO_DIST,
    entryPoints: [...new Set(fileFor.values())],
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    plugins: [joinModules(modules, fileFor)],
    logLevel: 'warning',
  });
  return [metafile, ...bundles];
}

/**
 * Chooses a file of `dist/` for each module that esbuild split off. What the worker needs is in its file. What one of its lazy
 * modules needs besides is in the file of that one, though a command needs it, too. All else that is shared is in `shared`.
 */
function chooseFiles({ outputs }: Metafile, entries: readonly string[]): Map<string, string> {
  const importsOf = new Map(
    Object.entries(outputs).map(([path, { imports }]) => [
      basename(path, '.js'),
      imports
        .filter(({ kind, external }) => kind === 'import-statement' && !external)
        .map((each) => basename(each.path, '.js')),
    ]),
  );
  const listNeeded = (module: string, found = new Set<string>()): Set<string> => {
    if (found.has(module)) return found;
    found.add(module);
    for (const imported of importsOf.get(module) ?? []) listNeeded(imported, found);
    return found;
  };
  const ofHook = listNeeded(outputName(WORKER));
  const ofWorker = entries.filter((entry) => !/^(?:cli|commands)-/.test(entry));
  return new Map(
    [...importsOf.keys()].map((module) => {
      if (entries.includes(module)) return [module, module];
      if (ofHook.has(module)) return [module, outputName(WORKER)];
      return [module, ofWorker.find((entry) => listNeeded(entry).has(module)) ?? 'shared'];
    }),
  );
}

/** Bundles each file from its modules. What is in another file is loaded from there. */
function joinModules(modules: ReadonlyMap<string, string>, fileFor: ReadonlyMap<string, string>): Plugin {
  const loaded = listLoaded(modules, fileFor);
  return {
    name: 'join-modules',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /.*/ }, ({ path, kind, importer, namespace }) => {
        if (kind === 'entry-point') return { path, namespace: 'output' };
        const module = basename(path, '.js');
        if (!modules.has(module)) return { path, external: true };
        const file = namespace === 'output' ? importer : fileFor.get(importer);
        return { path: module, namespace: fileFor.get(module) === file ? 'module' : 'elsewhere' };
      });
      onLoad({ filter: /.*/, namespace: 'output' }, ({ path: file }) => {
        const own = loaded.filter(({ module }) => fileFor.get(module) === file);
        const lines = own.map(({ module, name, key }) => `export { ${name} as ${key} } from './${module}.js'`);
        return { contents: [...(modules.has(file) ? [`export * from './${file}.js'`] : []), ...lines].join('\n') };
      });
      onLoad({ filter: /.*/, namespace: 'module' }, ({ path }) => ({ contents: modules.get(path) ?? '' }));
      onLoad({ filter: /.*/, namespace: 'elsewhere' }, ({ path }) => {
        const own = loaded.filter(({ module }) => module === path);
        const getters = own.map(({ name, key }) => `get ${name}() { return file.${key}; }`);
        return { contents: `const file = require('./${fileFor.get(path)}.cjs'); module.exports = { ${getters} };` };
      });
    },
  };
}

/** What modules import from modules in other files, with the name that the other file exports it under. */
function listLoaded(modules: ReadonlyMap<string, string>, fileFor: ReadonlyMap<string, string>) {
  const names = [...modules].flatMap(([importer, text]) =>
    [...text.matchAll(/^import \{([^}]+)\} from "\.\/([\w-]+)\.js";$/gm)]
      .filter(([, , module = '']) => fileFor.get(module) !== fileFor.get(importer))
      .flatMap(([, list = '', module = '']) =>
        list.split(',').map((item) => `${module} ${item.trim().split(' as ')[0]}`),
      ),
  );
  return [...new Set(names)].toSorted().map((each, index) => {
    const [module = '', name = ''] = each.split(' ');
    return { module, name, key: `_${index.toString(36)}` };
  });
}
