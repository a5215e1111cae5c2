import { rmSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { previewTemplate } from './preview-template.js';

const source = resolve(dirname(fileURLToPath(import.meta.url)), '../src');
const target = resolve(source, '../dist');

/** The program's entry and whatever is imported only when it is needed: each a file of its own in `dist/`. */
const entries = [
  'cli.ts',
  'commands/hook.ts',
  'commands/hand-over.ts',
  'commands/backfill.ts',
  'commands/sessions.ts',
  'commands/doctor.ts',
  'commands/install.ts',
  'commands/uninstall.ts',
  'commands/preview.ts',
  'unknown-command.ts',
  'redaction-rules.ts',
  'exact-requests.ts',
  'log-file.ts',
  'langfuse/proxy.ts',
  'langfuse/ingestion.ts',
  'langfuse/scores.ts',
  'langfuse/media.ts',
];

/** Node loads CommonJS a tenth faster, but esbuild splits only ESM: so every `import()` of ours stays one, of its file. */
const keepDynamicImports: Plugin = {
  name: 'keep-dynamic-imports',
  setup({ onResolve }) {
    onResolve({ filter: /^\./ }, ({ path, kind, importer }) => {
      if (kind !== 'dynamic-import') return undefined;
      const file = relative(source, resolve(dirname(importer), path)).replace(/\.js$/, '');
      if (!entries.includes(`${file}.ts`)) throw new Error(`${file} is imported dynamically and no entry of the build`);
      return { path: `./${flat(file)}.cjs`, external: true };
    });
  },
};

function flat(file: string): string {
  return file.replaceAll('/', '-');
}

/** Builds `dist/` anew. */
export async function bundle(): Promise<void> {
  rmSync(target, { recursive: true, force: true });
  await build({
    entryPoints: entries.map((entry) => ({ in: resolve(source, entry), out: flat(entry.replace(/\.ts$/, '')) })),
    outdir: target,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'cjs',
    // Left as it is, `import()` would load Node's ESM loader, which takes longer than all of our own code.
    supported: { 'dynamic-import': false },
    // Of its start a process spends most on compiling: a third less to read is felt.
    minify: true,
    legalComments: 'none',
    // What its package.json names for Node calls "require" by another name, which esbuild does not follow.
    alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
    define: { PREVIEW_TEMPLATE: JSON.stringify(await previewTemplate()) },
    plugins: [keepDynamicImports],
    logLevel: 'warning',
  });
}
