import { isRecord } from '../../shared/json.js';
import { knownBlocks, MediaSource } from './schema.js';

/** One piece of a message's content. */
export type Block =
  | { kind: 'text'; text: string }
  | { kind: 'thinking'; text: string }
  | { kind: 'tool_use'; id: string | undefined; name: string; input: unknown }
  | { kind: 'tool_result'; toolUseId: string | undefined; content: unknown; isError: boolean }
  | MediaBlock
  | { kind: 'other'; type: string; value: unknown };

/** An image or a document that a message holds. */
export interface MediaBlock {
  readonly kind: 'media';
  /** What the message calls it. */
  readonly type: string;
  readonly mediaType: string;
  readonly encoding: 'base64' | 'text';
  readonly data: string;
}

/** Words, or what is none. */
export type Part = string | MediaBlock;

/** Content is a string, a list of blocks, or missing. */
export function parseBlocks(content: unknown): Block[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  if (!Array.isArray(content)) return [];
  return content.map(toBlock);
}

/** The text of content, blocks joined by a newline; what cannot be text leaves a short word in its place. */
export function contentText(content: unknown): string {
  return contentParts(content)
    .map((part) => (typeof part === 'string' ? part : `[${describeMedia(part)}]`))
    .join('\n');
}

/** What content says, and the images and documents between. */
export function contentParts(content: unknown): Part[] {
  const parts: Part[] = [];
  for (const block of parseBlocks(content)) {
    const part = partOf(block);
    const before = parts.at(-1);
    if (part === '') continue;
    if (typeof part === 'string' && typeof before === 'string') parts[parts.length - 1] = `${before}\n${part}`;
    else parts.push(part);
  }
  return parts;
}

/** What content says, and apart from it the images and documents. */
export function splitTextAndMedia(content: unknown): { words: string; media: MediaBlock[] } {
  const parts = contentParts(content);
  return { words: parts.filter((part) => !isMedia(part)).join('\n'), media: parts.filter(isMedia) };
}

export function isMedia(part: Part): part is MediaBlock {
  return typeof part !== 'string';
}

/** An image's or a document's type and size, in words. */
export function describeMedia({ type, mediaType, encoding, data }: MediaBlock): string {
  const bytes = encoding === 'text' ? Buffer.byteLength(data) : base64Bytes(data);
  return `${type} ${mediaType}, ${bytes} bytes`;
}

function partOf(block: Block): Part {
  if (block.kind === 'text') return block.text;
  if (block.kind === 'media') return block;
  return block.kind === 'other' ? placeholder(block.type, block.value) : '';
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
  return parseMedia(value) ?? { kind: 'other', type, value };
}

/** The image or the document that a block holds. */
export function parseMedia(block: unknown): MediaBlock | undefined {
  const { type, source } = isRecord(block) ? block : {};
  const read = MediaSource.safeParse(source);
  if (typeof type !== 'string' || !read.success) return undefined;
  const { type: encoding, media_type: mediaType, data } = read.data;
  return { kind: 'media', type, mediaType, encoding, data };
}

/** A failure of a tool of the server's own is a block that says so. */
function isErrorBlock(content: unknown): boolean {
  return isRecord(content) && typeof content.type === 'string' && content.type.endsWith('_error');
}

function placeholder(type: string, value: unknown): string {
  if (isErrorBlock(value) && isRecord(value)) return `[${type}: ${wordIn(value.error_code) || 'unknown'}]`;
  if (type === 'web_fetch_result' && isRecord(value)) return `[web_fetch_result ${wordIn(value.url)}]`;
  if (type === 'web_search_result' && isRecord(value))
    return [wordIn(value.title), wordIn(value.url)].filter((word) => word !== '').join(' ');
  return `[${type}]`;
}

function wordIn(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function base64Bytes(data: string): number {
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0;
  return Math.floor((data.length * 3) / 4) - padding;
}
