/**
 * The keys of metadata. Langfuse lays the metadata of the trace over that of each observation, so no key is in both lists, and
 * the user's own metadata, which is the trace's, has none of them.
 */
export const OBSERVATION_KEYS = [
  // A turn, and a subagent. Calls have the lines, too, and generations `context_tokens` and `agent_type`.
  'outcome',
  'tool_count',
  'error_count',
  'output_tokens_uncertain',
  'model_ms',
  'tool_ms',
  'person_ms',
  'hook_ms',
  'other_ms',
  'hooks',
  'lines_added',
  'lines_removed',
  'commits',
  'compactions',
  'context_tokens',
  'session_title',
  'pr',
  'continued_in_session',
  'agent_id',
  'agent_type',
  'description',
  'background',
  'total_tokens',
  'total_duration_ms',
  // A generation.
  'message_id',
  'request_id',
  'stop_reason',
  'model',
  'web_search_requests',
  'skill',
  'plugin',
  'mcp_server',
  'mcp_tool',
  'cache_share',
  'thinking_tokens',
  'thinking_ms',
  'retries',
  'request_messages',
  'request_messages_left_out',
  'request_messages_missing',
  'request_system_missing',
  'request_missing',
  // A tool.
  'tool_name',
  'tool_id',
  'summary',
  'permission',
  'denied',
  'waited_ms',
  'input_changed_by',
  'input_changed',
  'exit_code',
  'files_changed',
  'commit_sha',
  'commit_kind',
  'commit_branch',
  'pushed_branch',
  'pr_number',
  'pr_url',
  'pr_action',
  'stored_path',
  'stored_size',
  // An event.
  'compaction_trigger',
  'tokens_before',
  'tokens_after',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'attempt',
  'max_attempts',
  'wait_ms',
  'hook',
  'hook_tool_id',
  'fallback_trigger',
  'from_model',
  'to_model',
  'status',
  // Any of them.
  'input_full_chars',
  'output_full_chars',
  'observation_type',
] as const;
export type ObservationKey = (typeof OBSERVATION_KEYS)[number];

export const TRACE_KEYS = [
  'source',
  'session_id',
  'prompt_id',
  'cwd',
  'git_branch',
  'git_repository',
  'version',
  'slug',
  'permission_mode',
  'entrypoint',
  'session_kind',
  'ide',
  'github_repository',
  'github_run_id',
  'github_run_attempt',
  'github_run_url',
  'github_pull_request',
  'github_actor',
  'github_workflow',
  'github_sha',
  'turn_number',
  'trigger',
] as const;
export type TraceKey = (typeof TRACE_KEYS)[number];

const TRACE_KEY_SET: ReadonlySet<string> = new Set(TRACE_KEYS);

/** Returns what the user has added to the metadata of a trace. */
export function selectOwnMetadata<T>(metadata: { readonly [key: string]: T }): { [key: string]: T } {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !TRACE_KEY_SET.has(key)));
}

/** What Langfuse itself adds to the metadata of an observation (packages/shared/src/server/otel/OtelIngestionProcessor.ts). */
const SERVER_KEYS = ['resourceAttributes', 'scope'];

/** The keys that the user's own metadata cannot have. */
export const RESERVED_KEYS: ReadonlySet<string> = new Set([...OBSERVATION_KEYS, ...TRACE_KEYS, ...SERVER_KEYS]);
