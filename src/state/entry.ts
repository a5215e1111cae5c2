import * as z from 'zod/mini';
import { isRecord, type Json } from '../shared/json.js';
import { optional } from '../shared/schema.js';
import { Callers } from './caller.js';

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

/** How far a subagent has been exported, and where it hangs: it may end long after the turn that started it. */
const AgentEntry = z.object({
  last_line: count,
  sent_line: optional(count),
  /** How long its file was then: what has not grown has nothing new. */
  bytes: optional(count),
  trace: z.string(),
  /** Of a trace that is another program's, the span below which the turn hangs. */
  trace_parent: optional(z.string()),
  /** And what the ids of the turn's spans are made of there. */
  trace_scope: optional(z.string()),
  trace_name: z.string(),
  trace_metadata: z.custom<{ readonly [key: string]: Json }>(isRecord),
  trace_tags: optional(z.array(z.string())),
  trace_user: optional(z.string()),
  /** The span of the call that started it; none where no call did. */
  parent: optional(z.string()),
  /** That call's id, and the task that a workflow is called by as long as it runs. */
  call: optional(z.string()),
  task: optional(z.string()),
  type: optional(z.string()),
  description: optional(z.string()),
  background: optional(z.boolean()),
  /** It was made of what its call's result told: its file was gone. */
  lost: optional(z.boolean()),
});
export type AgentEntry = z.infer<typeof AgentEntry>;

/**
 * How far a session has been exported. The first three are what the first cc-langfuse wrote, and its file is read as it
 * is; `last_line` and `turn_line` are 1-based line numbers.
 */
export const Entry = z.object({
  /** The last line of the last turn that the server has acknowledged whole. */
  last_line: count,
  turn_count: count,
  updated: z.catch(z.string(), ''),
  /** Where that turn starts, by line and by byte: the next run reads it again, since it may have grown. */
  turn_line: optional(count),
  offset: optional(count),
  /** Its first prompt, to see that it is the same turn. */
  prompt: optional(z.string()),
  /** The first prompt of the session: one that begins with the same is its fork. */
  first: optional(z.string()),
  /** Up to where it is a fork: what stands there is exported by another session. */
  copied_line: optional(count),
  /** The time that its lines without one took over from the lines before. */
  time: optional(count),
  /** Up to which line observations are acknowledged; beyond `last_line` where a turn was sent in part. */
  sent_line: optional(count),
  /** Its SessionEnd was seen: what is written after it, without a SessionStart, ran with tracing off. */
  ended: optional(z.boolean()),
  /** Only a backfill knows it: whether it ran with tracing on nobody has told. */
  backfilled: optional(z.boolean()),
  /** Up to which byte its transcript holds nothing that is left. */
  bytes: optional(count),
  /** How long the files of its agents were when nothing of them was left. */
  agents_bytes: optional(count),
  /** The settings that describe it, as its own runs had them: whichever run brings what is missing, it reads the same. */
  given: optional(z.record(z.string(), z.string())),
  /** What has started its own runs, where something tells. */
  callers: optional(Callers),
  /** Scores that are still to be taken, of turns that were, by the span of their root. */
  scores: optional(z.record(z.string(), optional(Scores))),
  /** What lines of their own had told of the session before that turn. */
  session: optional(Facts),
  /** When the session was taken over from the first cc-langfuse, which saw to the agents before. */
  agents_since: optional(z.string()),
  /** By agent id; a workflow's, as `workflow <run id>`, tells where its steps hang. */
  agents: optional(z.record(z.string(), optional(AgentEntry))),
  path: optional(z.string()),
  destination: optional(z.string()),
  pending: optional(z.object({ since: z.string(), attempts: count, reason: z.string(), closed_line: optional(count) })),
});
export type Entry = z.infer<typeof Entry>;

/** One change after the other; what they say of different agents, and of different turns' scores, stands side by side. */
export function merged<T extends Partial<Entry>>(before: T, change: Partial<Entry>): T {
  const agents = before.agents || change.agents ? { agents: { ...before.agents, ...change.agents } } : {};
  const scores = before.scores || change.scores ? { scores: { ...before.scores, ...change.scores } } : {};
  return { ...before, ...change, ...agents, ...scores };
}

export const NEW_ENTRY: Entry = { last_line: 0, turn_count: 0, updated: '' };

/** Whether what is known of a session may be of this destination; the first cc-langfuse kept none. */
export function mayBeFor({ destination: known }: Entry, destination: string): boolean {
  return known === undefined || known === destination;
}
