import { extractText, hasToolResult } from '../file/content.js';
import type { Line } from '../file/line.js';
import { COMMAND, isSkillBody } from './prompt.js';

type User = Extract<Line, { kind: 'user' }>;

/** What a user line is: only some of them were said by a user. */
export type UserLineRole =
  | 'prompt'
  | 'tool-result'
  | 'interrupt'
  /** `/clear` and its like are lines without a mark of their own; a prompt unless their output follows. */
  | 'command'
  | 'command-output'
  | 'bash-output'
  | 'stop-hook-feedback'
  /** The harness asks again after an empty answer. */
  | 'nudge'
  | 'skill-body'
  /** The harness asks the model to go on after an answer that was cut, or refused. */
  | 'resume'
  | 'meta'
  | 'compaction-summary';

export function classifyUserLine({ content, fields }: User): UserLineRole {
  if (fields.isCompactSummary) return 'compaction-summary';
  if (hasToolResult(content)) return 'tool-result';
  // What an agent is continued with is marked as the harness's, too.
  if (fields.origin?.kind === 'coordinator') return 'prompt';
  const text = extractText(content);
  if (fields.isMeta) {
    if (text.startsWith('Stop hook feedback:')) return 'stop-hook-feedback';
    if (text.startsWith('[Your previous response had no visible output')) return 'nudge';
    if (text.startsWith('Your response above was ')) return 'resume';
    return isSkillBody(text) ? 'skill-body' : 'meta';
  }
  if (INTERRUPTS.includes(text)) return 'interrupt';
  if (/^<local-command-(?:stdout|stderr)>/.test(text)) return 'command-output';
  if (/^<bash-(?:stdout|stderr)>/.test(text)) return 'bash-output';
  if (COMMAND.test(text) && fields.origin === undefined) return 'command';
  return 'prompt';
}

const INTERRUPTS = ['[Request interrupted by user]', '[Request interrupted by user for tool use]'];

/** Some failures are told only beside the result, as a text. */
export function parseToolOutcome({ fields: { toolUseResult, toolDenialKind: denied } }: User, isError: boolean) {
  const isToldAsText = typeof toolUseResult === 'string' && toolUseResult.startsWith('Error: ');
  return {
    isError: isError || isToldAsText,
    denied,
    details: typeof toolUseResult === 'object' ? toolUseResult : undefined,
  };
}
