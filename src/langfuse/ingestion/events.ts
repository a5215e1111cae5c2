import { createHash } from 'node:crypto';
import type { ApiIngestionEvent } from 'langfuse';
import type { Observation, Usage } from '../../observations/model.js';

/** An event of the ingestion API, and how long it is in a request. */
export interface IngestionEvent {
  readonly event: ApiIngestionEvent;
  readonly bytes: number;
}

/**
 * What an older server is told of an observation, and with a root of its trace: the first event that a trace is told by
 * fixes its time. Always `…-create`: the server merges it into what is there.
 */
export function buildEvents(observation: Observation, sentAt: string): IngestionEvent[] {
  const { parentId, type } = observation;
  const own = eventOf(TYPES[type], bodyOf(observation), sentAt);
  return parentId === undefined ? [eventOf('trace-create', traceBodyOf(observation), sentAt), own] : [own];
}

const TYPES = {
  agent: 'span-create',
  tool: 'span-create',
  generation: 'generation-create',
  event: 'event-create',
} as const;

const HASH_CHARS = 16;
const ENVELOPE_BYTES = 200;

/** The same content is the same event however often it is sent, and other content another: the server tells them by the id. */
function eventOf(type: ApiIngestionEvent['type'], body: { readonly id: string }, sentAt: string): IngestionEvent {
  const text = JSON.stringify(body, (_, value) => (typeof value === 'string' ? value.toWellFormed() : value));
  const hash = createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARS);
  // The server merges an observation's events in the order of their timestamps: what is sent last stands.
  const event = { id: `${body.id}-${hash}`, type, timestamp: sentAt, body: JSON.parse(text) };
  return { event, bytes: Buffer.byteLength(text) + ENVELOPE_BYTES };
}

/** What is longer the server refuses. */
const TRACE_NAME_CHARS = 1_000;

function traceBodyOf({ trace, startTime, input, output }: Observation) {
  const { id, name, sessionId, userId, tags, environment, release, metadata } = trace;
  return {
    id,
    timestamp: isoTime(startTime),
    name: name.slice(0, TRACE_NAME_CHARS),
    input: input ?? undefined,
    output: output ?? undefined,
    sessionId,
    userId,
    tags: tags.length > 0 ? tags : undefined,
    environment,
    release,
    metadata,
  };
}

function bodyOf({ trace, type, parentId, input, output, ...own }: Observation) {
  const { id, name, startTime, endTime, level, statusMessage, metadata } = own;
  const { model, modelParameters, usage, completionStartTime } = own;
  const isSpan = type === 'agent' || type === 'tool';
  return {
    id,
    traceId: trace.id,
    parentObservationId: parentId,
    name,
    startTime: isoTime(startTime),
    level,
    statusMessage,
    environment: trace.environment,
    input: input ?? undefined,
    output: output ?? undefined,
    // This API knows spans, generations and events.
    metadata: isSpan ? { ...metadata, observation_type: type } : metadata,
    ...(type !== 'event' && { endTime: isoTime(endTime) }),
    ...(type === 'generation' && {
      model,
      modelParameters,
      completionStartTime: completionStartTime === undefined ? undefined : isoTime(completionStartTime),
      usageDetails: usage,
      usage: usage && usageForVersion2(usage),
    }),
  };
}

/** Before version 3 there are no kinds but these. */
function usageForVersion2({ input, output, total }: Usage) {
  return { input, output, total, unit: 'TOKENS' };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
