import { LangfuseOtelSpanAttributes as names } from '@langfuse/core';
import { createObservationAttributes, createTraceAttributes } from '@langfuse/tracing';
import { type Attributes, ROOT_CONTEXT, TraceFlags, trace as traceApi } from '@opentelemetry/api';
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, test } from 'vitest';
import { encodeRequest, encodeSpan } from '../../../src/langfuse/otlp/span.js';
import { buildTurn } from '../../../src/observations/build/turn.js';
import { TRACE_KEYS } from '../../../src/observations/metadata-keys.js';
import type { Observation } from '../../../src/observations/model.js';
import { version } from '../../../src/shared/version.js';
import { type OtlpSpan, stored } from '../../support/langfuse-server.js';
import { recording, recordings, transcriptsOf } from '../../support/recording.js';
import { OPTIONS, turnsOf } from '../../support/traces.js';

/** Encodes observations with the packages of Langfuse and OpenTelemetry. */
async function theirRequest(observations: readonly Observation[]): Promise<string> {
  const exporter = new InMemorySpanExporter();
  let next: Observation | undefined;
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'cc-langfuse', 'service.version': version }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
    idGenerator: { generateTraceId: () => next?.trace.id ?? '', generateSpanId: () => next?.id ?? '' },
  });
  for (const observation of observations) {
    next = observation;
    const { trace, parentId, name, startTime, endTime } = observation;
    const parent = { traceId: trace.id, spanId: parentId ?? '', traceFlags: TraceFlags.SAMPLED };
    const context = parentId === undefined ? ROOT_CONTEXT : traceApi.setSpanContext(ROOT_CONTEXT, parent);
    const tracer = provider.getTracer('langfuse-sdk-cc-langfuse', version);
    tracer.startSpan(name, { startTime, attributes: theirAttributes(observation) }, context).end(endTime);
  }
  const bytes = JsonTraceSerializer.serializeRequest(exporter.getFinishedSpans());
  await provider.shutdown();
  return Buffer.from(bytes ?? []).toString('utf8');
}

function theirAttributes(observation: Observation): Attributes {
  const { type, trace, parentId, completionStartTime, usage, cost, ...content } = observation;
  const { level, statusMessage, input, output, model, modelParameters, metadata } = content;
  // `@langfuse/tracing` flattens metadata like this, but does not export the function.
  const facts: readonly string[] = TRACE_KEYS;
  const prefixed = Object.entries(trace.metadata)
    .filter(([key]) => parentId === undefined || !facts.includes(key))
    .map(([key, value]) => [
      `${names.TRACE_METADATA}.${key}`,
      typeof value === 'string' ? value : JSON.stringify(value),
    ])
    .filter(([, value]) => value);
  const all = {
    // Its types do not include every type of observation, but the attributes are the same for all.
    ...createObservationAttributes(type as 'generation', {
      level,
      ...(trace.environment !== undefined && { environment: trace.environment }),
      ...(statusMessage !== undefined && { statusMessage }),
      input,
      output,
      metadata,
      ...(model !== undefined && { model }),
      ...(modelParameters && { modelParameters }),
      ...(usage && { usageDetails: usage }),
      ...(cost && { costDetails: cost }),
      ...(completionStartTime !== undefined && { completionStartTime: new Date(completionStartTime) }),
    }),
    ...(parentId === undefined && createTraceAttributes({ input, output })),
    [names.IS_APP_ROOT]: parentId !== undefined && parentId === trace.parentId ? 'true' : undefined,
    [names.TRACE_NAME]: trace.name,
    [names.TRACE_SESSION_ID]: trace.sessionId,
    [names.TRACE_USER_ID]: trace.userId,
    [names.TRACE_TAGS]: trace.tags.length > 0 ? [...trace.tags] : undefined,
    [names.RELEASE]: trace.release,
    [names.VERSION]: trace.version,
    ...Object.fromEntries(prefixed),
  };
  return all as Attributes;
}

function observationsOf(options: Partial<typeof OPTIONS>): Observation[] {
  return recordings().flatMap((recording) =>
    transcriptsOf(recording).flatMap((path) =>
      turnsOf(path).flatMap((turn) => {
        const { children, root } = buildTurn(turn, { ...OPTIONS, ...options, sessionId: 'a session' });
        return [...children, root];
      }),
    ),
  );
}

describe('encodeSpan and encodeRequest write the same bytes as the packages of Langfuse and OpenTelemetry', () => {
  test.each([
    ['for every recorded observation', {}],
    [
      'for every recorded observation with user, tags, metadata, environment and release',
      { userId: 'me', tags: ['a', 'b'], metadata: { n: 1, list: ['x'], empty: '' }, environment: 'ci', release: 'v1' },
    ],
  ])('%s', async (_, options) => {
    const observations = observationsOf(options);
    expect(observations.length).toBeGreaterThan(250);
    for (const observation of observations) {
      expect(encodeRequest([encodeSpan(observation)])).toBe(await theirRequest([observation]));
    }
    expect(encodeRequest(observations.map((each) => encodeSpan(each)))).toBe(await theirRequest(observations));
  });
});

describe('encodeSpan', () => {
  const [some] = observationsOf({});

  test('writes a cost as the package of Langfuse does', async () => {
    if (!some) throw new Error('no observation');
    const observation: Observation = { ...some, type: 'generation', cost: { web_search_requests: 0.03, total: 0.03 } };
    expect(encodeRequest([encodeSpan(observation)])).toBe(await theirRequest([observation]));
  });

  test('replaces a lone surrogate in a name, a status message or metadata', () => {
    if (!some) throw new Error('no observation');
    const span = JSON.parse(
      encodeSpan({ ...some, name: 'a\uD800', statusMessage: '\uDC00b', metadata: { '\uD800': 'c\uD800' } }),
    );
    expect(stored(span)).toMatchObject({
      name: 'a\uFFFD',
      statusMessage: '\uFFFDb',
      metadata: { '\uFFFD': 'c\uFFFD' },
    });
  });

  test('writes the metadata of the trace to its root only, but that of the user to every observation', () => {
    const [path = ''] = transcriptsOf(recording('p-toolloop'));
    const [turn] = turnsOf(path);
    if (!turn) throw new Error('no turn');
    const { root, children } = buildTurn(turn, { ...OPTIONS, metadata: { team: 'x' }, sessionId: 'a session' });
    const [agent, ...others] = [root, ...children].map((each) => stored(JSON.parse(encodeSpan(each))));
    expect(agent?.trace.metadata).toMatchObject({ source: 'claude-code', turn_number: 1, team: 'x' });
    expect(others.length).toBeGreaterThan(10);
    for (const { trace } of others) expect(trace.metadata).toEqual({ team: 'x' });
    // Version 4 shows metadata in the reverse order: the summary comes first.
    const tool = others.find(({ type }) => type === 'tool');
    expect(Object.keys(tool?.metadata ?? {})).toEqual(['tool_name', 'tool_id', 'permission', 'summary', 'team']);
  });

  test('writes no attribute without a value', () => {
    if (!some) throw new Error('no observation');
    const span: OtlpSpan = JSON.parse(
      encodeSpan({ ...some, output: null, input: undefined, metadata: { none: null, some: 'x' } }),
    );
    const keys = span.attributes.map(({ key }) => key);
    expect(keys).toContain('langfuse.observation.metadata.some');
    expect(keys).not.toContain('langfuse.observation.input');
    expect(keys).not.toContain('langfuse.observation.output');
    expect(keys).not.toContain('langfuse.observation.metadata.none');
    const withoutValue = span.attributes.filter(({ value }) => (value?.stringValue ?? value?.arrayValue) == null);
    expect(withoutValue).toEqual([]);
  });
});

describe('the attributes of an experiment', () => {
  const [turn] = transcriptsOf(recording('p-toolloop')).flatMap((path) => turnsOf(path));
  if (!turn) throw new Error('no turn');
  const carriers = (root_observation_id: string) => {
    const experiment = { id: 'e1', 'item.id': 'i1', 'item.root_observation_id': root_observation_id };
    const { children, root } = buildTurn(turn, { ...OPTIONS, caller: { experiment }, sessionId: 'id' });
    const spans = [...children, root].map((each) => ({
      type: each.type,
      span: JSON.parse(encodeSpan(each)) as OtlpSpan,
    }));
    const isNamed = ({ span }: { span: OtlpSpan }) =>
      span.attributes.some(({ key }) => key.startsWith('langfuse.experiment.'));
    return { all: spans.map(({ type }) => type), named: spans.filter(isNamed).map(({ type }) => type) };
  };

  test('are on what has a cost, so that a tool that fails is no error of the item', () => {
    const { all, named } = carriers('f'.repeat(16));
    expect(new Set(all)).toEqual(new Set(['agent', 'generation', 'tool']));
    expect(named).toEqual(all.filter((type) => type === 'generation'));
  });

  test("are on a turn's root, too, if the caller calls it the root of the item", () => {
    const { root } = buildTurn(turn, { ...OPTIONS, sessionId: 'id' });
    const { all, named } = carriers(root.id);
    expect(named).toEqual(all.filter((type) => type !== 'tool'));
  });
});
