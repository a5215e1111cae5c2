import { isRecord } from '../json.js';
import { knownBlocks } from './schema.js';

/** One piece of a message's content. */
export type Block =
  | { kind: 'text'; text: string }
  | { kind: 'thinking'; text: string }
  | { kind: 'tool_use'; id: string | undefined; name: string; input: unknown }
  | { kind: 'tool_result'; toolUseId: string | undefined; content: unknown; isError: boolean }
  | { kind: 'other'; type: string; value: unknown };

/** Content is a string, a list of blocks, or missing. */
export function blocksOf(content: unknown): Block[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  if (!Array.isArray(content)) return [];
  return content.map(toBlock);
}

/** The text of content, blocks joined by a newline; what cannot be text leaves a short word in its place. */
export function textOf(content: unknown): string {
  return blocksOf(content)
    .map((block) =>
      block.kind === 'text' ? block.text : block.kind === 'other' ? placeholder(block.type, block.value) : '',
    )
    .filter((text) => text !== '')
    .join('\n');
}

export function hasToolResult(content: unknown): boolean {
  return Array.isArray(content) && content.some((block) => isRecord(block) && block.type === 'tool_result');
}

function toBlock(value: unknown): Block {
  if (typeof value === 'string') return { kind: 'text', text: value };
  const type = isRecord(value) && typeof value.type === 'string' ? value.type : 'unknown';
  if (type === 'text') {
    const block = knownBlocks.text.safeParse(value);
    if (block.success) return { kind: 'text', text: block.data.text };
  } else if (type === 'thinking') {
    const block = knownBlocks.thinking.safeParse(value);
    if (block.success) return { kind: 'thinking', text: block.data.thinking };
  } else if (type.endsWith('tool_use')) {
    // the client's own, the server's, those of an MCP connector
    const block = knownBlocks.tool_use.safeParse(value);
    if (block.success) return { kind: 'tool_use', id: block.data.id, name: block.data.name, input: block.data.input };
  } else if (type.endsWith('tool_result')) {
    const block = knownBlocks.tool_result.safeParse(value);
    if (block.success) {
      const { tool_use_id: toolUseId, content, is_error } = block.data;
      return { kind: 'tool_result', toolUseId, content, isError: is_error ?? isErrorBlock(content) };
    }
  }
  return { kind: 'other', type, value };
}

/** A failure of a tool of the server's own is a block that says so. */
function isErrorBlock(content: unknown): boolean {
  return isRecord(content) && typeof content.type === 'string' && content.type.endsWith('_error');
}

function placeholder(type: string, value: unknown): string {
  if (isErrorBlock(value) && isRecord(value)) return `[${type}: ${String(value.error_code ?? 'unknown')}]`;
  if (type === 'web_fetch_result' && isRecord(value)) return `[web_fetch_result ${String(value.url ?? '')}]`;
  if (type === 'web_search_result' && isRecord(value)) return [value.title, value.url].filter((part) => part).join(' ');
  const source = isRecord(value) && isRecord(value.source) ? value.source : undefined;
  if (!source) return `[${type}]`;
  const mediaType = typeof source.media_type === 'string' ? ` ${source.media_type}` : '';
  const bytes = source.type === 'text' ? Buffer.byteLength : base64Bytes;
  const size = typeof source.data === 'string' ? `, ${bytes(source.data)} bytes` : '';
  return `[${type}${mediaType}${size}]`;
}

function base64Bytes(data: string): number {
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0;
  return Math.floor((data.length * 3) / 4) - padding;
}
