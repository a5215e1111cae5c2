import { parseBlocks } from './content.js';
import type { Line } from './line.js';

/** Lines that are known and tell nothing of the turns, or nothing but what is read of them. */
const KNOWN_TYPES = new Set([
  'agent-name',
  'ai-title',
  'api-request-blob',
  'api-request-shape',
  'atis-latch',
  'cost-state',
  'custom-title',
  'file-history-delta',
  'file-history-snapshot',
  'last-prompt',
  'mode',
  'permission-mode',
  'pr-link',
  'progress',
  'queue-operation',
  'relocated',
  'summary',
  'tools-used',
  'worktree-state',
]);
/** A type is a name; what is longer may be anything. */
const NAME_CHARS = 60;
const KNOWN_BLOCKS = new Set(['image', 'document', 'redacted_thinking', 'web_search_result', 'tool_reference']);

/** What of a line has never been seen before: the type of the line, or of blocks in it. */
export function findUnknownTypes(line: Line): string[] {
  switch (line.kind) {
    case 'other':
      return KNOWN_TYPES.has(line.type) ? [] : [`line ${line.type.slice(0, NAME_CHARS)}`];
    case 'user':
    case 'assistant':
      return parseBlocks(line.content).flatMap((block) =>
        block.kind === 'other' && !KNOWN_BLOCKS.has(block.type) ? [`block ${block.type.slice(0, NAME_CHARS)}`] : [],
      );
    default:
      return [];
  }
}
