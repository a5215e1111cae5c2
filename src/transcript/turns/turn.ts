import { isRecord } from '../../shared/json.js';
import { isOlder } from '../../shared/version.js';
import type { Block, MediaBlock } from '../file/content.js';
import type { Position } from '../file/reader.js';
import type {
  AssistantFields,
  PermissionDecision,
  RequestFields,
  SystemFields,
  TokenCounts,
  ToolUseResult,
  UserFields,
} from '../file/schema.js';
import { NO_TOKENS, type Tokens } from '../file/token-kinds.js';

/** A prompt and everything that Claude Code did to answer it. Lines are given by number, times in ms since 1970. */
export interface Turn {
  readonly number: number;
  /** The line that made it count: an answer, or its end without one. */
  readonly countsFrom: number;
  /** Identifies the turn: its first prompt's uuid, or if that has none, the session and line. */
  readonly key: string;
  /** The first line that may belong to it: a request can come before the prompt that it sends. */
  readonly start: Position;
  /** The time that its lines without one take from the lines before it; undefined if none of them needs it. */
  readonly inheritedTime: number | undefined;
  /** What was known of the session before the turn, and at its last line. */
  readonly sessionBefore: SessionFacts;
  readonly session: SessionFacts;
  /** The session in which the conversation goes on after it, if the user has moved it to the background. */
  readonly continuedIn: string | undefined;
  readonly context: PromptContext;
  readonly skill: string | undefined;
  /** More than one if queued prompts were answered together. */
  readonly prompts: readonly [Prompt, ...Prompt[]];
  readonly responses: readonly Response[];
  readonly notes: readonly Note[];
  /** Those that ran before its last response, result or error. */
  readonly hooks: readonly HookRun[];
  /** What subagents did, if they wrote it into the file of the main thread (1.0). */
  readonly sidechains: readonly AgentThread[];
  /** History copied from another session: the turn is numbered here, but exported there. */
  readonly copied: boolean;
  /** Its lines; of those that are settled only the first. */
  readonly lineNumbers: readonly number[];
  /** The byte after its last line. */
  readonly end: number;
}

export function lineOfEnd({ lineNumbers }: Pick<Turn, 'lineNumbers'>): number {
  return lineNumbers.at(-1) ?? 0;
}

/** When each part of a turn was written, as far as it is in memory. */
export function listTimes({ prompts, responses, notes, sidechains }: Turn): number[] {
  return [
    ...[...prompts, ...notes].map(({ at }) => at),
    ...responses.flatMap(({ firstBlockAt, lastBlockAt, calls }) => [
      firstBlockAt,
      lastBlockAt,
      ...calls.flatMap(({ at, result }) => (result ? [at, result.at] : [at])),
    ]),
    ...sidechains.flatMap(({ turns }) => turns.flatMap(listTimes)),
  ];
}

/** Turns that end together, because their lines interleave; nearly always there is only one. In the order of their numbers. */
export interface TurnGroup {
  readonly turns: readonly [Turn, ...Turn[]];
  /** The earliest of them, or of the prompts before them that may still be answered. */
  readonly from: TurnStart;
}

/** Where reading has to start to find a turn again, and what is known from the lines before. */
export interface TurnStart extends Position {
  readonly time: number | undefined;
  readonly session: SessionFacts;
  readonly turnCount: number;
}

export interface Prompt {
  readonly uuid: string | undefined;
  /** Claude Code's id of the turn, which hooks are told, too. */
  readonly promptId: string | undefined;
  readonly line: number;
  /** The first byte of that line. */
  readonly offset: number;
  readonly at: number;
  readonly content: string;
  readonly media: readonly MediaBlock[];
  readonly context: Pick<PromptContext, 'trigger'>;
}

/** The text of the prompt of what precedes the first prompt of a file, and of an answer to a prompt that was copied. */
export const FILE_BEGINS = '(The file begins here: the prompt of this turn is not in it.)';
export const IS_ELSEWHERE = '(The prompt of this turn is in another session.)';

/** Whether the file does not have the prompt that a turn answers. */
export function lacksPrompt({ prompts: [{ uuid, content }] }: Pick<Turn, 'prompts'>): boolean {
  return uuid === undefined && [FILE_BEGINS, IS_ELSEWHERE].includes(content);
}

/** The circumstances of the prompt. They hold for the whole turn and never change. */
export interface PromptContext
  extends Pick<
    UserFields,
    'promptId' | 'cwd' | 'gitBranch' | 'version' | 'slug' | 'permissionMode' | 'entrypoint' | 'sessionKind'
  > {
  /** `human`, `command` or `bash` for prompts by people and programs, `accepted-plan`, or else the source that the line names. */
  readonly trigger: string;
  /** What was selected or open in the editor, by kind. */
  readonly ide: { readonly [kind: string]: string } | undefined;
}

/** One response of the model, collected from the lines that share a message id. */
export interface Response {
  readonly id: string | undefined;
  readonly uuid: string | undefined;
  readonly requestId: string | undefined;
  readonly model: string | undefined;
  readonly answered: readonly AnsweredMessage[];
  /** When the last of the lines that it answers was written. */
  readonly answeredAt: number | undefined;
  readonly request: ModelRequest | undefined;
  /** How often a request failed since the response before, and was sent again. */
  readonly retries: number;
  readonly workedFor: WorkedFor;
  readonly firstLine: number;
  readonly firstBlockAt: number;
  /** When its first block began to stream, if its line says so. */
  readonly firstBlockStartedAt: number | undefined;
  /** How long its thinking streamed, if its lines say so. */
  readonly thinkingMs: number | undefined;
  readonly blocks: readonly Block[];
  readonly calls: readonly ToolCall[];
  readonly usage: TokenCounts | undefined;
  readonly stopReason: string | undefined;
  readonly effort: string | undefined;
  /** Claude Code's. */
  readonly version: string | undefined;
  readonly aborted: boolean;
  readonly lastLine: number;
  readonly lastBlockAt: number;
}

/** When the request was sent that a response answers; if no line says so, when what it answers was written. */
export function findRequestTime({
  request,
  answeredAt,
  firstBlockAt,
}: Pick<Response, 'request' | 'answeredAt' | 'firstBlockAt'>): number {
  return Math.min(request?.at ?? answeredAt ?? firstBlockAt, firstBlockAt);
}

/** What Claude Code attributes a response to: the type of the agent, and whose instructions or results the model has worked with. */
export type WorkedFor = Pick<
  AssistantFields,
  'attributionAgent' | 'attributionSkill' | 'attributionPlugin' | 'attributionMcpServer' | 'attributionMcpTool'
>;

/** A message to the model that a response answers. */
export type AnsweredMessage =
  | {
      readonly role: 'user';
      readonly content: string;
      readonly media?: readonly MediaBlock[];
      readonly isFromHook?: boolean;
      /** What has given it, as for a prompt, if not a person or a program. */
      readonly trigger?: string | undefined;
      /** Whether it asks the model to go on where its last response was cut. */
      readonly continuesAnswer?: boolean;
    }
  | {
      readonly role: 'tool';
      readonly toolCallId: string | undefined;
      readonly toolName?: string | undefined;
      readonly content: unknown;
    };

/** Whether a response goes on where the one before it was cut. */
export function isContinuation({ answered }: Pick<Response, 'answered'>): boolean {
  return answered.some((message) => message.role === 'user' && message.continuesAnswer);
}

/** Up to this version a response can be written before it ends: without a stop reason, and with its first count of output tokens. */
export const LAST_UNDER_REPORTING = '2.1.97';

/** Whether a response may have used more output tokens than its lines say. */
export function mayLackOutputTokens({ stopReason, version }: Pick<Response, 'stopReason' | 'version'>): boolean {
  return stopReason === undefined && version !== undefined && !isOlder(LAST_UNDER_REPORTING, version);
}

export interface ModelRequest {
  readonly id: string;
  readonly at: number | undefined;
  readonly params: RequestFields['params'];
  readonly line: number;
}

export interface ToolCall {
  readonly id: string | undefined;
  readonly name: string;
  /** What ran. */
  readonly input: unknown;
  /** What the model asked for, if a hook of the user has changed that, and which hook. */
  readonly changed?: { readonly asked: unknown; readonly by: string | undefined } | undefined;
  readonly line: number;
  readonly at: number;
  readonly result: ToolResult | undefined;
}

/** An argument of a call, if it is a text. */
export function findTextArgument({ input }: ToolCall, name: string): string | undefined {
  const value = isRecord(input) ? input[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** Returns the type of the agent that a call started: what the result says or, if it does not, what was asked for. */
export function findAgentType(call: ToolCall): string | undefined {
  return call.result?.details?.agentType ?? (findTextArgument(call, 'subagent_type') || undefined);
}

/** The call with which a response has ended the turn, if there is one. */
export function findEndingCall({ calls }: Pick<Response, 'calls'>): ToolCall | undefined {
  return calls.find(({ result }) => result?.endsTurn);
}

export interface ToolResult {
  readonly content: unknown;
  readonly isError: boolean;
  /** Why the call was refused, if it was. */
  readonly denied: string | undefined;
  /** Who decided about it (since 2.1.326). */
  readonly permission?: PermissionDecision | undefined;
  /** Whether the model is not asked again, since the call has handed over its answer. */
  readonly endsTurn?: boolean | undefined;
  /** What the line says in addition to the content, such as which agent the call started. */
  readonly details: ToolUseResult | undefined;
  readonly line: number;
  readonly at: number;
}

/** What happened in a turn besides prompts, responses and tool calls. */
export type Note = NoteContent & { readonly line: number; readonly at: number; readonly uuid: string | undefined };

/** Identifies a note in its file. */
export function noteKey({ uuid, line }: Note): string {
  return uuid ?? `line ${line}`;
}

export type NoteContent =
  | { readonly kind: 'compaction'; readonly fields: SystemFields; readonly cost?: CompactionCost }
  | { readonly kind: 'retry'; readonly fields: SystemFields }
  | { readonly kind: 'absorbed-message'; readonly content: string; readonly media: readonly MediaBlock[] }
  | { readonly kind: 'stop-hook-feedback'; readonly content: string }
  /** What another hook of the user told the model: an objection, or something to know. */
  | { readonly kind: 'hook-feedback' | 'hook-context'; readonly content: string; readonly hook: Hook }
  /** A hook ended the turn, for this reason. */
  | { readonly kind: 'hook-stop'; readonly content: string; readonly hook: Hook }
  | { readonly kind: 'model-fallback'; readonly fields: SystemFields }
  | { readonly kind: 'interrupt'; readonly content: string }
  | { readonly kind: 'max-turns' }
  /** What a command returned that ran as an agent: it is the answer, and the model writes no other. */
  | { readonly kind: 'command-result'; readonly content: string }
  /** Claude Code asked again because the answer was empty. */
  | { readonly kind: 'nudge'; readonly content: string }
  | { readonly kind: 'api-error'; readonly content: string; readonly status: number | undefined };

/** A hook of the user that said something, or those of a Stop together. */
export interface HookRun {
  /** Its event and, if that is about a tool, the tool. */
  readonly name: string;
  readonly line: number;
  readonly at: number;
  readonly ms: number;
}

/** A hook that the user has configured. */
interface Hook {
  /** Its event and, if that is about a tool, the tool. */
  readonly name: string | undefined;
  /** The call that it is about. */
  readonly toolUseId: string | undefined;
}

/** What the compaction call itself used, and the line that shows it. */
export interface CompactionCost {
  readonly tokens: Tokens;
  readonly line: number;
  /** The model and its tokens by kind, if the account says for sure that they are the compaction's. */
  readonly exact?: { readonly model: string; readonly usage: TokenCounts } | undefined;
}

/** What one subagent did: a turn for its prompt, and one for each message that continued it. */
export interface AgentThread {
  /** The agent's id, or in files without one, the uuid of its first line. */
  readonly key: string;
  readonly agentId: string | undefined;
  readonly turns: readonly [Turn, ...Turn[]];
}

/** Undefined if there are no turns. */
export function toThread(turns: readonly (Turn | undefined)[], key: string, agentId?: string): AgentThread | undefined {
  const [first, ...more] = turns.filter((turn) => turn !== undefined);
  return first && { key, agentId, turns: [first, ...more] };
}

/** What some lines say about the whole session. It is part of the saved state: its names must not change. */
export interface SessionFacts {
  /** By who gave the title: the user, the program, or an older program. */
  readonly titles: { readonly [kind in TitleKind]?: string | undefined };
  readonly pullRequest?: string | undefined;
  /** Claude Code's running account of the session's tokens, as known at some line. */
  readonly account: {
    /** What the account's last line said, and the number of that line. */
    readonly told?: Tokens | undefined;
    readonly line: number;
    /** What responses have used since that line, and how many compactions there were. */
    readonly since: Tokens;
    readonly compactions: number;
    /** Agents use tokens too, but no line says when. */
    readonly hasAgents: boolean;
    /** What its last line said of each model, and what responses of each have used since then. */
    readonly models?: TokensByModel | undefined;
    readonly usedByModel?: TokensByModel | undefined;
    /** Where the last of these responses ran, by the API's name. */
    readonly geo?: string | undefined;
    /** Whether something may have used tokens since then that no line reports. */
    readonly isUnclear?: boolean | undefined;
  };
}

/** Input, output, cache read, and cache writes for 5 minutes and for 1 hour. */
export type ExactTokens = readonly [number, number, number, number, number];
export type TokensByModel = { readonly [model: string]: ExactTokens };

export const TITLE_KINDS = ['custom-title', 'ai-title', 'summary'] as const;
export type TitleKind = (typeof TITLE_KINDS)[number];

export const NO_SESSION_FACTS: SessionFacts = {
  titles: {},
  account: { told: undefined, line: 0, since: NO_TOKENS, compactions: 0, hasAgents: false },
};
