import * as z from 'zod/mini';
import { optional } from '../../shared/schema.js';

/**
 * The fields of transcript lines that are used here. Each is optional, and counts as missing if it has the wrong type or is
 * an empty string: Claude Code's files change weekly, and one odd field must not cost a turn.
 */
const text = optional(z.string().check(z.minLength(1)));
const flag = optional(z.boolean());
const number = optional(z.number());
const anything = z.optional(z.unknown());
/** Where a prompt came from: one word. */
const source = optional(z.string().check(z.regex(/^[\w-]{1,40}$/)));
const origin = optional(z.object({ kind: source }));

const envelope = {
  uuid: text,
  parentUuid: text,
  sessionId: text,
  cwd: text,
  isMeta: flag,
  isSidechain: flag,
  forkedFrom: optional(z.object({ sessionId: text, messageUuid: text })),
};

/** One model's part of Claude Code's running account of a session's tokens. */
const ModelAccount = z.object({
  inputTokens: number,
  outputTokens: number,
  cacheReadInputTokens: number,
  cacheCreationInputTokens: number,
  cacheCreationEphemeral5mInputTokens: number,
  cacheCreationEphemeral1hInputTokens: number,
});
export type ModelAccount = z.infer<typeof ModelAccount>;

/** A line of any other type. Some of them are links in the parent chain too. */
export const OtherFields = z.object({
  ...envelope,
  customTitle: text,
  aiTitle: text,
  summary: text,
  prUrl: text,
  continuedInSessionId: text,
  modelUsage: optional(z.record(z.string(), ModelAccount)),
});
export type OtherFields = z.infer<typeof OtherFields>;

/** A line in which a version of 2.1 has repeated what a subagent wrote, and the call that started the agent. */
export const ProgressFields = z.object({
  type: z.literal('progress'),
  parentToolUseID: text,
  data: z.object({ message: z.record(z.string(), z.unknown()), agentId: text }),
});

/** One place of a change to a file, with the lines as in a unified diff. */
const Hunk = z.object({
  oldStart: number,
  oldLines: number,
  newStart: number,
  newLines: number,
  lines: optional(z.array(z.string())),
});
export type Hunk = z.infer<typeof Hunk>;
const Patch = optional(z.array(Hunk));

/** What a command did with git, as far as Claude Code recognizes it. */
const GitOperation = z.object({
  commit: optional(z.object({ sha: text, kind: source, branch: text })),
  push: optional(z.object({ branch: text })),
  pr: optional(z.object({ number, url: text, action: source })),
});

/** What a tool's result says in addition to what the model sees. For a failure it may be just a text. */
const ToolUseResult = z.object({
  status: text,
  isAsync: flag,
  agentId: text,
  agentType: text,
  description: text,
  prompt: text,
  content: anything,
  runId: text,
  taskId: text,
  totalTokens: number,
  totalDurationMs: number,
  totalToolUseCount: number,
  result: text,
  commandName: text,
  persistedOutputPath: text,
  persistedOutputSize: number,
  type: text,
  filePath: text,
  structuredPatch: Patch,
  bashEditDiff: optional(z.object({ files: optional(z.array(z.object({ filePath: text, hunks: Patch }))) })),
  gitOperation: optional(GitOperation),
  durationMs: number,
  durationSeconds: number,
});
export type ToolUseResult = z.infer<typeof ToolUseResult>;

/** Who allowed or refused a call, and why. */
const PermissionDecision = z.object({
  decision: source,
  source,
  reasonType: source,
  ruleSource: source,
  grantScope: source,
});
export type PermissionDecision = z.infer<typeof PermissionDecision>;

export const UserFields = z.object({
  ...envelope,
  isCompactSummary: flag,
  promptId: text,
  promptSource: text,
  turnOrigin: source,
  turnCompanion: flag,
  origin,
  permissionMode: text,
  gitBranch: text,
  version: text,
  slug: text,
  entrypoint: text,
  sessionKind: source,
  toolDenialKind: text,
  permissionDecision: optional(PermissionDecision),
  toolEndsTurn: flag,
  planContent: text,
  toolUseResult: optional(z.union([z.string(), ToolUseResult])),
});
export type UserFields = z.infer<typeof UserFields>;

const counts = {
  input_tokens: number,
  output_tokens: number,
  cache_read_input_tokens: number,
  cache_creation_input_tokens: number,
  cache_creation: optional(z.object({ ephemeral_5m_input_tokens: number, ephemeral_1h_input_tokens: number })),
};

export const TokenCounts = z.object({
  ...counts,
  service_tier: text,
  speed: text,
  inference_geo: text,
  output_tokens_details: optional(z.object({ thinking_tokens: number })),
  server_tool_use: optional(z.object({ web_search_requests: number })),
  iterations: optional(z.array(z.object({ ...counts, type: text, model: text }))),
});
export type TokenCounts = z.infer<typeof TokenCounts>;

export const AssistantFields = z.object({
  ...envelope,
  message: optional(z.object({ id: text, model: text, stop_reason: text, usage: optional(TokenCounts) })),
  requestId: text,
  requestRef: text,
  requestSessionId: text,
  gitBranch: text,
  version: text,
  apiBlockIndex: number,
  thinkingDurationMs: number,
  toolInputStreamMs: number,
  effort: text,
  attributionAgent: text,
  attributionSkill: text,
  attributionPlugin: text,
  attributionMcpServer: text,
  attributionMcpTool: text,
  isApiErrorMessage: flag,
  apiErrorStatus: number,
  isAbortedMidStream: flag,
});
export type AssistantFields = z.infer<typeof AssistantFields>;

export const SystemFields = z.object({
  ...envelope,
  subtype: text,
  content: anything,
  logicalParentUuid: text,
  compactMetadata: optional(z.object({ trigger: text, preTokens: number, postTokens: number, durationMs: number })),
  hookInfos: optional(z.array(z.object({ durationMs: number }))),
  error: optional(z.object({ formatted: text })),
  retryInMs: number,
  retryAttempt: number,
  maxRetries: number,
  trigger: text,
  originalModel: text,
  fallbackModel: text,
});
export type SystemFields = z.infer<typeof SystemFields>;

/** A file that a prompt mentions. */
const AttachedContent = z.object({ type: text, file: optional(z.object({ base64: text, type: text })) });

export const AttachmentFields = z.object({
  ...envelope,
  attachment: optional(
    z.object({
      type: text,
      prompt: anything,
      origin,
      content: optional(z.union([z.string(), z.array(z.string()), AttachedContent])),
      hookEvent: text,
      hookName: text,
      toolUseID: text,
      message: text,
      stdout: text,
      durationMs: number,
      blockingError: optional(z.object({ blockingError: text })),
    }),
  ),
});
export type AttachmentFields = z.infer<typeof AttachmentFields>;

/** What a hook printed, if that is JSON. */
export const HookOutput = z.catch(
  z.object({ hookSpecificOutput: optional(z.object({ updatedInput: optional(z.record(z.string(), z.unknown())) })) }),
  {},
);

export const RequestFields = z.object({
  id: text,
  base: text,
  keep: number,
  // Thousands of hashes, which most readers of the line do not need: checked where they are used.
  tail: anything,
  shapeHash: text,
  params: optional(
    z.object({
      max_tokens: number,
      thinking: optional(z.object({ type: text })),
      output_config: optional(z.object({ effort: text })),
    }),
  ),
});
export type RequestFields = z.infer<typeof RequestFields>;

const RequestMessage = z.looseObject({ role: z.string(), content: anything });
export type RequestMessage = z.infer<typeof RequestMessage>;

export const BlobLine = z.catch(z.object({ message: optional(RequestMessage) }), {});

const RequestShape = z.object({ system: anything, tools: anything });
export type RequestShape = z.infer<typeof RequestShape>;

export const ShapeLine = z.catch(z.object({ shape: optional(RequestShape) }), {});

/** The content of `agent-<id>.meta.json`, next to an agent's file. */
export const AgentMeta = z.object({
  agentType: text,
  description: text,
  toolUseId: text,
  parentAgentId: text,
  requestShape: text,
});
export type AgentMeta = z.infer<typeof AgentMeta>;

/** An image's or a document's bytes, or its text. A source may also be a URL, which is not read. */
export const MediaSource = z.object({
  type: z.enum(['base64', 'text']),
  media_type: z.string().check(z.regex(/^[\w.+-]{1,60}\/[\w.+-]{1,60}$/)),
  data: z.string(),
});

export const ToolUseBlock = z.object({ id: text, name: z.catch(z.string(), 'tool'), input: anything });
export const ToolResultBlock = z.object({ tool_use_id: text, content: anything, is_error: flag });
