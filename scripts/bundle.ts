import { chmodSync, copyFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { buildPreviewTemplate } from './preview-template.js';

const source = resolve(dirname(fileURLToPath(import.meta.url)), '../src');
const target = resolve(source, '../dist');

/** Modules that are imported with `await import()` end in `.lazy.ts`: each becomes its own file in `dist/`. */
const LAZY = '.lazy.ts';
const entries = [
  'cli.ts',
  ...readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith(LAZY)),
];

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

function outputName(file: string): string {
  return file.replace(/(?:\.lazy)?\.ts$/, '').replaceAll(/[/\\]/g, '-');
}

/** What Claude Code starts. It is a shell script, and starts the program. */
const LAUNCHER = 'commands/hook/hook.sh';

/** Builds `dist/` from scratch. */
export async function bundle(): Promise<void> {
  rmSync(target, { recursive: true, force: true });
  await build({
    entryPoints: entries.map((entry) => ({ in: resolve(source, entry), out: outputName(entry) })),
    outdir: target,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'cjs',
    // Without this, `import()` would load Node's ESM loader, which takes longer than all our own code.
    supported: { 'dynamic-import': false },
    // A process spends most of its start compiling, so a third less code makes a noticeable difference.
    minify: true,
    legalComments: 'none',
    // Its package.json names a build for Node that renames `require`, which esbuild cannot bundle.
    alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
    define: { PREVIEW_TEMPLATE: JSON.stringify(await buildPreviewTemplate()) },
    plugins: [keepDynamicImports, takeOnlyVersion],
    logLevel: 'warning',
  });
  const launcher = resolve(target, 'hook.sh');
  copyFileSync(resolve(source, LAUNCHER), launcher);
  chmodSync(launcher, 0o755);
}
