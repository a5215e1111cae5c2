import { homedir } from 'node:os';
import { join } from 'node:path';

export function claudeFolder(env: NodeJS.ProcessEnv): string {
  return env.CLAUDE_CONFIG_DIR || join(homedir(), '.claude');
}

/** On POSIX and on Windows. A relative path would be another folder for each project. */
export const ABSOLUTE_PATH = /^(?:\/|[A-Za-z]:[\\/]|\\\\)/;

/** Where the state and the log are: next to Claude Code's own files, unless the user wants them elsewhere. */
export function stateFolder(env: NodeJS.ProcessEnv): string {
  const { CC_LANGFUSE_STATE_DIR: own = '' } = env;
  return ABSOLUTE_PATH.test(own.trim()) ? own.trim() : join(claudeFolder(env), 'state');
}

export const NO_TRANSCRIPTS = 'CLAUDE_CODE_SKIP_PROMPT_HISTORY';

/** Whether the user has told Claude Code to write no transcripts. Hooks then get the path of one that never exists. */
export function hasNoTranscripts(env: NodeJS.ProcessEnv): boolean {
  return /^(?:1|true|yes|on)$/i.test(env[NO_TRANSCRIPTS]?.trim() ?? '');
}
