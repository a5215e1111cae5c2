import { describe, expect, test } from 'vitest';
import { listWidgets } from '../../../src/commands/dashboard/charts.js';
import { findRefusal, findUndrawn, Widget } from '../../support/widget-rules.js';

const USUAL = { userId: undefined, gitIdentity: undefined, traceName: '{repository}' };
const WITH_USER = { ...USUAL, userId: 'dev-7' };

const MADE = 'Made by cc-langfuse dashboard.';
const turns = [{ column: 'isRootObservation', type: 'boolean', operator: '=', value: true }];
const anyOf = (column: string, value: string) => ({
  column,
  type: 'stringOptions',
  operator: 'any of',
  value: [value],
});
const responses = [anyOf('type', 'GENERATION')];
const tools = anyOf('type', 'TOOL');
const count = { measure: 'count', agg: 'count' };
const cost = { measure: 'totalCost', agg: 'sum' };
const average = { measure: 'value', agg: 'avg' };

/** A widget of observations, as it is sent. */
const widget = (name: string, chartType: string, metric: object, by?: string, filters: object[] = []) => ({
  name,
  description: MADE,
  view: 'observations',
  dimensions: by ? [{ field: by }] : [],
  metrics: [metric],
  filters,
  chartType,
});

test('without a user and with the usual names, these charts are made', () => {
  expect(listWidgets(USUAL).map((placed) => placed.widget)).toEqual([
    widget('Cost', 'NUMBER', cost),
    widget('Sessions', 'NUMBER', { measure: 'uniqueSessionIds', agg: 'uniq' }),
    widget('Turns', 'NUMBER', count, undefined, turns),
    widget('Tokens', 'NUMBER', { measure: 'totalTokens', agg: 'sum' }),
    widget('Cost by model', 'BAR_TIME_SERIES', cost, 'providedModelName', responses),
    widget('Cost by repository', 'HORIZONTAL_BAR', cost, 'traceName'),
    {
      ...widget('Turns by outcome', 'BAR_TIME_SERIES', count, 'level', turns),
      description: `${MADE} DEFAULT: completed. WARNING: interrupted, max_turns, max_tokens, context_window, refused, paused, cut, stopped_by_hook, empty, unfinished. ERROR: api_error.`,
    },
    {
      ...widget('User rating', 'LINE_TIME_SERIES', average, undefined, [anyOf('name', 'user_rating')]),
      description: `${MADE} The share of rated turns that are good. cc-langfuse rate rates a turn.`,
      view: 'scores-numeric',
    },
    widget('Tool calls by tool', 'HORIZONTAL_BAR', count, 'name', [tools]),
    widget('Tool errors by tool', 'HORIZONTAL_BAR', count, 'name', [tools, anyOf('level', 'ERROR')]),
    {
      ...widget('Tool error rate', 'LINE_TIME_SERIES', average, undefined, [anyOf('name', 'tool_error_rate')]),
      description: `${MADE} The average of the turns' score tool_error_rate, which CC_LANGFUSE_SCORES=true adds.`,
      view: 'scores-numeric',
    },
    {
      ...widget('Tokens read', 'BAR_TIME_SERIES', { measure: 'inputTokens', agg: 'sum' }, undefined, responses),
      description: `${MADE} What came from the cache and went to it is included.`,
    },
    widget('Tokens written', 'BAR_TIME_SERIES', { measure: 'outputTokens', agg: 'sum' }, undefined, responses),
    {
      ...widget('Tokens by kind', 'HORIZONTAL_BAR', { measure: 'usageByType', agg: 'sum' }, 'usageType', responses),
      description: `${MADE} The bar \`total\` is the sum of the others.`,
    },
    widget('Turn time, p50', 'LINE_TIME_SERIES', { measure: 'latency', agg: 'p50' }, undefined, turns),
    widget('Turn time, p95', 'LINE_TIME_SERIES', { measure: 'latency', agg: 'p95' }, undefined, turns),
    widget('Turns by version of Claude Code', 'BAR_TIME_SERIES', count, 'version', turns),
  ]);
});

test.each([
  ['a name', WITH_USER],
  ["git's address", { ...USUAL, gitIdentity: { authorEmail: undefined, configs: [] } }],
])('if the traces name a user, %s, costs are charted by user, too', (_, described) => {
  const withUser = listWidgets(described).map((placed) => placed.widget);
  const others = listWidgets(USUAL).map((placed) => placed.widget);
  expect(withUser).toEqual([
    ...others.slice(0, 6),
    widget('Cost by user', 'HORIZONTAL_BAR', cost, 'userId'),
    ...others.slice(6),
  ]);
});

test('if the traces have names of the user’s own, the chart by name says so', () => {
  const names = listWidgets({ ...USUAL, traceName: '{project}' }).map((placed) => placed.widget);
  expect(names).toContainEqual(widget('Cost by trace name', 'HORIZONTAL_BAR', cost, 'traceName'));
  expect(names.map(({ name }) => name)).not.toContain('Cost by repository');
});

describe.each([
  ['without a user', USUAL],
  ['with a user', WITH_USER],
])('the charts %s', (_, described) => {
  const placed = listWidgets(described);

  test.each(placed.map((each) => [each.widget.name, each.widget]))(
    '"%s" is one that Langfuse takes and draws',
    (_name, sent) => {
      const parsed = Widget.parse(sent);
      expect([findRefusal(parsed), findUndrawn(parsed)]).toEqual([undefined, undefined]);
    },
  );

  test('fill the rows of 12 columns, none over another, each with an id of its own', () => {
    const places = placed.map(({ place }, index) => place(`w${index}`));
    expect(new Set(places.map(({ id }) => id)).size).toBe(placed.length);
    const cells = places.flatMap(({ x, y, width, height }) =>
      Array.from(
        { length: Number(width) * Number(height) },
        (_cell, n) => `${Number(y) + Math.floor(n / Number(width))} ${Number(x) + (n % Number(width))}`,
      ),
    );
    const rows = Math.max(...places.map(({ y, height }) => Number(y) + Number(height)));
    expect(cells.toSorted()).toEqual(
      Array.from({ length: rows * 12 }, (_cell, n) => `${Math.floor(n / 12)} ${n % 12}`).toSorted(),
    );
  });
});

// What the rules are for: a widget of each kind that Langfuse refuses or does not draw whole.
test.each([
  [
    { dimensions: [{ field: 'metadata' }] },
    'Dimension "metadata" is not available for view "observations" in version "v2"',
  ],
  [
    { dimensions: [{ field: 'isRootObservation' }] },
    'Dimension "isRootObservation" is not available for view "observations" in version "v2"',
  ],
  [{ dimensions: [{ field: 'name' }, { field: 'type' }] }, 'Only pivot table widgets can have multiple dimensions'],
  [
    { metrics: [{ measure: 'value', agg: 'avg' }] },
    'Measure "value" is not available for view "observations" in version "v2"',
  ],
  [{ metrics: [{ measure: 'traceId', agg: 'sum' }] }, 'Aggregation "sum" is not valid for measure "traceId"'],
  [{ filters: [anyOf('usageType', 'input')] }, 'Unsupported filter column for view "observations": usageType'],
  [{ metrics: [count, cost] }, 'only the first metric is drawn'],
  [{ dimensions: [{ field: 'userId' }] }, "High cardinality dimension(s) 'userId' cannot be used with timeDimension"],
])('a chart over time with %j is not', (change, reason) => {
  const parsed = Widget.parse({ ...widget('x', 'BAR_TIME_SERIES', count), ...change });
  expect(findRefusal(parsed) ?? findUndrawn(parsed)).toBe(reason);
});
