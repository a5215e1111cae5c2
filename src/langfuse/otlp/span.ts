import { cutContent } from '../../observations/content/cut.js';
import { selectOwnMetadata } from '../../observations/metadata-keys.js';
import type { Observation, Trace } from '../../observations/model.js';
import { isRecord, type Json, parseJson } from '../../shared/json.js';
import { version } from '../../shared/version.js';

/**
 * Encodes an observation as an OpenTelemetry span in OTLP/JSON, with the attributes that Langfuse reads. The bytes are those
 * that `@langfuse/tracing` and OpenTelemetry's own serializer would write, as a test proves; importing the two would cost the
 * hook more time than all the rest of its work.
 */
export function encodeSpan(
  observation: Observation,
  { kind = INTERNAL, status, attributes: others = {} }: Conventional = {},
): string {
  const { trace, id, parentId, name, startTime, endTime } = observation;
  const head = JSON.stringify({
    traceId: trace.id,
    spanId: id,
    parentSpanId: parentId,
    name: name.toWellFormed(),
    kind,
    startTimeUnixNano: formatNanoseconds(startTime),
    endTimeUnixNano: formatNanoseconds(endTime),
  });
  const attributes = [
    ...encodeAttributes(buildAttributes(observation)),
    ...encodeTrace(trace, parentId === undefined),
    ...encodeAttributes(buildExperimentAttributes(observation)),
    ...encodeAttributes(others),
  ];
  return `${head.slice(0, -1)},"attributes":[${attributes.join(',')}],${status ? encodeTail(status) : UNSET_TAIL}`;
}

/** What a span says besides Langfuse's attributes, which have the level and the status message, too. */
interface Conventional {
  readonly kind?: number;
  readonly status?: Status | undefined;
  readonly attributes?: Attributes;
}

interface Status {
  readonly code: number;
  readonly message?: string | undefined;
}

const INTERNAL = 1;

function encodeTail({ code, message }: Status): string {
  const tail = {
    droppedAttributesCount: 0,
    events: [],
    droppedEventsCount: 0,
    status: { code, message: message?.toWellFormed() },
    links: [],
    droppedLinksCount: 0,
    flags: 0x101,
  };
  return JSON.stringify(tail).slice(1);
}

const UNSET_TAIL = encodeTail({ code: 0 });

// Every observation of a trace carries the trace's attributes, which are a third of its bytes.
const encodedTraces = new WeakMap<Trace, readonly string[]>();

function encodeTrace(trace: Trace, isRoot: boolean): readonly string[] {
  if (isRoot) return encodeAttributes(buildTraceAttributes(trace, trace.metadata));
  const known =
    encodedTraces.get(trace) ?? encodeAttributes(buildTraceAttributes(trace, selectOwnMetadata(trace.metadata)));
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

const INPUT = 'langfuse.observation.input';
const OUTPUT = 'langfuse.observation.output';
const METADATA = 'langfuse.observation.metadata';
const TRACE_INPUT = 'langfuse.trace.input';
const TRACE_OUTPUT = 'langfuse.trace.output';

interface EncodedSpan {
  readonly parentSpanId?: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

/** Cuts the content of an encoded span. Its observation is no longer there: it is seldom needed, and takes much memory. */
export function cutSpan(json: string, maxChars: number): string {
  const span: EncodedSpan = JSON.parse(json);
  const texts = span.attributes.map(({ key, value }) => [key, value.stringValue ?? ''] as const);
  const ownMetadata = texts.filter(([key]) => key.startsWith(`${METADATA}.`));
  const byKey = new Map(texts);
  const whole = {
    input: deserialize(byKey.get(INPUT)),
    output: deserialize(byKey.get(OUTPUT)),
    metadata: Object.fromEntries(ownMetadata.map(([key, text]) => [key.slice(METADATA.length + 1), text])),
  };
  const content = buildContentAttributes(cutContent(whole, maxChars), span.parentSpanId === undefined);
  const others = span.attributes.filter(({ key }) => !(key in content)).map((each) => JSON.stringify(each));
  const attributes = [...others, ...encodeAttributes(content)];
  return `${JSON.stringify({ ...span, attributes: undefined }).slice(0, -1)},"attributes":[${attributes.join(',')}]}`;
}

/** A text that is JSON itself cannot be told from a value: it is cut as one. */
function deserialize(text: string | undefined): Json | undefined {
  const value = text === undefined ? undefined : parseJson(text);
  return isRecord(value) || Array.isArray(value) ? (value as Json) : text;
}

function buildContentAttributes(
  { input, output, metadata }: Pick<Observation, 'input' | 'output' | 'metadata'>,
  isRoot: boolean,
) {
  const [ownInput, ownOutput] = [serialize(input), serialize(output)];
  return {
    [INPUT]: ownInput,
    [OUTPUT]: ownOutput,
    ...flattenMetadata(METADATA, metadata),
    ...(isRoot && { [TRACE_INPUT]: ownInput, [TRACE_OUTPUT]: ownOutput }),
  };
}

const RESOURCE = JSON.stringify({
  attributes: [
    { key: 'service.name', value: encodeValue('cc-langfuse') },
    { key: 'service.version', value: encodeValue(version) },
  ],
  droppedAttributesCount: 0,
});

// With a scope that starts with `langfuse-sdk` Langfuse keeps the attributes it does not know out of the metadata.
const SCOPE = JSON.stringify({ name: 'langfuse-sdk-cc-langfuse', version });

/** The body of a request with spans from `encodeSpan`. */
export function encodeRequest(spans: readonly string[]): string {
  const scopeSpans = `{"scope":${SCOPE},"spans":[${spans.join(',')}]}`;
  return `{"resourceSpans":[{"resource":${RESOURCE},"scopeSpans":[${scopeSpans}]}]}`;
}

/** A number is a whole one. */
export interface Attributes {
  readonly [key: string]: string | number | readonly string[] | undefined;
}

function buildAttributes(observation: Observation): Attributes {
  const { trace, parentId } = observation;
  const input = serialize(observation.input);
  const output = serialize(observation.output);
  return {
    'langfuse.observation.type': observation.type,
    'langfuse.observation.level': observation.level,
    'langfuse.observation.status_message': observation.statusMessage,
    'langfuse.environment': trace.environment,
    [INPUT]: input,
    [OUTPUT]: output,
    'langfuse.observation.model.name': observation.model,
    'langfuse.observation.usage_details': serialize(observation.usage),
    'langfuse.observation.cost_details': serialize(observation.cost),
    'langfuse.observation.completion_start_time': formatTime(observation.completionStartTime),
    'langfuse.observation.model.parameters': serialize(observation.modelParameters),
    ...flattenMetadata(METADATA, observation.metadata),
    ...(parentId === undefined && { [TRACE_INPUT]: input, [TRACE_OUTPUT]: output }),
    // Below a span of the caller a turn's root counts as a root, too (Langfuse's packages/shared/src/eventsTable.ts).
    'langfuse.internal.is_app_root': parentId !== undefined && parentId === trace.parentId ? 'true' : undefined,
  };
}

/**
 * Langfuse reads a trace's metadata from its root, and shows what any other observation says of the trace above that one's own
 * metadata, which it would bury. So only the root says all of it, and the others what the user has added, to be filtered by.
 */
function buildTraceAttributes(trace: Trace, metadata: Trace['metadata']): Attributes {
  // A trace of which another program has the root is described there.
  const isOwn = trace.parentId === undefined;
  return {
    'langfuse.trace.name': isOwn ? trace.name : trace.callerName,
    'session.id': trace.sessionId,
    'user.id': trace.userId,
    'langfuse.trace.tags': trace.tags.length > 0 ? trace.tags : undefined,
    'langfuse.release': trace.release,
    'langfuse.version': trace.version,
    ...(isOwn && flattenMetadata('langfuse.trace.metadata', metadata)),
  };
}

/**
 * An experiment's cost is the sum over the spans that name it themselves, and each of them that has failed counts as an error. So
 * only what has a cost names it, and the span that the caller calls the item's root, which is how Langfuse finds the item.
 */
function buildExperimentAttributes({ type, id, trace: { experiment = {} } }: Observation): Attributes {
  const isNamed = type === 'generation' || experiment['item.root_observation_id'] === id;
  return isNamed ? flattenMetadata('langfuse.experiment', experiment) : {};
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

function encodeValue(value: string | number | readonly string[]) {
  if (typeof value === 'string') return { stringValue: value.toWellFormed() };
  // As JSON a 64-bit number is a string.
  if (typeof value === 'number') return { intValue: String(value) };
  return { arrayValue: { values: value.map((item) => ({ stringValue: item.toWellFormed() })) } };
}

function formatNanoseconds(ms: number): string {
  return `${BigInt(ms) * 1_000_000n}`;
}
