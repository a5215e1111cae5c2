import * as z from 'zod/mini';
import { isRecord, type Json, mapValues, parseJson } from '../shared/json.js';
import { optional } from '../shared/schema.js';
import { Callers } from './callers.js';

const count = z.number().check(z.int(), z.nonnegative());

const Tokens = z.object({ input: z.number(), output: z.number(), cacheRead: z.number(), cacheWritten: z.number() });

const Facts = z.object({
  titles: z.object({
    'custom-title': optional(z.string()),
    'ai-title': optional(z.string()),
    summary: optional(z.string()),
  }),
  pullRequest: optional(z.string()),
  account: z.object({
    told: optional(Tokens),
    line: count,
    since: Tokens,
    compactions: count,
    hasAgents: z.boolean(),
  }),
});

const Scores = z.object({
  traceId: z.string(),
  observationId: optional(z.string()),
  environment: optional(z.string()),
  figures: z.record(z.string(), z.number()),
});

/** How far a subagent has been exported, and where it belongs: it may end long after the turn that started it. */
const AgentEntry = z.object({
  lastLine: count,
  sentLine: optional(count),
  /** The size of its file at that point: if the file has not grown, there is nothing new. */
  bytes: optional(count),
  trace: z.string(),
  /** The span in the caller's trace below which the turn hangs. */
  traceParent: optional(z.string()),
  /** What the span ids are derived from, if that is not the trace id. */
  traceScope: optional(z.string()),
  traceName: z.string(),
  traceMetadata: z.custom<{ readonly [key: string]: Json }>(isRecord),
  traceTags: optional(z.array(z.string())),
  traceUser: optional(z.string()),
  /** The span of the call that started it; undefined if no call did. */
  parent: optional(z.string()),
  /** The id of that call, and the task id that a workflow has while it runs. */
  call: optional(z.string()),
  task: optional(z.string()),
  type: optional(z.string()),
  description: optional(z.string()),
  background: optional(z.boolean()),
  /** Its file was missing, so it was built from the result of its call. */
  lost: optional(z.boolean()),
});
export type AgentEntry = z.infer<typeof AgentEntry>;

/** How far a session has been exported. Line numbers are 1-based. */
export const Entry = z.object({
  /** The last line of the last turn that the server has acknowledged completely. */
  lastLine: count,
  turnCount: count,
  updated: z.catch(z.string(), ''),
  /** Where that turn starts, by line and by byte: the next run reads it again, since it may have grown. So may earlier ones. */
  turnLine: optional(count),
  offset: optional(count),
  /** How many turns come before that place, if it is not all but one. */
  turnsBefore: optional(count),
  /** Its first prompt, to check that it is still the same turn. */
  prompt: optional(z.string()),
  /** The first prompt of the session: a session that begins with the same prompt is a fork of it. */
  first: optional(z.string()),
  /** Up to which line the session was copied from another one, which exports those lines. */
  copiedLine: optional(count),
  /** The time that its lines without a timestamp inherited from the lines before. */
  time: optional(count),
  /** Up to which line observations are acknowledged; greater than `lastLine` if a turn was sent in part. */
  sentLine: optional(count),
  /** Its SessionEnd was seen: lines that follow without a SessionStart were written with tracing off. */
  ended: optional(z.boolean()),
  /** Only a backfill knows the session, so it may have been written with tracing off. */
  backfilled: optional(z.boolean()),
  /** Up to which byte everything in its transcript has been sent. */
  bytes: optional(count),
  /** The total size of its agents' files when everything in them had been sent. */
  agentsBytes: optional(count),
  /** The settings that describe it, as its own runs had them, so that any run sends it in the same way. */
  given: optional(z.record(z.string(), z.string())),
  callers: optional(Callers),
  /** Scores that have not been acknowledged yet, by the root span of their turn. */
  scores: optional(z.record(z.string(), optional(Scores))),
  /** What the lines before that turn said about the whole session. */
  session: optional(Facts),
  /** When the session was taken over from the first cc-langfuse, which exported the agents before that. */
  agentsSince: optional(z.string()),
  /** By agent id; `workflow <run id>` is where the steps of a workflow belong. */
  agents: optional(z.record(z.string(), optional(AgentEntry))),
  path: optional(z.string()),
  destination: optional(z.string()),
  /** Why the last run failed. */
  pending: optional(z.object({ since: z.string(), attempts: count, reason: z.string(), closedLine: optional(count) })),
});
export type Entry = z.infer<typeof Entry>;
export type SessionEntry = [sessionId: string, entry: Entry];

export const NEW_ENTRY: Entry = { lastLine: 0, turnCount: 0, updated: '' };

/** Merges a change into an entry; `agents` and `scores` are merged key by key. */
export function mergeEntry<T extends Partial<Entry>>(before: T, change: Partial<Entry>): T {
  const agents = before.agents || change.agents ? { agents: { ...before.agents, ...change.agents } } : {};
  const scores = before.scores || change.scores ? { scores: { ...before.scores, ...change.scores } } : {};
  return { ...before, ...change, ...agents, ...scores };
}

/** Whether the session may have been sent to this destination; the first cc-langfuse did not record where it sent. */
export function isForDestination({ destination: known }: Entry, destination: string): boolean {
  return known === undefined || known === destination;
}

/** Whether the session has nothing that a later run must look for. */
export function isSettled({ pending, ended, backfilled }: Entry): boolean {
  return !pending && (ended === true || backfilled === true);
}

type Fields = Record<string, unknown>;

/** Reads an entry from the state file; undefined if it is not one. */
export function decodeEntry(text: string): Entry | undefined {
  const fields = decodeFields(text);
  const entry = fields && Entry.safeParse(fields);
  return entry?.success ? entry.data : undefined;
}

/** Applies a change to an entry's text. Fields that this version does not know are kept. */
export function changeEntryText(text: string | undefined, change: Partial<Entry>): string {
  const known = { ...NEW_ENTRY, ...decodeFields(text ?? '') };
  return encodeFields({ ...mergeEntry(known, change), updated: new Date().toISOString() });
}

/** Rewrites the text of an entry from an older state file in the form that searches expect; other values stay unchanged. */
export function upgradeEntryText(text: string): string {
  const fields = decodeFields(text);
  return fields ? encodeFields(fields) : text;
}

/** The fields that are searched in the text alone come first, in a fixed order, so that no text in the entry can imitate them. */
function encodeFields(fields: Fields): string {
  const { updated, pending, ended, backfilled, ...rest } = renameFields(fields, toSnakeCase);
  return JSON.stringify({ updated, pending, ended, backfilled, ...rest });
}

function decodeFields(text: string): Fields | undefined {
  const fields = parseJson(text);
  return isRecord(fields) ? renameFields(fields, toCamelCase) : undefined;
}

/** The state file has snake_case names, as the first cc-langfuse wrote them; scores and session facts never had. */
function renameFields(fields: Fields, rename: (name: string) => string): Fields {
  const renameKeys = (value: unknown) =>
    isRecord(value) ? Object.fromEntries(Object.entries(value).map(([name, item]) => [rename(name), item])) : value;
  const { agents, pending, callers } = fields;
  return {
    ...(renameKeys(fields) as Fields),
    ...(isRecord(agents) && { agents: mapValues(agents, renameKeys) }),
    ...(isRecord(pending) && { pending: renameKeys(pending) }),
    ...(Array.isArray(callers) && { callers: callers.map(renameKeys) }),
  };
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function toCamelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
