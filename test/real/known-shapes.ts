/** The events that the attachments of hooks name. */
export const HOOK_EVENTS = ['PostToolUse', 'PreToolUse', 'SessionStart', 'Stop', 'SubagentStop', 'UserPromptSubmit'];

/** Fields of payloads that the program does not use. What is not in its schema either is listed at the end of a run. */
export const PAYLOAD_FIELDS: { readonly [event: string]: readonly string[] } = {
  SessionStart: [
    'agent_id',
    'agent_type',
    'context_tokens',
    'cwd',
    'estimated_cache_write_usd',
    'model',
    'prompt_cache_likely_expired',
    'seconds_since_last_response',
    'session_title',
    'source',
  ],
  Stop: ['agent_type', 'cwd', 'effort', 'permission_mode', 'session_crons', 'stop_hook_active'],
  StopFailure: ['cwd', 'effort', 'error'],
  SessionEnd: ['agent_type', 'cwd', 'reason'],
};
