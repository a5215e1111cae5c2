import * as z from 'zod/mini';
import { isRecord, type Json, mapValues, parseJson } from '../shared/json.js';
import { optional } from '../shared/schema.js';
import { Claim, listRuns, Mute, mergeByLine, mergeMutes, openRun, Run, type RunIdentity } from './runs.js';

const count = z.number().check(z.int(), z.nonnegative());

const Tokens = z.object({ input: z.number(), output: z.number(), cacheRead: z.number(), cacheWritten: z.number() });
/** Input, output, cache read, and cache writes for 5 minutes and for 1 hour. */
const ExactTokens = z.readonly(z.tuple([z.number(), z.number(), z.number(), z.number(), z.number()]));

export const Facts = z.object({
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
    models: optional(z.record(z.string(), ExactTokens)),
    usedByModel: optional(z.record(z.string(), ExactTokens)),
    isUnclear: optional(z.boolean()),
  }),
});

const Scores = z.object({
  traceId: z.string(),
  observationId: optional(z.string()),
  environment: optional(z.string()),
  endTime: optional(z.number()),
  figures: z.record(z.string(), z.number()),
  comment: optional(z.string()),
});

/** How far a subagent has been exported, and where it belongs: it may end long after the turn that started it. */
const AgentEntry = z.object({
  lastLine: count,
  sentLine: optional(count),
  held: optional(z.array(z.string())),
  /** The size of its files at that point: if they have not grown, there is nothing new. */
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
  /** The lines of the prompts of the turn that started it: it is sent as that turn is. */
  promptLines: optional(z.array(count)),
  /** The id of that call, and the task id that a workflow has while it runs. */
  call: optional(z.string()),
  task: optional(z.string()),
  type: optional(z.string()),
  description: optional(z.string()),
  background: optional(z.boolean()),
  /** If it outlived its session, the sizes of all its files at that point, by the session in whose folder each is. */
  parts: optional(z.record(z.string(), count)),
  /** Its file was missing, so it was built from the result of its call. */
  lost: optional(z.boolean()),
});
export type AgentEntry = z.infer<typeof AgentEntry>;

/** How far a session has been exported to one destination. Line numbers are 1-based. */
const progressFields = {
  /** The last line of the last turn that the server has acknowledged completely. */
  lastLine: count,
  turnCount: count,
  /** Where that turn starts, by line and by byte: the next run reads it again, since it may have grown. So may earlier ones. */
  turnLine: optional(count),
  offset: optional(count),
  /** How many turns come before that place, if it is not all but one. */
  turnsBefore: optional(count),
  /** Its first prompt, to check that it is still the same turn. */
  prompt: optional(z.string()),
  /** Hashes of what was acknowledged as its root: it is sent again only if it has changed. */
  roots: optional(z.array(z.string())),
  /** Up to which line the session was copied from another one, which exports those lines. */
  copiedLine: optional(count),
  /** Sessions with the same first prompt that were there when this one had so many bytes: what follows is not copied from or to them. */
  relatives: optional(z.object({ sessions: z.array(z.string()), bytes: count })),
  /** The time that its lines without a timestamp inherited from the lines before. */
  time: optional(count),
  /** Up to which line observations are acknowledged; greater than `lastLine` if a turn was sent in part. */
  sentLine: optional(count),
  /** What could still grow when a later line was sent, by id: it is not acknowledged, although its lines are before that one. */
  held: optional(z.array(z.string())),
  /** Whether the destination has acknowledged anything of the session. */
  acknowledged: optional(z.boolean()),
  /** Up to which byte everything in its transcript has been sent. */
  bytes: optional(count),
  /** What identifies its transcript as it was when nothing of it was left to be sent: as long as it is the same, nothing has changed. */
  file: optional(z.string()),
  /** The total size of its agents' files when everything in them had been sent. */
  agentsBytes: optional(count),
  /** Scores that have not been acknowledged yet, by the root span of their turn. */
  scores: optional(z.record(z.string(), optional(Scores))),
  /** What the lines before that turn said about the whole session. */
  session: optional(Facts),
  /** When the session was taken over from the first cc-langfuse, which exported the agents before that. */
  agentsSince: optional(z.string()),
  /** By agent id; `workflow <run id>` is where the steps of a workflow belong. */
  agents: optional(z.record(z.string(), optional(AgentEntry))),
  /** Why something is still to be sent. Without an attempt, a run was about to send it. */
  pending: optional(z.object({ since: z.string(), attempts: count, reason: z.string(), closedLine: optional(count) })),
};

const Progress = z.object(progressFields);
type Progress = z.infer<typeof Progress>;

/** What is known of a session, and how far it has been exported to its last destination. */
export const Entry = z.object({
  ...progressFields,
  updated: z.catch(z.string(), ''),
  path: optional(z.string()),
  /** The first prompt of the session: a session that begins with the same prompt is a fork of it. */
  first: optional(z.string()),
  /** In the order of their lines. */
  runs: z.catch(z.array(Run), []),
  /** Turns that belong to a run which nobody saw begin: each is named by its Stop. */
  claims: optional(z.array(Claim)),
  mutes: optional(z.array(Mute)),
  /** The last line that was known before all of it was to be sent again. */
  knownLine: optional(count),
  /** Where it was last exported; the first cc-langfuse did not record it. */
  destination: optional(z.string()),
  /** How far it has been exported to others. */
  elsewhere: optional(z.record(z.string(), Progress)),
});
export type Entry = z.infer<typeof Entry>;
export type SessionEntry = [sessionId: string, entry: Entry];

const NO_PROGRESS: Progress = { lastLine: 0, turnCount: 0, acknowledged: false };
export const NEW_ENTRY: Entry = { ...NO_PROGRESS, updated: '', runs: [] };

/** Forgets how far a session has been exported to a destination, so that all of it is sent again. */
export const NOT_EXPORTED: Partial<Entry> = {
  ...mapValues<unknown, undefined>(progressFields, () => undefined),
  ...NO_PROGRESS,
};

/** Merges a change into an entry; `agents` and `scores` are merged key by key, `runs` and `claims` by their first lines. */
export function mergeEntry<T extends Partial<Entry>>(before: T, change: Partial<Entry>): T {
  const agents = change.agents ? { agents: { ...before.agents, ...change.agents } } : {};
  const scores = change.scores ? { scores: { ...before.scores, ...change.scores } } : {};
  const runs = change.runs ? { runs: mergeByLine(before.runs ?? [], change.runs) } : {};
  const claims = change.claims ? { claims: mergeByLine(before.claims ?? [], change.claims) } : {};
  const mutes = change.mutes ? { mutes: mergeMutes(before.mutes ?? [], change.mutes) } : {};
  return { ...before, ...change, ...agents, ...scores, ...runs, ...claims, ...mutes };
}

/** Returns the entry with the progress at a destination. The session may have been exported there by the first cc-langfuse. */
export function withProgressAt(entry: Entry, destination: string): Entry {
  const { destination: last = destination, elsewhere = {} } = entry;
  if (last === destination) return { ...entry, destination };
  const { [destination]: progress = NO_PROGRESS, ...others } = elsewhere;
  const { data: left = NO_PROGRESS } = Progress.safeParse(entry);
  const isWorthKeeping = left.acknowledged !== false || left.lastLine > 0 || left.pending !== undefined;
  return {
    ...entry,
    ...NOT_EXPORTED,
    ...progress,
    destination,
    elsewhere: isWorthKeeping ? { ...others, [last]: left } : others,
  };
}

/** The last line of the turns that earlier runs knew, whether or not they were sent, and wherever. */
export function lastKnownLine(entry: Entry): number {
  const lines = listProgress(entry).map(({ sentLine = 0 }) => sentLine);
  return Math.max(...lines, lastEndedLine(entry));
}

/** The last line of the turns that earlier runs knew to be over: a turn of which parts were sent may go on. */
export function lastEndedLine(entry: Entry): number {
  const lines = listProgress(entry).map(({ lastLine }) => lastLine);
  return Math.max(...lines, lastClosedLine(entry), entry.knownLine ?? 0);
}

/** Up to this line turns are over, as runs that failed have found, wherever they were to be sent. */
export function lastClosedLine(entry: Entry): number {
  return Math.max(...listProgress(entry).map(({ pending }) => pending?.closedLine ?? 0));
}

function listProgress({ elsewhere = {}, ...progress }: Entry): Progress[] {
  return [progress, ...Object.values(elsewhere)];
}

/** Whether sending to a destination has failed for the session. */
export function hasFailedAt(entry: Entry, destination: string): boolean {
  return (findProgress(entry, destination)?.pending?.attempts ?? 0) > 0;
}

/** Whether a destination has acknowledged anything of the session. */
export function isAcknowledgedBy(entry: Entry, destination: string): boolean {
  return findProgress(entry, destination)?.acknowledged === true;
}

function findProgress({ destination: last, elsewhere = {}, ...progress }: Entry, destination: string) {
  return last === destination ? progress : elsewhere[destination];
}

/** Whether the session has nothing that a later run must look for. */
function isSettled(entry: Entry): boolean {
  const { pending, runs, claims = [], elsewhere = {} } = entry;
  // A run without keys waits for some. Older versions did not always save the destination, nor what the run was given.
  const isPending = ({ destination, given }: RunIdentity) =>
    destination === undefined ? given !== undefined : elsewhere[destination]?.pending !== undefined;
  const isOpen = openRun(runs) !== undefined || claims.some(({ endedAt }) => endedAt === undefined);
  const isUnread = ([id, agent]: [string, AgentEntry | undefined]) =>
    agent !== undefined && agent.bytes === undefined && !agent.lost && !id.startsWith('workflow ');
  const agents = listProgress(entry).flatMap((progress) => Object.entries(progress.agents ?? {}));
  const hasUnread = agents.some(isUnread);
  return pending === undefined && !isOpen && !hasUnread && !listRuns(entry).some(isPending);
}

type Fields = Record<string, unknown>;

/** Reads an entry from the state file; undefined if it is not one. */
export function decodeEntry(text: string): Entry | undefined {
  const fields = decodeFields(text);
  const entry = fields && Entry.safeParse(fields);
  return entry?.success ? entry.data : undefined;
}

/** Applies a change to an entry's text, at a destination if the change is about one. Fields that this version does not know are kept. */
export function changeEntryText(text: string | undefined, change: Partial<Entry>, destination?: string): string {
  const fields = decodeFields(text ?? '') ?? {};
  const known: Entry = { ...NEW_ENTRY, ...fields };
  const there = destination === undefined ? known : withProgressAt(known, destination);
  return encodeFields({ ...mergeEntry(there, change), updated: new Date().toISOString() });
}

/** Rewrites the text of an entry from an older state file in the form that searches expect; other values stay unchanged. */
export function upgradeEntryText(text: string): string {
  const fields = decodeFields(text);
  return fields ? encodeFields(fields as Entry) : text;
}

/** The fields that are searched in the text alone come first, in a fixed order, so that no text in the entry can imitate them. */
function encodeFields(entry: Entry): string {
  const { updated, ...rest } = renameFields(entry, toSnakeCase);
  return JSON.stringify({ updated, settled: isSettled(entry), ...rest });
}

function decodeFields(text: string): Fields | undefined {
  const fields = parseJson(text);
  if (!isRecord(fields)) return undefined;
  const { settled: _, ...renamed } = renameFields(fields, toCamelCase);
  return Array.isArray(renamed.runs) ? renamed : upgradeFields(renamed);
}

/** Entries before version 3 have the callers of runs, and one destination and one set of settings for all of them. */
function upgradeFields({ callers = [], given, ended, backfilled, ...fields }: Fields): Fields {
  const { lastLine, sentLine, pending, destination } = fields;
  const { closedLine } = isRecord(pending) ? pending : {};
  const known = Math.max(...[0, lastLine, sentLine, closedLine].filter((line) => typeof line === 'number'));
  // The first cc-langfuse recorded nothing else, so what follows may have been written with tracing off.
  const isOver = ended === true || backfilled === true || (fields.path === undefined && destination === undefined);
  const later = Array.isArray(callers) ? callers.filter(isRecord) : [];
  const first = later[0]?.fromLine === 1 ? [] : [{ fromLine: 1 }];
  const runs: Fields[] = [...first, ...later].map((run) => ({ ...run, destination, given }));
  const last = { ...runs.at(-1), ...(isOver && { toLine: known }) };
  return { acknowledged: Number(lastLine) > 0, ...fields, runs: [...runs.slice(0, -1), last] };
}

/** The state file has snake_case names, as the first cc-langfuse wrote them; scores and session facts never had. */
function renameFields(fields: Fields, rename: (name: string) => string): Fields {
  const renameKeys = (value: unknown) =>
    isRecord(value) ? Object.fromEntries(Object.entries(value).map(([name, item]) => [rename(name), item])) : value;
  const { agents, pending, callers, runs, claims, mutes, elsewhere } = fields;
  return {
    ...(renameKeys(fields) as Fields),
    ...(isRecord(agents) && { agents: mapValues(agents, renameKeys) }),
    ...(isRecord(pending) && { pending: renameKeys(pending) }),
    ...(Array.isArray(callers) && { callers: callers.map(renameKeys) }),
    ...(Array.isArray(runs) && { runs: runs.map(renameKeys) }),
    ...(Array.isArray(claims) && { claims: claims.map(renameKeys) }),
    ...(Array.isArray(mutes) && { mutes: mutes.map(renameKeys) }),
    ...(isRecord(elsewhere) && {
      elsewhere: mapValues(elsewhere, (progress) => (isRecord(progress) ? renameFields(progress, rename) : progress)),
    }),
  };
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function toCamelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
