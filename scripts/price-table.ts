// npm run prices [-- --langfuse <clone of langfuse>]: updates the list prices, and says what has changed.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { install } from '../test/real/claude-code.js';
import { KINDS, type ListedModel, type Row, readCatalog } from './price-catalog.js';

const TABLE = fileURLToPath(new URL('../src/costs/price-table.json', import.meta.url));
/** What Langfuse's list says of Anthropic's models, for the test that compares the two. */
const LANGFUSE = fileURLToPath(new URL('../fixtures/prices/langfuse.json', import.meta.url));
const LANGFUSE_LIST = 'worker/src/constants/default-model-prices.json';
const PAGE = 'platform.claude.com/docs/en/about-claude/pricing';

interface TableModel extends ListedModel {
  readonly earlier?: readonly { readonly until: string; readonly standard: Row }[];
}
type Models = { readonly [model: string]: TableModel };

const today = new Date().toISOString().slice(0, '2026-11-20'.length);
const { values } = parseArgs({ options: { langfuse: { type: 'string' } } });
updateTable();
if (values.langfuse !== undefined) updateLangfuse(values.langfuse);

function updateTable(): void {
  const installed = install('latest');
  if ('missing' in installed) throw new Error(installed.missing);
  const known = (JSON.parse(readFileSync(TABLE, 'utf8')) as { models: Models }).models;
  const catalog = readCatalog(readFileSync(installed.program, 'latin1'));
  // The catalog forgets models that have been retired.
  const models: Models = { ...known, ...mapEntries(catalog, (name, listed) => update(known[name], listed)) };
  writeList(TABLE, {
    date: today,
    source: 'Anthropic',
    from: `the model catalog of Claude Code ${installed.version}, and ${PAGE}`,
    kinds: KINDS,
    models,
  });
  execFileSync('npx', ['biome', 'format', '--write', TABLE], { stdio: 'ignore' });
  report('the table', known, models);
}

/** A price that has changed stays for what was used before. On which day it changed, a person has to look up. */
function update(known: TableModel | undefined, listed: ListedModel): TableModel {
  const { earlier = [], ...rest } = known ?? {};
  const isChanged = known !== undefined && !isDeepStrictEqual(known.standard, listed.standard);
  const all = isChanged ? [...earlier, { until: today, standard: known.standard }] : earlier;
  return { ...rest, ...listed, ...(all.length > 0 && { earlier: all }) };
}

function updateLangfuse(clone: string): void {
  const git = (...args: string[]) => execFileSync('git', ['-C', clone, ...args], { encoding: 'utf8', maxBuffer: 1e8 });
  const [commit = '', date = ''] = git('log', '-1', '--format=%H %cs', '--', LANGFUSE_LIST).trim().split(' ');
  const list = JSON.parse(git('show', `${commit}:${LANGFUSE_LIST}`)) as LangfuseModel[];
  const models = Object.fromEntries(
    list
      .filter(({ modelName }) => modelName.startsWith('claude-'))
      .map(({ modelName, pricingTiers: [base, ...others] }) => {
        const fast = others.find(({ name }) => name === 'Fast mode');
        return [modelName, { standard: toRow(base), ...(fast && { fast: toRow(fast) }) }];
      }),
  );
  const known = (JSON.parse(readFileSync(LANGFUSE, 'utf8')) as { models: LangfuseFacts }).models;
  writeList(LANGFUSE, { date, source: 'Langfuse', from: `${LANGFUSE_LIST} of ${commit}`, kinds: KINDS, models });
  report("Langfuse's list", known, models);
}

interface LangfuseModel {
  readonly modelName: string;
  readonly pricingTiers: readonly { readonly name: string; readonly prices: { readonly [kind: string]: number } }[];
}
type LangfuseFacts = { readonly [model: string]: unknown };

function toRow(tier: LangfuseModel['pricingTiers'][number] | undefined): (number | null)[] {
  return KINDS.map((kind) => {
    const price = tier?.prices[kind];
    return price === undefined ? null : Number((price * 1e6).toPrecision(12));
  });
}

function mapEntries<From, To>(record: { readonly [key: string]: From }, change: (key: string, value: From) => To) {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(key, value)]));
}

function writeList(path: string, { models, ...head }: { readonly models: object; readonly [field: string]: unknown }) {
  const fields = Object.entries(head).map(([name, value]) => `  "${name}": ${JSON.stringify(value)},`);
  const sorted = Object.entries(models).toSorted(([a], [b]) => a.localeCompare(b));
  const rows = sorted.map(([name, model]) => `    "${name}": ${JSON.stringify(model)}`).join(',\n');
  writeFileSync(path, ['{', ...fields, '  "models": {', rows, '  }', '}', ''].join('\n'));
}

function report(
  name: string,
  before: { readonly [model: string]: unknown },
  after: { readonly [model: string]: unknown },
) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  const changed = names.filter((model) => !isDeepStrictEqual(before[model], after[model]));
  console.log(changed.length === 0 ? `${name}: nothing has changed` : `${name}:`);
  for (const model of changed)
    console.log(`  ${model}: ${JSON.stringify(before[model] ?? null)} → ${JSON.stringify(after[model] ?? null)}`);
}
