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

/** The copyright of packages that npm has without a licence text, as their repositories state it. All are under the MIT licence. */
const LANGFUSE = 'Copyright (c) 2023-2026 Langfuse GmbH\nCopyright (c) 2022 PostHog (part of Hiberly Inc)';
const COPYRIGHTS: ReadonlyMap<string, string> = new Map([
  ['langfuse', LANGFUSE],
  ['langfuse-core', LANGFUSE],
]);

const MIT_TERMS = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`;

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
  const text = readLicence(folder, name, license);
  if (text === undefined) throw new Error(`${problem} no licence text`);
  return {
    name,
    version,
    licence: license,
    author: (author?.name ?? author)?.replace(/ *[<(].*/, ''),
    sha512: Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex'),
    text,
  };
}

function readLicence(folder: string, name: string, licence: string): string | undefined {
  const file = readdirSync(folder).find((each) => /^(?:licen[cs]e|copying)\b/i.test(each));
  if (file !== undefined) return readFileSync(join(folder, file), 'utf8').replaceAll('\r', '');
  const copyright = licence === 'MIT' ? COPYRIGHTS.get(name) : undefined;
  return copyright && `MIT License\n\n${copyright}\n\n${MIT_TERMS}`;
}
