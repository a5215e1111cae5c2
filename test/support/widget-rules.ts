import * as z from 'zod';

// Langfuse 4.16.0: packages/shared/src/interfaces/filters.ts, the filters that are of use here.
const column = z.string();
export const SingleFilter = z.discriminatedUnion('type', [
  z.object({
    column,
    type: z.literal('stringOptions'),
    operator: z.enum(['any of', 'none of']),
    value: z.array(z.string()).nonempty(),
  }),
  z.object({
    column,
    type: z.literal('arrayOptions'),
    operator: z.enum(['any of', 'none of', 'all of']),
    value: z.array(z.string()),
  }),
  z.object({ column, type: z.literal('boolean'), operator: z.enum(['=', '<>']), value: z.boolean() }),
]);

const words = (text: string) => text.trim().split(/\s+/);

interface View {
  /** What a widget may group by: those of the view that are not hidden from widgets. */
  readonly dimensions: readonly string[];
  readonly numericMeasures: readonly string[];
  readonly otherMeasures: readonly string[];
  readonly filterColumns: readonly string[];
}

// packages/shared/src/features/query/dataModel.ts, version v2: eventsObservationsView and scoresNumericViewV2.
// web/src/features/dashboard/lib/dashboardUiTableToViewMapping.ts: `usageType` groups, but does not filter.
const VIEWS: { readonly [view: string]: View } = {
  observations: {
    dimensions: words(`environment type name level version userId sessionId tags release traceName traceRelease
      traceVersion providedModelName promptName promptVersion startTimeMonth toolNames calledToolNames costType
      usageType experimentName experimentDatasetId`),
    numericMeasures: words(`count latency streamingLatency inputTokens outputTokens totalTokens outputTokensPerSecond
      tokensPerSecond inputCost outputCost totalCost timeToFirstToken countScores toolDefinitions toolCalls costByType
      usageByType`),
    otherMeasures: words('traceId uniqueUserIds uniqueSessionIds'),
    filterColumns: words(`traceName name userId sessionId metadata type tags providedModelName level toolNames
      calledToolNames traceRelease traceVersion environment release version experimentName experimentDatasetId
      experimentId isRootObservation`),
  },
  'scores-numeric': {
    dimensions: words(`sessionId traceName userId tags traceRelease traceVersion observationName observationModelName
      observationPromptName observationPromptVersion id environment name source dataType traceId configId timestampMonth
      timestampDay observationId value`),
    numericMeasures: words('count value'),
    otherMeasures: [],
    filterColumns: words(`name source value dataType tags environment userId sessionId metadata traceName
      observationName traceRelease traceVersion`),
  },
};

// validateQuery.ts: a chart over time cannot group by them; the others show the largest.
const HIGH_CARDINALITY = words('userId sessionId experimentName experimentDatasetId id traceId observationId');

// packages/shared/src/features/query/types.ts, getValidAggregationsForMeasureType
const ALL_AGGREGATIONS = words('sum avg count max min p50 p75 p90 p95 p99 histogram uniq');

// web/src/features/public-api/types/unstable-dashboard-widgets.ts and schema.prisma.
export const Widget = z.object({
  name: z.string().min(1),
  description: z.string().default(''),
  view: z.enum(['observations', 'scores-numeric', 'scores-boolean', 'scores-categorical']),
  dimensions: z.array(z.object({ field: z.string().min(1) })),
  metrics: z.array(z.object({ measure: z.string().min(1), agg: z.enum(ALL_AGGREGATIONS) })).min(1),
  filters: z.array(SingleFilter),
  chartType: z.enum([
    'LINE_TIME_SERIES',
    'AREA_TIME_SERIES',
    'BAR_TIME_SERIES',
    'HORIZONTAL_BAR',
    'VERTICAL_BAR',
    'PIE',
    'NUMBER',
    'HISTOGRAM',
    'PIVOT_TABLE',
  ]),
});
export type Widget = z.infer<typeof Widget>;

/**
 * Says why Langfuse refuses a widget, as normalizePublicDashboardWidgetInput and validatePublicDashboardWidgetInput do in
 * web/src/features/widgets/server/public-dashboard-widget-service.ts.
 */
export function findRefusal({ view: name, dimensions, metrics, filters, chartType }: Widget): string | undefined {
  const view = VIEWS[name];
  if (!view) return `this test knows nothing about the view ${name}`;
  const filter = filters.find((each) => !view.filterColumns.includes(each.column));
  if (filter) return `Unsupported filter column for view "${name}": ${filter.column}`;
  const dimension = dimensions.find(({ field }) => !view.dimensions.includes(field));
  if (dimension) return `Dimension "${dimension.field}" is not available for view "${name}" in version "v2"`;
  for (const { measure, agg } of metrics) {
    const isNumeric = view.numericMeasures.includes(measure);
    if (!isNumeric && !view.otherMeasures.includes(measure))
      return `Measure "${measure}" is not available for view "${name}" in version "v2"`;
    if (!(isNumeric ? ALL_AGGREGATIONS : ['count', 'uniq']).includes(agg))
      return `Aggregation "${agg}" is not valid for measure "${measure}"`;
  }
  if (chartType !== 'PIVOT_TABLE' && dimensions.length > 1)
    return 'Only pivot table widgets can have multiple dimensions';
  return undefined;
}

/** Says what Langfuse accepts, but does not draw, or not whole: web/src/features/widgets/components/DashboardWidget.tsx. */
export function findUndrawn({ dimensions, metrics, chartType }: Widget): string | undefined {
  if (chartType !== 'PIVOT_TABLE' && metrics.length > 1) return 'only the first metric is drawn';
  const isOverTime = chartType.endsWith('TIME_SERIES');
  const many = dimensions.find(({ field }) => HIGH_CARDINALITY.includes(field));
  return isOverTime && many
    ? `High cardinality dimension(s) '${many.field}' cannot be used with timeDimension`
    : undefined;
}
