import { parseBlocks } from './content.js';
import type { Line } from './line.js';

const KNOWN_LINES = new Set(
  `agent-name ai-title api-request-blob api-request-resumed api-request-shape atis-latch content-replacement
   continued-in cost-state
  custom-title data-flow-incomplete file-history-delta file-history-snapshot fork-context-ref frame-link isolation-latch
  last-prompt mode permission-mode pr-link progress queue-operation relocated session-owner summary tools-used
  worktree-state`.split(/\s+/),
);
const KNOWN_BLOCKS = new Set(['image', 'document', 'redacted_thinking', 'web_search_result', 'tool_reference']);
/** A type is a short name. Anything longer could be private content. */
const MAX_NAME_CHARS = 60;

/** The types of a line and of its blocks that have never been seen before. */
export function findUnknownTypes(line: Line): string[] {
  if (line.kind === 'other') return KNOWN_LINES.has(line.type) ? [] : [`line ${line.type.slice(0, MAX_NAME_CHARS)}`];
  if (line.kind !== 'user' && line.kind !== 'assistant') return [];
  return parseBlocks(line.content).flatMap((block) =>
    block.kind === 'other' && !KNOWN_BLOCKS.has(block.type) ? [`block ${block.type.slice(0, MAX_NAME_CHARS)}`] : [],
  );
}
