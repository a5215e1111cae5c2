import type { MediaBlock } from '../file/content.js';
import { type Account, NO_ACCOUNT } from './compaction-cost.js';
import type { Note } from './notes.js';
import type { PromptText, Trigger } from './prompt.js';
import type { Response } from './responses.js';

/** What lines of their own tell of the whole session. */
export interface SessionFacts {
  /** By who gave it: the user, the program, or an older program. */
  readonly titles: { readonly [kind in TitleKind]?: string | undefined };
  readonly pullRequest?: string | undefined;
  readonly account: Account;
}

export const TITLE_KINDS = ['custom-title', 'ai-title', 'summary'] as const;
export type TitleKind = (typeof TITLE_KINDS)[number];

export const NO_SESSION_FACTS: SessionFacts = { titles: {}, account: NO_ACCOUNT };

export interface Prompt {
  readonly uuid: string | undefined;
  readonly line: number;
  readonly at: number;
  readonly content: string;
  /** Images and documents that were given with it. */
  readonly media: readonly MediaBlock[];
}

/** What was so when the prompt was given; it holds for the whole turn and never changes. */
export interface PromptContext {
  readonly trigger: Trigger;
  readonly ide: PromptText['ide'];
  readonly promptId: string | undefined;
  readonly cwd: string | undefined;
  readonly gitBranch: string | undefined;
  readonly version: string | undefined;
  readonly slug: string | undefined;
  readonly permissionMode: string | undefined;
  readonly entrypoint: string | undefined;
}

/** A place to read from: the number of a line and its first byte. */
export interface Position {
  readonly line: number;
  readonly offset: number;
}

export interface Turn {
  readonly number: number;
  /** What tells it from all others: its first prompt's uuid, or where that has none, its session and line. */
  readonly key: string;
  /** The first line that may belong to it: a request can stand before the prompt that it sends. */
  readonly start: Position;
  /** The time that its lines without one take over from the lines before; undefined where none needs it. */
  readonly inheritedTime: number | undefined;
  /** The session's title and pull request, as they were known before it. */
  readonly sessionBefore: SessionFacts;
  readonly context: PromptContext;
  /** The skill that the prompt calls. */
  readonly skill: string | undefined;
  /** The session's title and pull request, as they were known at its last line. */
  readonly session: SessionFacts;
  /** At least one; more where several queued prompts were answered together. */
  readonly prompts: readonly [Prompt, ...Prompt[]];
  readonly responses: readonly Response[];
  readonly notes: readonly Note[];
  /** What subagents did, where they wrote it into the file of the main thread (1.0). */
  readonly sidechains: readonly AgentThread[];
  /** History that another session has too: it counts here, and is exported there. */
  readonly copied: boolean;
  /** The 1-based numbers of the lines that made the turn, as they stand in the file. */
  readonly lineOffsets: readonly number[];
}

/** What one subagent did: a turn for its prompt, and one for each message that continued it. */
export interface AgentThread {
  /** The agent's id; in files that give it none, the uuid of its first line. */
  readonly key: string;
  readonly agentId: string | undefined;
  readonly turns: readonly [Turn, ...Turn[]];
}

/** A thread of these turns, where there are any. */
export function toThread(key: string, agentId: string | undefined, turns: readonly Turn[]): AgentThread | undefined {
  const [first, ...more] = turns;
  return first && { key, agentId, turns: [first, ...more] };
}
