// npm run compare:ccusage -- <command of ccusage> [folder with projects/ ...]: the tokens that ccusage counts and `cost` does not, by
// day and by model. It is run by hand; docs/cost.md explains each difference. Without folders, each recording is a ~/.claude of its own.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../dist/cli.cjs', import.meta.url));
const RECORDINGS = fileURLToPath(new URL('../fixtures/recorded/', import.meta.url));
const OURS = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'];
const THEIRS = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheCreationTokens'];
const HEADINGS = ['input', 'output', 'cache read', 'cache write'];

type Row = { readonly [name: string]: string | number };
/** Tokens in the order of the headings, by day or model. */
type Counts = Map<string, readonly number[]>;

const [command = 'ccusage', ...folders] = process.argv.slice(2);
const recordings = readdirSync(RECORDINGS).map((name) => join(RECORDINGS, name));
const compared = (folders.length > 0 ? folders : recordings).filter((folder) => existsSync(join(folder, 'projects')));
const sums: Counts = new Map();
for (const folder of compared) compare(resolve(folder));
printTable(
  `${compared.length} folders`,
  [...sums].map(([name, tokens]) => [name, tokens]),
);

function compare(folder: string): void {
  const home = mkdtempSync(join(tmpdir(), 'compare-ccusage-'));
  try {
    const claude = join(home, '.claude');
    cpSync(join(folder, 'projects'), join(claude, 'projects'), { recursive: true });
    const env = { PATH: process.env.PATH, HOME: home, CLAUDE_CONFIG_DIR: claude, TZ: 'UTC' };
    const run = (program: string, args: readonly string[]) =>
      JSON.parse(execFileSync(program, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
    const ours = (by: string): Row[] => run(process.execPath, [PROGRAM, 'cost', '--json', '--by', by]).rows;
    // The oldest versions print a list for an empty home.
    const days: readonly (Row & { modelBreakdowns: Row[] })[] =
      run(command, ['daily', '--json', '--offline', '--timezone', 'UTC']).daily ?? [];
    const models = days.flatMap(({ modelBreakdowns }) => modelBreakdowns);
    const byDay = subtract(
      // ccusage 20 calls the date a period.
      addUp(days, ({ period, date = period }) => date, THEIRS),
      addUp(ours('day'), ({ day }) => day, OURS),
    );
    const byModel = subtract(
      // It counts a model in fast mode as another one.
      addUp(models, ({ modelName }) => String(modelName).replace(/-fast$/, ''), THEIRS),
      addUp(ours('model'), ({ model }) => model, OURS),
    );
    printTable(basename(folder), [...byDay, ...byModel]);
    add(sums, 'cc-langfuse', total(ours('day'), OURS));
    add(sums, 'ccusage has more', [...byDay.values()].reduce(plus, [0, 0, 0, 0]));
  } finally {
    rmSync(home, { recursive: true });
  }
}

function addUp(
  rows: readonly Row[],
  nameOf: (row: Row) => string | number | undefined,
  figures: readonly string[],
): Counts {
  const counts: Counts = new Map();
  for (const row of rows)
    add(
      counts,
      String(nameOf(row)),
      figures.map((name) => Number(row[name])),
    );
  return counts;
}

function total(rows: readonly Row[], figures: readonly string[]): readonly number[] {
  return [...addUp(rows, () => '', figures).values()][0] ?? [0, 0, 0, 0];
}

function add(counts: Counts, name: string, tokens: readonly number[]): void {
  counts.set(name, plus(counts.get(name) ?? [0, 0, 0, 0], tokens));
}

function plus(a: readonly number[], b: readonly number[]): readonly number[] {
  return a.map((count, index) => count + (b[index] ?? 0));
}

/** What differs. */
function subtract(theirs: Counts, ours: Counts): Counts {
  const differences: Counts = new Map(theirs);
  for (const [name, tokens] of ours)
    add(
      differences,
      name,
      tokens.map((count) => -count),
    );
  return new Map([...differences].filter(([, tokens]) => tokens.some((count) => count !== 0)));
}

function printTable(title: string, rows: readonly (readonly [string, readonly number[]])[]): void {
  if (rows.length === 0) return;
  const lines = [
    [title, ...HEADINGS],
    ...rows.map(([name, tokens]) => [`  ${name}`, ...tokens.map((count) => count.toLocaleString('en'))]),
  ];
  for (const [name = '', ...cells] of lines)
    process.stdout.write(`${name.padEnd(36)}${cells.map((cell) => cell.padStart(14)).join('')}\n`);
}
