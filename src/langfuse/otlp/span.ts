import type { Observation, Trace } from '../../observations/model.js';
import { version } from '../../shared/version.js';

/**
 * Observations as OpenTelemetry spans in OTLP/JSON, with the attributes that Langfuse reads. The bytes are those that
 * `@langfuse/tracing` and OpenTelemetry's own serializer would write, which the tests hold it to; importing the two
 * would cost the hook more time than all the rest of its work.
 */
export function encodeSpan(observation: Observation): string {
  const { trace, id, parentId, name, startTime, endTime } = observation;
  const head = JSON.stringify({
    traceId: trace.id,
    spanId: id,
    parentSpanId: parentId,
    name: name.toWellFormed(),
    kind: 1,
    startTimeUnixNano: nanoseconds(startTime),
    endTimeUnixNano: nanoseconds(endTime),
  });
  const attributes = [...encoded(ownAttributes(observation)), ...attributesOfTrace(trace)];
  return `${head.slice(0, -1)},"attributes":[${attributes.join(',')}],${SPAN_TAIL}`;
}

const SPAN_TAIL = JSON.stringify({
  droppedAttributesCount: 0,
  events: [],
  droppedEventsCount: 0,
  status: { code: 0 },
  links: [],
  droppedLinksCount: 0,
  flags: 0x101,
}).slice(1);

// Every observation of a trace carries them, and they are a third of its bytes.
const encodedTraces = new WeakMap<Trace, readonly string[]>();

function attributesOfTrace(trace: Trace): readonly string[] {
  const known = encodedTraces.get(trace) ?? encoded(traceAttributes(trace));
  encodedTraces.set(trace, known);
  return known;
}

function encoded(attributes: Attributes): string[] {
  const items: string[] = [];
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) items.push(JSON.stringify({ key: key.toWellFormed(), value: anyValue(value) }));
  }
  return items;
}

/** The body of an export request for spans that `encodeSpan` has written. */
export function encodeRequest(spans: readonly string[]): string {
  return `${REQUEST_HEAD}${spans.join(',')}${REQUEST_TAIL}`;
}

// With a scope that starts with `langfuse-sdk` Langfuse keeps the attributes it does not know out of the metadata.
export const scope = { name: 'langfuse-sdk-cc-langfuse', version };
export const resourceAttributes = { 'service.name': 'cc-langfuse', 'service.version': version };

const SPLIT = '"SPANS"';
const [REQUEST_HEAD, REQUEST_TAIL] = JSON.stringify({
  resourceSpans: [
    {
      resource: {
        attributes: Object.entries(resourceAttributes).map(([key, value]) => ({ key, value: anyValue(value) })),
        droppedAttributesCount: 0,
      },
      scopeSpans: [{ scope, spans: ['SPANS'] }],
    },
  ],
}).split(SPLIT);

type Attributes = { [key: string]: string | readonly string[] | undefined };

function ownAttributes(observation: Observation): Attributes {
  const { trace, parentId } = observation;
  const input = serialize(observation.input);
  const output = serialize(observation.output);
  return {
    'langfuse.observation.type': observation.type,
    'langfuse.observation.level': observation.level,
    'langfuse.observation.status_message': observation.statusMessage,
    'langfuse.environment': trace.environment,
    'langfuse.observation.input': input,
    'langfuse.observation.output': output,
    'langfuse.observation.model.name': observation.model,
    'langfuse.observation.usage_details': serialize(observation.usage),
    'langfuse.observation.completion_start_time': isoTime(observation.completionStartTime),
    'langfuse.observation.model.parameters': serialize(observation.modelParameters),
    ...prefixed('langfuse.observation.metadata', observation.metadata),
    ...(parentId === undefined && { 'langfuse.trace.input': input, 'langfuse.trace.output': output }),
  };
}

function traceAttributes(trace: Trace): Attributes {
  const isOurs = trace.parentId === undefined;
  return {
    'langfuse.trace.name': isOurs ? trace.name : undefined,
    'session.id': trace.sessionId,
    'user.id': trace.userId,
    'langfuse.trace.tags': trace.tags.length > 0 ? trace.tags : undefined,
    'langfuse.release': trace.release,
    ...(isOurs && prefixed('langfuse.trace.metadata', trace.metadata)),
  };
}

function prefixed(prefix: string, values: { readonly [key: string]: unknown }): Attributes {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [`${prefix}.${key}`, serialize(value) || undefined]),
  );
}

function serialize(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function isoTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : JSON.stringify(new Date(ms));
}

function anyValue(value: string | readonly string[]) {
  if (typeof value === 'string') return { stringValue: value.toWellFormed() };
  return { arrayValue: { values: value.map((item) => ({ stringValue: item.toWellFormed() })) } };
}

function nanoseconds(ms: number): string {
  return `${BigInt(ms) * 1_000_000n}`;
}
