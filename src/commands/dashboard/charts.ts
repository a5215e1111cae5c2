import type { Settings } from '../../config/settings.js';
import { SETTINGS } from '../../config/settings-table.js';
import type { Placement, Widget } from '../../langfuse/dashboards.js';
import { OUTCOMES } from '../../observations/build/ending.js';
import { RATING } from '../../observations/build/scores.js';
import { groupBy } from '../../shared/group-by.js';

export const NAME = 'Claude Code';

/** By this beginning of its description a dashboard or a chart is known to be of this program. */
export const MARK = 'Made by cc-langfuse dashboard.';

/** It has one metric: Langfuse draws only the first, except in a table. */
interface Chart extends Pick<Widget, 'name' | 'chartType'> {
  readonly about?: string;
  readonly view?: Widget['view'];
  readonly metric: Widget['metrics'][number];
  readonly by?: string;
  readonly filters?: readonly object[];
}

/** What the settings say about the traces that are to be drawn. */
type Described = Pick<Settings, 'userId' | 'gitIdentity' | 'traceName'>;

const TURNS = { column: 'isRootObservation', type: 'boolean', operator: '=', value: true };
const isAnyOf = (column: string, ...value: string[]) => ({ column, type: 'stringOptions', operator: 'any of', value });
const RESPONSES = isAnyOf('type', 'GENERATION');
const TOOLS = isAnyOf('type', 'TOOL');
const COUNT = { measure: 'count', agg: 'count' };
const sum = (measure: string) => ({ measure, agg: 'sum' });

/** How the level of a root says how its turn has ended: no chart groups by metadata. */
const LEVELS = [...groupBy(Object.entries(OUTCOMES), ([, { level }]) => level)]
  .map(([level, outcomes]) => `${level}: ${outcomes.map(([outcome]) => outcome).join(', ')}.`)
  .join(' ');

const COST_BY_USER: Chart = {
  name: 'Cost by user',
  metric: sum('totalCost'),
  by: 'userId',
  chartType: 'HORIZONTAL_BAR',
};

/** The rows of the grid. What is not set by default is no group, or its chart would be one bar "n/a". */
const listRows = ({ userId, gitIdentity, traceName }: Described): readonly (readonly Chart[])[] => [
  [
    { name: 'Cost', metric: sum('totalCost'), chartType: 'NUMBER' },
    { name: 'Sessions', metric: { measure: 'uniqueSessionIds', agg: 'uniq' }, chartType: 'NUMBER' },
    { name: 'Turns', metric: COUNT, filters: [TURNS], chartType: 'NUMBER' },
    { name: 'Tokens', metric: sum('totalTokens'), chartType: 'NUMBER' },
  ],
  [
    {
      name: 'Cost by model',
      metric: sum('totalCost'),
      by: 'providedModelName',
      filters: [RESPONSES],
      chartType: 'BAR_TIME_SERIES',
    },
  ],
  [
    {
      name: traceName === SETTINGS.CC_LANGFUSE_TRACE_NAME.default ? 'Cost by repository' : 'Cost by trace name',
      metric: sum('totalCost'),
      by: 'traceName',
      chartType: 'HORIZONTAL_BAR',
    },
    ...(userId === undefined && gitIdentity === undefined ? [] : [COST_BY_USER]),
  ],
  [
    {
      name: 'Turns by outcome',
      about: LEVELS,
      metric: COUNT,
      by: 'level',
      filters: [TURNS],
      chartType: 'BAR_TIME_SERIES',
    },
    {
      name: 'User rating',
      about: 'The share of rated turns that are good. cc-langfuse rate rates a turn.',
      view: 'scores-numeric',
      metric: { measure: 'value', agg: 'avg' },
      filters: [isAnyOf('name', RATING)],
      chartType: 'LINE_TIME_SERIES',
    },
  ],
  [
    { name: 'Tool calls by tool', metric: COUNT, by: 'name', filters: [TOOLS], chartType: 'HORIZONTAL_BAR' },
    {
      name: 'Tool errors by tool',
      metric: COUNT,
      by: 'name',
      filters: [TOOLS, isAnyOf('level', 'ERROR')],
      chartType: 'HORIZONTAL_BAR',
    },
    {
      name: 'Tool error rate',
      about: "The average of the turns' score tool_error_rate, which CC_LANGFUSE_SCORES=true adds.",
      view: 'scores-numeric',
      metric: { measure: 'value', agg: 'avg' },
      filters: [isAnyOf('name', 'tool_error_rate')],
      chartType: 'LINE_TIME_SERIES',
    },
  ],
  [
    {
      name: 'Tokens read',
      about: 'What came from the cache and went to it is included.',
      metric: sum('inputTokens'),
      filters: [RESPONSES],
      chartType: 'BAR_TIME_SERIES',
    },
    { name: 'Tokens written', metric: sum('outputTokens'), filters: [RESPONSES], chartType: 'BAR_TIME_SERIES' },
    {
      // Langfuse 4.16 does not filter by `usageType`. Stacked, `total` would make the bars twice as high.
      name: 'Tokens by kind',
      about: 'The bar `total` is the sum of the others.',
      metric: sum('usageByType'),
      by: 'usageType',
      filters: [RESPONSES],
      chartType: 'HORIZONTAL_BAR',
    },
  ],
  [
    {
      name: 'Turn time, p50',
      metric: { measure: 'latency', agg: 'p50' },
      filters: [TURNS],
      chartType: 'LINE_TIME_SERIES',
    },
    {
      name: 'Turn time, p95',
      metric: { measure: 'latency', agg: 'p95' },
      filters: [TURNS],
      chartType: 'LINE_TIME_SERIES',
    },
    {
      name: 'Turns by version of Claude Code',
      metric: COUNT,
      by: 'version',
      filters: [TURNS],
      chartType: 'BAR_TIME_SERIES',
    },
  ],
];

export interface PlacedWidget {
  readonly widget: Widget;
  /** Returns where a widget with this id belongs. */
  readonly place: (widgetId: string) => Placement;
}

const COLUMNS = 12;

export function listWidgets(described: Described): PlacedWidget[] {
  const placed: PlacedWidget[] = [];
  let y = 0;
  for (const row of listRows(described)) {
    const width = COLUMNS / row.length;
    const height = row.every(({ chartType }) => chartType === 'NUMBER') ? 3 : 6;
    for (const [index, chart] of row.entries()) {
      const position = { x: index * width, y, width, height };
      const id = `cc-langfuse-${placed.length + 1}`;
      placed.push({ widget: buildWidget(chart), place: (widgetId) => ({ type: 'widget', id, widgetId, ...position }) });
    }
    y += height;
  }
  return placed;
}

function buildWidget({ about, view = 'observations', metric, by, filters = [], ...chart }: Chart): Widget {
  return {
    ...chart,
    description: about === undefined ? MARK : `${MARK} ${about}`,
    view,
    dimensions: by === undefined ? [] : [{ field: by }],
    metrics: [metric],
    filters,
  };
}

/** Filters for the whole dashboard: the project may also have traces of other programs. */
export function listFilters(autoTags: readonly string[]): object[] {
  const tag = 'claude-code';
  return autoTags.includes(tag) ? [{ column: 'tags', type: 'arrayOptions', operator: 'any of', value: [tag] }] : [];
}
