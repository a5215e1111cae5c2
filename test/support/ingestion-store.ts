import * as z from 'zod';
import type { StoredObservation } from './langfuse-server.js';
import { parseIfJson } from './parse-if-json.js';

const time = z.iso.datetime({ offset: true });
const json = z.json();
const environment = z
  .string()
  .max(40)
  .regex(/^(?!langfuse)[a-z0-9-_]+$/)
  .optional();
const tokens = z.int().nonnegative().optional();

const Trace = z.strictObject({
  id: z.string(),
  timestamp: time,
  name: z.string().max(1_000),
  input: json.optional(),
  output: json.optional(),
  sessionId: z.string(),
  userId: z.string().optional(),
  tags: z.array(z.string()).optional(),
  environment,
  release: z.string().optional(),
  version: z.string().optional(),
  metadata: json,
});
const Event = z.strictObject({
  id: z.string(),
  traceId: z.string(),
  parentObservationId: z.string().optional(),
  name: z.string(),
  startTime: time,
  level: z.enum(['DEBUG', 'DEFAULT', 'WARNING', 'ERROR']),
  statusMessage: z.string().optional(),
  environment,
  version: z.string().optional(),
  input: json.optional(),
  output: json.optional(),
  metadata: z.record(z.string(), json),
});
const Span = z.strictObject({ ...Event.shape, endTime: time });
const Generation = z.strictObject({
  ...Span.shape,
  model: z.string().optional(),
  modelParameters: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
  completionStartTime: time.optional(),
  usageDetails: z.record(z.string(), z.int().nonnegative()).optional(),
  costDetails: z.record(z.string(), z.number().nonnegative()).optional(),
  usage: z
    .strictObject({
      input: tokens,
      output: tokens,
      total: tokens,
      totalCost: z.number().nonnegative().optional(),
      unit: z.literal('TOKENS'),
    })
    .optional(),
});
const envelope = { id: z.string().regex(/^[\w-]+$/), timestamp: time };
const IngestedEvent = z.discriminatedUnion('type', [
  z.strictObject({ ...envelope, type: z.literal('trace-create'), body: Trace }),
  z.strictObject({ ...envelope, type: z.literal('event-create'), body: Event }),
  z.strictObject({ ...envelope, type: z.literal('span-create'), body: Span }),
  z.strictObject({ ...envelope, type: z.literal('generation-create'), body: Generation }),
]);
export type IngestedEvent = z.infer<typeof IngestedEvent>;
type ObservationEvent = Exclude<IngestedEvent, { type: 'trace-create' }>;

/** What an older Langfuse stores of events: for each trace and observation what its events say, in the order of their times. */
export class IngestionStore {
  /** Returns a status for an event that is to be refused. */
  refuse: (event: IngestedEvent) => number | undefined = () => undefined;
  /** The accepted events, repetitions included. */
  events: IngestedEvent[] = [];

  /** Accepts or refuses each event. */
  take(events: readonly unknown[], acceptsTraces: boolean): { successes: object[]; errors: object[] } {
    const successes: object[] = [];
    const errors: object[] = [];
    for (const sent of events) {
      const { success, data: event, error } = IngestedEvent.safeParse(sent);
      const id = event?.id ?? 'unknown';
      const refusal = event && this.refuse(event);
      if (!acceptsTraces)
        errors.push({ id: (sent as { id: string }).id, status: 400, message: 'Event type not accepted' });
      else if (!success) errors.push({ id, status: 400, message: 'Invalid request data', error: error.message });
      else if (refusal !== undefined) errors.push({ id, status: refusal, message: 'refused' });
      else {
        successes.push({ id, status: 201 });
        this.events.push(event);
      }
    }
    return { successes, errors };
  }

  remove(isGone: (observation: { readonly traceId: string; readonly id: string }) => boolean): void {
    this.events = this.events.filter(({ type, body }) => type === 'trace-create' || !isGone(body));
  }

  get observations(): StoredObservation[] {
    const inOrder = this.events.toSorted((a, b) => a.timestamp.localeCompare(b.timestamp));
    const traces = new Map<string, z.infer<typeof Trace>>();
    const observations = new Map<string, ObservationEvent>();
    for (const event of inOrder) {
      if (event.type === 'trace-create') {
        const { body } = event;
        traces.set(body.id, { ...traces.get(body.id), ...body });
      } else {
        const { traceId, id, startTime } = event.body;
        observations.set(`${traceId} ${id} ${startTime}`, event);
      }
    }
    return [...observations.values()].map((event) => storedEvent(event, traces.get(event.body.traceId)));
  }
}

function storedEvent({ type, body }: ObservationEvent, trace: z.infer<typeof Trace> | undefined): StoredObservation {
  const generation: Partial<z.infer<typeof Generation>> = body;
  const under = (metadata: unknown) =>
    Object.fromEntries(Object.entries(metadata ?? {}).map(([key, value]) => [key, parseIfJson(value)]));
  return {
    traceId: body.traceId,
    id: body.id,
    parentId: body.parentObservationId,
    name: body.name,
    startTime: Date.parse(body.startTime),
    endTime: Date.parse(generation.endTime ?? body.startTime),
    type: type.replace('-create', ''),
    level: body.level,
    statusMessage: body.statusMessage,
    completionStartTime: generation.completionStartTime,
    model: generation.model,
    modelParameters: generation.modelParameters,
    usage: generation.usageDetails,
    input: parseIfJson(body.input),
    output: parseIfJson(body.output),
    metadata: under(body.metadata),
    isAppRoot: undefined,
    trace: {
      name: trace?.name,
      sessionId: trace?.sessionId,
      userId: trace?.userId,
      tags: trace?.tags,
      environment: trace?.environment,
      release: trace?.release,
      version: body.version,
      metadata: under(trace?.metadata),
    },
  };
}
