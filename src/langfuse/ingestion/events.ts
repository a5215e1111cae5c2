import type { ApiIngestionEvent } from 'langfuse';
import type { Observation } from '../../observations/model.js';
import { hashText } from '../../shared/hash.js';

export interface IngestionEvent {
  readonly event: ApiIngestionEvent;
  /** How much of a request it takes. */
  readonly bytes: number;
}

/**
 * The event of an observation, and with a root that of its trace, which comes first: a trace's first event sets its time.
 * Always `…-create`: the server merges it into what it has.
 */
export function buildEvents(observation: Observation, sentAt: string): IngestionEvent[] {
  const { parentId, type } = observation;
  const own = buildEvent(TYPES[type], buildBody(observation), sentAt);
  return parentId === undefined ? [buildEvent('trace-create', buildTraceBody(observation), sentAt), own] : [own];
}

const TYPES = {
  agent: 'span-create',
  tool: 'span-create',
  generation: 'generation-create',
  event: 'event-create',
} as const;

const HASH_CHARS = 16;
const ENVELOPE_BYTES = 200;

/** The server distinguishes events by their ids: the same content has the same id however often it is sent, other content another. */
function buildEvent(type: ApiIngestionEvent['type'], body: { readonly id: string }, sentAt: string): IngestionEvent {
  const text = JSON.stringify(body, (_, value) => (typeof value === 'string' ? value.toWellFormed() : value));
  const hash = hashText(text).slice(0, HASH_CHARS);
  // The server merges an observation's events in the order of their timestamps: the last one sent wins.
  const event = { id: `${body.id}-${hash}`, type, timestamp: sentAt, body: JSON.parse(text) };
  return { event, bytes: Buffer.byteLength(text) + ENVELOPE_BYTES };
}

/** The server refuses longer ones. */
const TRACE_NAME_CHARS = 1_000;

function buildTraceBody({ trace, startTime, input, output }: Observation) {
  const { id, name, sessionId, userId, tags, environment, release, version, metadata } = trace;
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
    version,
    metadata,
  };
}

function buildBody({ trace, type, parentId, input, output, ...own }: Observation) {
  const { id, name, startTime, endTime, level, statusMessage, metadata } = own;
  const { model, modelParameters, usage, cost, completionStartTime } = own;
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
    version: trace.version,
    input: input ?? undefined,
    output: output ?? undefined,
    // This API has only spans, generations and events.
    metadata: isSpan ? { ...metadata, observation_type: type } : metadata,
    ...(type !== 'event' && { endTime: isoTime(endTime) }),
    ...(type === 'generation' && {
      model,
      modelParameters,
      completionStartTime: completionStartTime === undefined ? undefined : isoTime(completionStartTime),
      usageDetails: usage,
      costDetails: cost,
      // Version 2 has only these kinds.
      usage: describeUsage(usage, cost),
    }),
  };
}

function describeUsage(usage: Observation['usage'], cost: Observation['cost']) {
  if (cost) return { totalCost: cost.total, unit: 'TOKENS' };
  return usage && { input: usage.input, output: usage.output, total: usage.total, unit: 'TOKENS' };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
