import type { Observation, Trace } from '../../observations/model.js';
import { version } from '../../shared/version.js';

// With a scope that starts with `langfuse-sdk` Langfuse keeps the attributes it does not know out of the metadata.
export const scope = { name: 'langfuse-sdk-cc-langfuse', version };
export const resourceAttributes = { 'service.name': 'cc-langfuse', 'service.version': version };

/**
 * Encodes an observation as an OpenTelemetry span in OTLP/JSON, with the attributes that Langfuse reads. The bytes are those
 * that `@langfuse/tracing` and OpenTelemetry's own serializer would write, as a test proves; importing the two would cost the
 * hook more time than all the rest of its work.
 */
export function encodeSpan(observation: Observation): string {
  const { trace, id, parentId, name, startTime, endTime } = observation;
  const head = JSON.stringify({
    traceId: trace.id,
    spanId: id,
    parentSpanId: parentId,
    name: name.toWellFormed(),
    kind: 1,
    startTimeUnixNano: formatNanoseconds(startTime),
    endTimeUnixNano: formatNanoseconds(endTime),
  });
  const attributes = [...encodeAttributes(buildAttributes(observation)), ...encodeTrace(trace)];
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

// Every observation of a trace carries the trace's attributes, which are a third of its bytes.
const encodedTraces = new WeakMap<Trace, readonly string[]>();

function encodeTrace(trace: Trace): readonly string[] {
  const known = encodedTraces.get(trace) ?? encodeAttributes(buildTraceAttributes(trace));
  encodedTraces.set(trace, known);
  return known;
}

function encodeAttributes(attributes: Attributes): string[] {
  const items: string[] = [];
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) items.push(JSON.stringify({ key: key.toWellFormed(), value: encodeValue(value) }));
  }
  return items;
}

const RESOURCE = JSON.stringify({
  attributes: Object.entries(resourceAttributes).map(([key, value]) => ({ key, value: encodeValue(value) })),
  droppedAttributesCount: 0,
});
const SCOPE = JSON.stringify(scope);

/** The body of a request with spans from `encodeSpan`. */
export function encodeRequest(spans: readonly string[]): string {
  const scopeSpans = `{"scope":${SCOPE},"spans":[${spans.join(',')}]}`;
  return `{"resourceSpans":[{"resource":${RESOURCE},"scopeSpans":[${scopeSpans}]}]}`;
}

type Attributes = { [key: string]: string | readonly string[] | undefined };

function buildAttributes(observation: Observation): Attributes {
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
    'langfuse.observation.completion_start_time': formatTime(observation.completionStartTime),
    'langfuse.observation.model.parameters': serialize(observation.modelParameters),
    ...flattenMetadata('langfuse.observation.metadata', observation.metadata),
    ...(parentId === undefined && { 'langfuse.trace.input': input, 'langfuse.trace.output': output }),
  };
}

function buildTraceAttributes(trace: Trace): Attributes {
  // A trace of which another program has the root is described there.
  const isOwn = trace.parentId === undefined;
  return {
    'langfuse.trace.name': isOwn ? trace.name : undefined,
    'session.id': trace.sessionId,
    'user.id': trace.userId,
    'langfuse.trace.tags': trace.tags.length > 0 ? trace.tags : undefined,
    'langfuse.release': trace.release,
    ...(isOwn && flattenMetadata('langfuse.trace.metadata', trace.metadata)),
  };
}

function flattenMetadata(prefix: string, metadata: { readonly [key: string]: unknown }): Attributes {
  return Object.fromEntries(
    Object.entries(metadata).map(([key, value]) => [`${prefix}.${key}`, serialize(value) || undefined]),
  );
}

function serialize(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function formatTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : JSON.stringify(new Date(ms));
}

function encodeValue(value: string | readonly string[]) {
  if (typeof value === 'string') return { stringValue: value.toWellFormed() };
  return { arrayValue: { values: value.map((item) => ({ stringValue: item.toWellFormed() })) } };
}

function formatNanoseconds(ms: number): string {
  return `${BigInt(ms) * 1_000_000n}`;
}
