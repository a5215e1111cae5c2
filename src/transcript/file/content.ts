import { isRecord } from '../../shared/json.js';
import { type AttachmentFields, MediaSource, ToolResultBlock, ToolUseBlock } from './schema.js';

export type Block =
  | { kind: 'text'; text: string }
  | { kind: 'thinking'; text: string }
  | { kind: 'tool_use'; id: string | undefined; name: string; input: unknown }
  | { kind: 'tool_result'; toolUseId: string | undefined; content: unknown; isError: boolean }
  | MediaBlock
  | { kind: 'other'; type: string; value: unknown };

/** An image or a document in a message. */
export interface MediaBlock {
  readonly kind: 'media';
  /** What the message calls it: `image`, `document`. */
  readonly type: string;
  readonly mediaType: string;
  readonly encoding: 'base64' | 'text';
  readonly data: string;
}

export type ContentPart = string | MediaBlock;

/** Content is a string, a list of blocks, or missing. */
export function parseBlocks(content: unknown): Block[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return Array.isArray(content) ? content.map(parseBlock) : [];
}

/** The text of content, its blocks joined by newlines; whatever is not text is named in brackets. */
export function extractText(content: unknown): string {
  return extractParts(content)
    .map((part) => (typeof part === 'string' ? part : `[${describeMedia(part)}]`))
    .join('\n');
}

/** The texts of content and the images and documents between them. */
export function extractParts(content: unknown): ContentPart[] {
  const parts: ContentPart[] = [];
  for (const block of parseBlocks(content)) {
    const part = partOf(block);
    const before = parts.at(-1);
    if (part === '') continue;
    if (typeof part === 'string' && typeof before === 'string') parts[parts.length - 1] = `${before}\n${part}`;
    else parts.push(part);
  }
  return parts;
}

/** The text of content, and separately its images and documents. */
export function splitTextAndMedia(content: unknown): { text: string; media: MediaBlock[] } {
  const parts = extractParts(content);
  const media = parts.filter((part) => typeof part !== 'string');
  return { text: parts.filter((part) => typeof part === 'string').join('\n'), media };
}

/** The type and size of an image or a document, in words. */
export function describeMedia({ type, mediaType, encoding, data }: MediaBlock): string {
  const bytes = encoding === 'text' ? Buffer.byteLength(data) : Buffer.byteLength(data, 'base64');
  return `${type} ${mediaType}, ${bytes} bytes`;
}

export function hasToolResult(content: unknown): boolean {
  return Array.isArray(content) && content.some((block) => isRecord(block) && block.type === 'tool_result');
}

/** As `parseBlocks` finds it, without parsing: most lines have a call or a result. */
export function hasToolUse(content: unknown): boolean {
  return Array.isArray(content) && content.some((block) => isRecord(block) && isOfType(block, 'tool_use'));
}

/** The ids of the calls whose results content has. */
export function listResultIds(content: unknown): string[] {
  if (!Array.isArray(content)) return [];
  const results = content.filter((block) => isRecord(block) && isOfType(block, 'tool_result'));
  return results.map(({ tool_use_id: id }) => id).filter((id) => typeof id === 'string');
}

/** The endings also cover `server_tool_use`, `mcp_tool_use` and their results. */
function isOfType({ type }: Record<string, unknown>, ending: 'tool_use' | 'tool_result'): boolean {
  return typeof type === 'string' && type.endsWith(ending);
}

function parseMedia(block: unknown): MediaBlock | undefined {
  const { type, source } = isRecord(block) ? block : {};
  const parsed = MediaSource.safeParse(source);
  if (typeof type !== 'string' || !parsed.success) return undefined;
  const { type: encoding, media_type: mediaType, data } = parsed.data;
  return { kind: 'media', type, mediaType, encoding, data };
}

/** The image in a file that a prompt mentions, as in `@like/this.png`: the model sees it with the prompt. */
export function parseAttachedImage({ attachment }: AttachmentFields): MediaBlock | undefined {
  const content = attachment?.content;
  const { type, file } = typeof content === 'object' && !Array.isArray(content) ? content : {};
  if (type !== 'image') return undefined;
  return parseMedia({ type, source: { type: 'base64', media_type: file?.type, data: file?.base64 } });
}

function parseBlock(value: unknown): Block {
  if (typeof value === 'string') return { kind: 'text', text: value };
  const block = isRecord(value) ? value : {};
  const type = typeof block.type === 'string' ? block.type : 'unknown';
  if (type === 'text' && typeof block.text === 'string') return { kind: 'text', text: block.text };
  if (type === 'thinking' && typeof block.thinking === 'string') return { kind: 'thinking', text: block.thinking };
  if (isOfType(block, 'tool_use')) {
    const { id, name, input } = ToolUseBlock.parse(block);
    return { kind: 'tool_use', id, name, input };
  }
  if (isOfType(block, 'tool_result')) {
    const { tool_use_id: toolUseId, content, is_error: isError = isErrorBlock(content) } = ToolResultBlock.parse(block);
    return { kind: 'tool_result', toolUseId, content, isError };
  }
  return parseMedia(value) ?? { kind: 'other', type, value };
}

function partOf(block: Block): ContentPart {
  if (block.kind === 'text') return block.text;
  if (block.kind === 'media') return block;
  return block.kind === 'other' ? describeOther(block.type, block.value) : '';
}

/** When one of the API's own tools fails, its result is a block of such a type. */
function isErrorBlock(content: unknown): boolean {
  return isRecord(content) && typeof content.type === 'string' && content.type.endsWith('_error');
}

function describeOther(type: string, value: unknown): string {
  const { error_code, url, title, text } = isRecord(value) ? value : {};
  if (isErrorBlock(value)) return `[${type}: ${toWord(error_code) || 'unknown'}]`;
  if (type === 'advisor_result') return toWord(text);
  if (type === 'web_fetch_result') return `[web_fetch_result ${toWord(url)}]`;
  if (type === 'web_search_result') return [toWord(title), toWord(url)].filter((word) => word !== '').join(' ');
  return `[${type}]`;
}

function toWord(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
