import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import type { Metafile } from 'esbuild';

/** A package of npm of which the built program has code. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  readonly author: string | undefined;
  /** The hash of what npm has, as package-lock.json names it. */
  readonly sha512: string;
  /** The licence, with the copyright notice. */
  readonly text: string;
}

/** Licences that ask for nothing but their text. Any other needs a decision. */
const ALLOWED = ['0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT'];

/** Returns the packages in what esbuild has built, by name. Throws if the program may not contain one. */
export function findBundledPackages(bundles: readonly Metafile[], root: string): BundledPackage[] {
  const paths = bundles
    .flatMap(({ outputs }) => Object.values(outputs))
    .flatMap(({ inputs }) => Object.entries(inputs))
    .flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : []));
  const folders = new Set(paths.flatMap((path) => /^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return [...folders]
    .map((folder) => {
      const { integrity } = lock.packages[relative(root, resolve(folder)).replaceAll('\\', '/')];
      return readPackage(folder, integrity);
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function readPackage(folder: string, integrity: string): BundledPackage {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const problem = `${name}@${version} is bundled, and has`;
  if (!ALLOWED.includes(license)) throw new Error(`${problem} the licence ${license}`);
  const file = readdirSync(folder).find((each) => /^(?:licen[cs]e|copying)\b/i.test(each));
  if (file === undefined) throw new Error(`${problem} no licence text`);
  return {
    name,
    version,
    licence: license,
    author: (author?.name ?? author)?.replace(/ *[<(].*/, ''),
    sha512: Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex'),
    text: readFileSync(join(folder, file), 'utf8').replaceAll('\r', ''),
  };
}
