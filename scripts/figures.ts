// npm run figures [-- --at <folder of another checkout>]: the size of the part that decides what is sent when, and what one Stop costs.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type FileOperation, recordStop } from '../test/support/file-operations.js';
import { type FunctionComplexity, measureComplexity } from './complexity.js';

const FOLDERS = ['commands/hook', 'export', 'state'];
const MOST_COMPLEX = 20;
const LISTED = 5;

interface SourceFile {
  readonly path: string;
  readonly text: string;
}

interface MeasuredFunction extends FunctionComplexity {
  readonly path: string;
}

type Row = readonly (string | number)[];

function readSources(root: string, folder: string): SourceFile[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => /\.(?:ts|sh)$/.test(name))
    .map((name) => ({ path: join(folder, name), text: readFileSync(join(root, folder, name), 'utf8') }));
}

function countLines(files: readonly SourceFile[]): number {
  return files.reduce((sum, { text }) => sum + text.split('\n').length - 1, 0);
}

function sizeRow(name: string, files: readonly SourceFile[]): Row {
  return [name, files.length, countLines(files)];
}

function measureFunctions(files: readonly SourceFile[]): MeasuredFunction[] {
  return files
    .filter(({ path }) => path.endsWith('.ts'))
    .flatMap(({ path, text }) => measureComplexity(text).map((each) => ({ ...each, path })))
    .toSorted((a, b) => b.complexity - a.complexity);
}

/** Counts the rows of a table in docs/architecture.md, which a test compares with the folder of the state. */
function countRows(docs: string, firstColumn: string): number | undefined {
  const lines = docs.split('\n');
  const header = lines.findIndex((line) => line.startsWith(`| ${firstColumn} |`));
  if (header < 0) return undefined;
  const rows = lines.slice(header + 2);
  return rows.findIndex((line) => !line.startsWith('|'));
}

async function operationsRow(command: 'hook' | 'worker', program: string): Promise<Row> {
  const { all, byPath, settings } = await recordStop(command, program);
  return [command === 'hook' ? 'in front' : 'in the background', byPath.length, all.length, mostOften(settings)];
}

function mostOften(settings: ReadonlyMap<string, readonly FileOperation[]>): number {
  return Math.max(...[...settings.values()].map(({ length }) => length));
}

function formatTable(header: Row, rows: readonly Row[]): string {
  const all = [header, ...rows].map((row) => row.map(String));
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const pad = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return all.map((row) => row.map(pad).join('  ').trimEnd()).join('\n');
}

const { values } = parseArgs({ options: { at: { type: 'string' } } });
const root = resolve(values.at ?? fileURLToPath(new URL('..', import.meta.url)));
const source = join(root, 'src');
const byFolder = FOLDERS.map((folder) => ({ folder, files: readSources(source, folder) }));
const ofFolders = byFolder.flatMap(({ files }) => files);
const functions = measureFunctions(ofFolders);
const tooComplex = functions.filter(({ complexity }) => complexity > MOST_COMPLEX);
const docsPath = join(root, 'docs/architecture.md');
const docs = existsSync(docsPath) ? readFileSync(docsPath, 'utf8') : '';

execFileSync('npm', ['run', '-s', 'build'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
const program = join(root, 'dist/cli.cjs');

const sections = [
  formatTable(
    ['', 'files', 'lines'],
    [
      ...byFolder.map(({ folder, files }) => sizeRow(folder, files)),
      sizeRow('together', ofFolders),
      sizeRow('src', readSources(source, '.')),
    ],
  ),
  formatTable(
    ['kinds', ''],
    [
      ['locks', countRows(docs, 'lock') ?? 'not in the docs'],
      ['files that hold progress or consent', countRows(docs, 'file') ?? 'not in the docs'],
    ],
  ),
  formatTable(
    [`functions above ${MOST_COMPLEX}: ${tooComplex.length} of ${functions.length}`, 'complexity'],
    functions
      .slice(0, Math.max(LISTED, tooComplex.length))
      .map(({ path, line, name, complexity }) => [`${path}:${line} ${name}`, complexity]),
  ),
  formatTable(
    ['file operations of one Stop', 'by path below ~/.claude', 'all', 'most for one settings file'],
    [await operationsRow('hook', program), await operationsRow('worker', program)],
  ),
];
process.stdout.write(`${sections.join('\n\n')}\n`);
