import * as z from 'zod/mini';
import { FAILURE_CODES } from '../shared/failure.js';
import { isRecord, type Json, mapValues } from '../shared/json.js';
import { count, optional } from '../shared/schema.js';
import { addFacts, type Consent, Fact, finishStops, fold, putInOrder, type Stop } from './facts.js';
import { hasEnded, listRuns, openRun } from './runs.js';

const Tokens = z.object({ input: z.number(), output: z.number(), cacheRead: z.number(), cacheWritten: z.number() });
/** Input, output, cache read, and cache writes for 5 minutes and for 1 hour. */
const ExactTokens = z.readonly(z.tuple([z.number(), z.number(), z.number(), z.number(), z.number()]));

export const SessionFacts = z.object({
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
    geo: optional(z.string()),
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
  /** The span of the call that started it, or of the turn whose command did; undefined if neither did. */
  parent: optional(z.string()),
  /** The first bytes of the prompts of the turn that started it: it is sent as that turn is. */
  prompts: optional(z.array(count)),
  /** The id of that call, or the key of that turn, and the task id that a workflow has while it runs. */
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

/**
 * A turn that was not sent although a later one was: no run for this destination held it, its folder is excluded, it was copied
 * from a session whose transcript is gone, or an older version of the reader overlooked it, or a part of it.
 */
const Kept = z.object({ prompts: z.array(count), why: z.enum(['untraced', 'excluded', 'copied', 'overlooked']) });
export type Kept = z.infer<typeof Kept>;

/** What `session.json` holds, whatever the destinations are. */
const SessionRecord = z.object({
  id: z.string(),
  path: optional(z.string()),
  /** The first prompt of the session: a session that begins with the same prompt is a fork of it. */
  first: optional(z.string()),
  /** Up to which line the first cc-langfuse has sent it. */
  seedLine: optional(count),
  facts: z.array(Fact),
});
export type SessionRecord = z.infer<typeof SessionRecord>;

/** What is known of a session. */
export type Session = SessionRecord & Consent;

const progressFields = {
  /** The last line of the last turn that the server has acknowledged completely. */
  lastLine: count,
  turnCount: count,
  /** The oldest version of the reader that has read what was sent; 0 if it is undefined. */
  reader: optional(count),
  /** When the progress was last saved. */
  updated: z.catch(z.string(), ''),
  /** Where the next run begins to read, by line and by byte: at the last turn, or at an earlier one that may still grow. */
  turnLine: optional(count),
  offset: optional(count),
  /** The byte after the last turn, and a hash of both ends from `offset` to there. If it does not fit, the transcript has changed. */
  end: optional(count),
  hash: optional(z.string()),
  /** How many turns come before `offset`, if it is not `turnCount - 1`. */
  turnsBefore: optional(count),
  /** The first prompt of the last turn. */
  prompt: optional(z.string()),
  /** The first bytes of the last turns' prompts, by the id that hooks get. A later prompt can have the same id. */
  prompts: optional(z.record(z.string(), z.number())),
  /** The turns before the last one that have not been sent. */
  kept: optional(z.array(Kept)),
  /** Turns whose prompt, and agents whose call, is in no file. They were sent all the same. */
  strays: optional(z.array(z.string())),
  /** Hashes of the roots that were acknowledged: a root is sent again only if it has changed. */
  roots: optional(z.array(z.string())),
  /** Up to which line the session was copied from another one, which exports those lines. */
  copiedLine: optional(count),
  /** The sessions with the same first prompt when this one had so many bytes. Nothing after that was copied from or to them. */
  relatives: optional(z.object({ sessions: z.array(z.string()), bytes: count })),
  /** The time before `offset`, for lines without a timestamp. */
  time: optional(count),
  /** Up to which line observations are acknowledged; greater than `lastLine` if a turn was sent in part. */
  sentLine: optional(count),
  /** Ids before `sentLine` that were held back because they could still grow. */
  held: optional(z.array(z.string())),
  /** Whether the destination has acknowledged anything of the session. */
  acknowledged: optional(z.boolean()),
  /** Up to which byte everything in its transcript has been sent. */
  bytes: optional(count),
  /** Identifies the file of its transcript when nothing was left to send. As long as that is the same, nothing is new. */
  file: optional(z.string()),
  /** The total size of its agents' files when everything in them had been sent. */
  agentsBytes: optional(count),
  /** What the log has named as unknown to this version. */
  unknown: optional(z.array(z.string())),
  /** Scores that have not been acknowledged yet, by the root span of their turn. */
  scores: optional(z.record(z.string(), optional(Scores))),
  /** The times of the last ratings, by the root span of their turn: a later rating needs a later time. */
  rated: optional(z.record(z.string(), z.number())),
  /** What the lines before `offset` said about the whole session. */
  session: optional(SessionFacts),
  /** When the session was taken over from the first cc-langfuse, which exported the agents before that. */
  agentsSince: optional(z.string()),
  /** By agent id; `workflow <run id>` is where the steps of a workflow belong. */
  agents: optional(z.record(z.string(), optional(AgentEntry))),
  /** Why something is still to be sent. Without an attempt, a run was about to send it. */
  pending: optional(
    z.object({
      since: z.string(),
      attempts: count,
      code: optional(z.enum(FAILURE_CODES)),
      reason: z.string(),
    }),
  ),
};

/** How far a session has been exported to one destination. Line numbers are 1-based. */
export const Progress = z.object(progressFields);
export type Progress = z.infer<typeof Progress>;

/** A session, and how far it has been exported to a destination. */
export type Entry = Session & Progress;

export const NO_PROGRESS: Progress = { lastLine: 0, turnCount: 0, updated: '' };

export function newSession(id: string): Session {
  return toSession({ id, facts: [] });
}

function toSession(record: SessionRecord): Session {
  return { ...record, ...fold(record.facts) };
}

/** Changes what is known of a session; facts are added to those that are known. */
export function changeSession(session: Session, { facts = [], doneStops = [], ...change }: SessionChange): Session {
  const all = addFacts(session.facts, putInOrder(session.facts, facts));
  return toSession({ ...toRecord(session), ...change, facts: finishStops(all, doneStops) });
}

export function encodeSession(session: Session): string {
  return JSON.stringify({ version: 1, ...toRecord(session) });
}

/** Undefined if it is none, or one of a newer version. */
export function decodeSession(fields: unknown): Session | undefined {
  if (!isRecord(fields) || (fields.version ?? 1) !== 1) return undefined;
  const record = SessionRecord.safeParse(fields);
  return record.success ? toSession(record.data) : undefined;
}

function toRecord({ id, path, first, seedLine, facts }: Session): SessionRecord {
  return { id, path, first, seedLine, facts };
}

/** A change of what is known of a session. `doneStops` are those whose turns have been sent. */
export type SessionChange = Partial<SessionRecord> & { readonly doneStops?: readonly Stop[] | undefined };

/** A change of what is known of a session, of its progress, or of both. */
export type Change = SessionChange & Partial<Progress>;

export function joinEntry(session: Session, progress: Progress = NO_PROGRESS): Entry {
  return { ...session, ...progress };
}

/** Forgets how far a session has been exported to a destination, so that all of it is sent again. */
export const NOT_EXPORTED: Partial<Progress> = {
  ...mapValues<unknown, undefined>(progressFields, () => undefined),
  ...NO_PROGRESS,
};

/** Joins two changes; `agents`, `scores` and `rated` are merged key by key. */
export function mergeChanges<T extends Change>(before: T, change: Change): T {
  const agents = change.agents ? { agents: { ...before.agents, ...change.agents } } : {};
  const scores = change.scores ? { scores: { ...before.scores, ...change.scores } } : {};
  const rated = change.rated ? { rated: { ...before.rated, ...change.rated } } : {};
  const facts = change.facts ? { facts: addFacts(before.facts ?? [], change.facts) } : {};
  return { ...before, ...change, ...agents, ...scores, ...rated, ...facts };
}

/** Divides a change into what concerns the session and what its progress. */
export function divideChange(change: Change): { session: SessionChange; progress: Partial<Progress> } {
  const entries = Object.entries(change);
  return {
    session: Object.fromEntries(entries.filter(([name]) => !Object.hasOwn(progressFields, name))),
    progress: Object.fromEntries(entries.filter(([name]) => Object.hasOwn(progressFields, name))),
  };
}

/** The Stops of runs for a destination whose turns have not been sent. */
export function listWaiting({ stops }: Consent, destination: string): Stop[] {
  return stops.filter(({ isDone, run }) => !isDone && run.destination === destination);
}

/** Up to which byte turns have been sent, wherever. */
export function endOfSent(all: Iterable<Progress>): number {
  return Math.max(0, ...[...all].map(({ end = 0 }) => end));
}

/** Whether no later run has to look for anything of a session at a destination. */
export function isSettled(session: Session, destination: string, progress: Progress = NO_PROGRESS): boolean {
  const { pending, agents = {} } = progress;
  if (listWaiting(session, destination).length > 0) return false;
  if (listRuns(session).every((run) => run.destination !== destination)) return true;
  const open = [openRun(session.runs), ...session.claims.filter((claim) => !hasEnded(claim))];
  const isOpen = open.some((run) => run?.destination === destination);
  const isUnread = ([id, agent]: [string, AgentEntry | undefined]) =>
    agent !== undefined && agent.bytes === undefined && !agent.lost && !id.startsWith('workflow ');
  return pending === undefined && !isOpen && !Object.entries(agents).some(isUnread);
}

/** Whether a run of the session waits for keys. */
export function waitsForKeys(session: Session): boolean {
  return listRuns(session).some(({ destination }) => destination === undefined);
}

/** Fields that the first cc-langfuse had keep their names in the file. */
export function encodeProgress({ lastLine, turnCount, updated, ...rest }: Progress): string {
  return JSON.stringify({ version: 1, last_line: lastLine, turn_count: turnCount, updated, ...rest });
}

/** Undefined if it cannot be read, or is of a newer version. */
export function decodeProgress(fields: unknown): Progress | undefined {
  if (!isRecord(fields) || (fields.version ?? 1) !== 1) return undefined;
  const { version: _, last_line: lastLine, turn_count: turnCount, ...rest } = fields;
  const progress = Progress.safeParse({ ...rest, lastLine, turnCount });
  return progress.success ? progress.data : undefined;
}
