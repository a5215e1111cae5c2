import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build, type Metafile } from 'esbuild';

const folder = fileURLToPath(new URL('../preview-page/', import.meta.url));

/** Builds the preview page without sessions. It contains its script and style, and its policy forbids loading anything else. */
export async function buildPreviewTemplate(): Promise<{ template: string; bundles: readonly Metafile[] }> {
  const bundles = await Promise.all([bundleEntry('main.ts'), bundleEntry('page.css')]);
  const [script, style] = bundles.map(({ text }) => text) as [string, string];
  const policy = [
    "default-src 'none'",
    `script-src ${formatHash(script)}`,
    `style-src ${formatHash(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const parts: { readonly [slot: string]: string } = {
    'content="policy"': `content="${policy}"`,
    '<!-- style -->': `<style>${style}</style>`,
    '<!-- script -->': `<script>${script}</script>`,
  };
  const markup = readFileSync(`${folder}page.html`, 'utf8');
  const template = Object.entries(parts).reduce((page, [slot, part]) => page.replace(slot, () => part), markup);
  return { template, bundles: bundles.map(({ metafile }) => metafile) };
}

async function bundleEntry(entry: string): Promise<{ text: string; metafile: Metafile }> {
  const { outputFiles, metafile } = await build({
    entryPoints: [`${folder}${entry}`],
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'warning',
  });
  return { text: (outputFiles[0]?.text ?? '').trim(), metafile };
}

function formatHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
