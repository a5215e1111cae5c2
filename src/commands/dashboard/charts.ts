import type { Placement, Widget } from '../../langfuse/dashboards.js';

export const NAME = 'Claude Code';

/** By this beginning of its description a dashboard or a chart is known to be of this program. */
export const MARK = 'Made by cc-langfuse dashboard.';

interface Chart extends Omit<Widget, 'view' | 'description' | 'dimensions' | 'filters'> {
  readonly about?: string;
  readonly by?: string;
  readonly filters?: readonly object[];
  /** On a grid of 12 columns. */
  readonly place: { readonly x: number; readonly y: number; readonly width: number; readonly height: number };
}

const TURNS = { column: 'isRootObservation', type: 'boolean', operator: '=', value: true };
const isAnyOf = (column: string, ...value: string[]) => ({ column, type: 'stringOptions', operator: 'any of', value });
const TOOLS = isAnyOf('type', 'TOOL');
const sum = (measure: string) => ({ measure, agg: 'sum' });
const COUNT = { measure: 'count', agg: 'count' };

/** A row of the grid, by its first line and height; a chart, by its column and width. */
const place = (y: number, height: number) => (x: number, width: number) => ({ x, y, width, height });
const [numbers, costs, owners, tokens, tools, turns] = [
  place(0, 3),
  place(3, 6),
  place(9, 6),
  place(15, 6),
  place(21, 6),
  place(27, 6),
];

const CHARTS: readonly Chart[] = [
  { name: 'Cost', metrics: [sum('totalCost')], chartType: 'NUMBER', place: numbers(0, 3) },
  {
    name: 'Sessions',
    metrics: [{ measure: 'uniqueSessionIds', agg: 'uniq' }],
    chartType: 'NUMBER',
    place: numbers(3, 3),
  },
  { name: 'Turns', metrics: [COUNT], filters: [TURNS], chartType: 'NUMBER', place: numbers(6, 3) },
  { name: 'Tokens', metrics: [sum('totalTokens')], chartType: 'NUMBER', place: numbers(9, 3) },
  {
    name: 'Cost by model',
    metrics: [sum('totalCost')],
    by: 'providedModelName',
    filters: [isAnyOf('type', 'GENERATION')],
    chartType: 'BAR_TIME_SERIES',
    place: costs(0, 12),
  },
  {
    name: 'Cost by user',
    metrics: [sum('totalCost')],
    by: 'userId',
    chartType: 'HORIZONTAL_BAR',
    place: owners(0, 6),
  },
  {
    name: 'Cost by trace name',
    metrics: [sum('totalCost')],
    by: 'traceName',
    chartType: 'HORIZONTAL_BAR',
    place: owners(6, 6),
  },
  {
    name: 'Tokens read and written',
    about: 'Input includes what came from the cache and went to it.',
    metrics: [sum('inputTokens'), sum('outputTokens')],
    filters: [isAnyOf('type', 'GENERATION')],
    chartType: 'BAR_TIME_SERIES',
    place: tokens(0, 6),
  },
  {
    // Langfuse 4.16 does not filter by `usageType`. Stacked, `total` would make the bars twice as high.
    name: 'Tokens by kind',
    about: 'The bar `total` is the sum of the others.',
    metrics: [sum('usageByType')],
    by: 'usageType',
    filters: [isAnyOf('type', 'GENERATION')],
    chartType: 'HORIZONTAL_BAR',
    place: tokens(6, 6),
  },
  {
    name: 'Tool calls',
    metrics: [COUNT],
    by: 'name',
    filters: [TOOLS],
    chartType: 'HORIZONTAL_BAR',
    place: tools(0, 6),
  },
  {
    name: 'Tool errors',
    metrics: [COUNT],
    by: 'name',
    filters: [TOOLS, isAnyOf('level', 'ERROR')],
    chartType: 'HORIZONTAL_BAR',
    place: tools(6, 6),
  },
  {
    name: 'Turn time, p50 and p95',
    metrics: [
      { measure: 'latency', agg: 'p50' },
      { measure: 'latency', agg: 'p95' },
    ],
    filters: [TURNS],
    chartType: 'LINE_TIME_SERIES',
    place: turns(0, 6),
  },
  {
    name: 'Turns by version of Claude Code',
    metrics: [COUNT],
    by: 'version',
    filters: [TURNS],
    chartType: 'BAR_TIME_SERIES',
    place: turns(6, 6),
  },
];

interface PlacedWidget {
  readonly widget: Widget;
  /** Returns where a widget with this id belongs. */
  readonly place: (widgetId: string) => Placement;
}

export function listWidgets(): PlacedWidget[] {
  return CHARTS.map(({ place: position, by, about, filters = [], ...chart }, index) => ({
    widget: {
      ...chart,
      description: about === undefined ? MARK : `${MARK} ${about}`,
      view: 'observations',
      dimensions: by === undefined ? [] : [{ field: by }],
      filters,
    },
    place: (widgetId) => ({ type: 'widget', id: `cc-langfuse-${index + 1}`, widgetId, ...position }),
  }));
}

/** Filters for the whole dashboard: the project may also have traces of other programs. */
export function listFilters(autoTags: readonly string[]): object[] {
  const tag = 'claude-code';
  return autoTags.includes(tag) ? [{ column: 'tags', type: 'arrayOptions', operator: 'any of', value: [tag] }] : [];
}
