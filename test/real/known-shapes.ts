/**
 * Known parts of Claude Code's files and payloads that the program ignores, since they are not about turns. What is neither
 * here nor in the program's schemas is listed at the end of a run.
 */
export const SYSTEM_SUBTYPES = [
  'api_error',
  'compact_boundary',
  'informational',
  'local_command',
  'model_fallback',
  'scheduled_task_fire',
  'stop_hook_summary',
  'turn_duration',
];

export const ATTACHMENTS = [
  'agent_listing_delta',
  'auto_mode',
  'command_permissions',
  'date',
  'deferred_tools_delta',
  'deferred_tools_record',
  'environment',
  'file',
  'hook_additional_context',
  'hook_blocking_error',
  'hook_stopped_continuation',
  'hook_success',
  'max_turns_reached',
  'model',
  'plan_mode',
  'plan_mode_exit',
  'prompt_snapshot',
  'queued_command',
  'remote_session_change',
  'session_context',
  'skill_listing',
  'structured_output',
  'total_tokens_reminder',
];

/** The events that the attachments of hooks name. */
export const HOOK_EVENTS = ['PostToolUse', 'PreToolUse', 'SessionStart', 'Stop', 'SubagentStop', 'UserPromptSubmit'];

export const USER_ORIGINS = ['auto-continuation', 'coordinator', 'human', 'peer', 'task-notification'];

export const PAYLOAD_FIELDS: { readonly [event: string]: readonly string[] } = {
  SessionStart: [
    'context_tokens',
    'cwd',
    'estimated_cache_write_usd',
    'model',
    'prompt_cache_likely_expired',
    'seconds_since_last_response',
    'session_title',
    'source',
  ],
  Stop: ['cwd', 'effort', 'permission_mode', 'session_crons', 'stop_hook_active'],
  StopFailure: ['cwd', 'effort', 'error'],
  SessionEnd: ['cwd', 'reason'],
};
