import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('../../src/', import.meta.url));

/** One import. Files are named relative to `src/`, packages and Node's modules by their names. */
export interface Import {
  readonly from: string;
  readonly to: string;
  /** Nothing of a `type` import is left in the built program. `lazy` is `import()`, in an expression or in a type. */
  readonly kind: 'value' | 'type' | 'lazy';
}

// Biome formats the source, so an import statement starts its line and its quotes are single.
const STATEMENT = /^(?:import|export)( type)? (?:[^'"`;=()]* from )?'([^']+)'/gm;
const CALL = /\b(?:import|require)\((.*?)\)/g;

/** Finds every import of a module: statements, re-exports, type imports and `import()`. */
export function parseImports(from: string, text: string): Import[] {
  const resolve = (name: string) => (name.startsWith('.') ? join(dirname(from), name).replace(/\.js$/, '.ts') : name);
  const statements = Array.from(text.matchAll(STATEMENT), ([, type, name = '']): Import => {
    return { from, to: resolve(name), kind: type === undefined ? 'value' : 'type' };
  });
  const calls = Array.from(text.matchAll(CALL), ([call, argument = '']): Import => {
    const name = /^'([^']+)'$/.exec(argument)?.[1];
    if (name === undefined) throw new Error(`${from}: ${call} must name the module that it loads`);
    return { from, to: resolve(name), kind: 'lazy' };
  });
  return [...statements, ...calls];
}

export function listSourceFiles(): string[] {
  return readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.replaceAll('\\', '/'))
    .toSorted();
}

export function readSourceFile(file: string): string {
  return readFileSync(join(SOURCE, file), 'utf8');
}

/** Returns each import cycle once, as the list of its files. */
export function findCycles(imports: readonly Import[]): string[][] {
  const targets = new Map<string, string[]>();
  for (const { from, to } of imports) targets.set(from, [...(targets.get(from) ?? []), to]);
  const cycles: string[][] = [];
  const finished = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file]);
    if (path.includes(file) || finished.has(file)) return;
    for (const to of targets.get(file) ?? []) visit(to, [...path, file]);
    finished.add(file);
  };
  for (const file of targets.keys()) visit(file, []);
  return cycles;
}
