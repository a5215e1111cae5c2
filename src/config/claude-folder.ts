import { homedir } from 'node:os';
import { join, normalize } from 'node:path';
import { findStateFolder } from './platform.js';

export function claudeFolder(env: NodeJS.ProcessEnv): string {
  return env.CLAUDE_CONFIG_DIR || join(homedir(), '.claude');
}

/** Where the state and the log are: next to Claude Code's own files, unless the user wants them elsewhere. */
export function stateFolder(env: NodeJS.ProcessEnv): string {
  const folder = findStateFolder(env);
  return folder === undefined ? join(claudeFolder(env), 'state') : normalize(folder);
}

export const NO_TRANSCRIPTS = 'CLAUDE_CODE_SKIP_PROMPT_HISTORY';

/** Whether the user has told Claude Code to write no transcripts. Hooks then get the path of one that never exists. */
export function hasNoTranscripts(env: NodeJS.ProcessEnv): boolean {
  return /^(?:1|true|yes|on)$/i.test(env[NO_TRANSCRIPTS]?.trim() ?? '');
}
