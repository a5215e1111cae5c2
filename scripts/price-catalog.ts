/** Dollars for a million of each of KINDS, in their order. */
export type Row = readonly number[];

export const KINDS = [
  'input',
  'output',
  'cache_read_input_tokens',
  'input_cache_creation_5m',
  'input_cache_creation_1h',
] as const;

export interface ListedModel {
  readonly standard: Row;
  readonly fast?: Row;
  readonly longPrompt?: { readonly above: number; readonly prices: Row };
}

const NUMBER = '([\\d.e-]+)';
const CATALOG_ROW = `input:${NUMBER},output:${NUMBER},cache_write_5m:${NUMBER},cache_write_1h:${NUMBER},cache_read:${NUMBER}`;
const TIER = new RegExp(
  `(\\w+):\\{${CATALOG_ROW},web_search:0\\.01(?:,long_prompt:\\{above_prompt_tokens:${NUMBER},${CATALOG_ROW}\\})?\\}`,
  'g',
);
const MODEL = /\{id:"(claude-[\w-]+)",family:"\w+",(?:(?!\{id:").)*?pricing:"(\w+)"/gs;
const CONSTANT = new RegExp(
  `(\\w+)=\\{inputTokens:${NUMBER},outputTokens:${NUMBER},promptCacheWriteTokens:${NUMBER},` +
    `promptCacheWrite1hTokens:${NUMBER},promptCacheReadTokens:${NUMBER},webSearchRequests:0\\.01\\}`,
  'g',
);
/** The function that says what a model costs in fast mode. */
const FAST = /function \w+\((\w+)\)\{(?:if\((?:(?:\|\|)?\1==="claude-[\w-]+")+\)return \w+;)+return\}/g;
const FAST_CASE = /if\(((?:(?:\|\|)?\w+==="claude-[\w-]+")+)\)return (\w+);/g;

/** Reads the prices in the text of Claude Code's program: its model catalog, and what fast mode costs. Throws if it finds none. */
export function readCatalog(program: string): { [model: string]: ListedModel } {
  const catalog = /pricing_tiers:\{.*?\],aliases:/s.exec(program)?.[0] ?? '';
  const tiers = new Map([...catalog.matchAll(TIER)].map(([, name = '', ...cells]) => [name, toTier(cells)]));
  const constants = new Map([...program.matchAll(CONSTANT)].map(([, name = '', ...cells]) => [name, toRow(cells)]));
  const fast = new Map<string, Row>();
  for (const [body] of program.matchAll(FAST))
    for (const [, names = '', constant = ''] of body.matchAll(FAST_CASE))
      for (const [, name = ''] of names.matchAll(/"(claude-[\w-]+)"/g)) {
        const row = constants.get(constant);
        if (row) fast.set(name, row);
      }
  const models = [...catalog.matchAll(MODEL)].map(([, name = '', tier = '']) => {
    const listed = tiers.get(tier);
    if (!listed) throw new Error(`${name}: the catalog has no prices named ${tier}`);
    const inFastMode = fast.get(name);
    return [name.replace(/-4-0$/, '-4'), { ...listed, ...(inFastMode && { fast: inFastMode }) }] as const;
  });
  if (models.length === 0 || fast.size === 0) throw new Error('Claude Code has its prices in another form now');
  return Object.fromEntries(models);
}

function toTier(cells: readonly (string | undefined)[]): ListedModel {
  const above = cells[5];
  const long = above === undefined ? undefined : { above: Number(above), prices: toRow(cells.slice(6)) };
  return { standard: toRow(cells), ...(long && { longPrompt: long }) };
}

/** The catalog names the price of reading the cache last. */
function toRow([input, output, for5m, for1h, read]: readonly (string | undefined)[]): Row {
  return [input, output, read, for5m, for1h].map(Number);
}
