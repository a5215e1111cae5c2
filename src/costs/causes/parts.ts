import { isRecord } from '../../shared/json.js';
import type { Block } from '../../transcript/file/content.js';
import type { TokenCounts } from '../../transcript/file/schema.js';
import type { AnsweredMessage } from '../../transcript/turns/turn.js';

/** The parts of a context, and of what is written, that belong to no tool. */
export const OWN_PARTS = {
  start: '(system prompt, tools, memory)',
  system: '(system prompt)',
  tools: '(tool definitions)',
  memory: '(memory and reminders)',
  prompts: '(prompts)',
  answers: '(answers)',
  thinking: '(thinking)',
  summary: '(summary)',
  hooks: '(hooks)',
  advisor: '(advisor)',
  unknown: '(not known)',
} as const;

/** The tokens of a tool's calls and results, or of something else in the context. */
export interface Part {
  readonly name: string;
  readonly tokens: number;
}

const MCP_TOOL = /^mcp__(.+?)__/;
const MCP_DEFINITIONS = /^mcp__(.+) \(definitions\)$/;

/** The part to which the definition of a tool belongs: those of all tools of an MCP server are one part. */
export function nameDefinitions(tool: unknown): string {
  const [, server] = (typeof tool === 'string' && MCP_TOOL.exec(tool)) || [];
  return server === undefined ? OWN_PARTS.tools : `mcp__${server} (definitions)`;
}

/** The MCP server to which a part belongs. */
export function findMcpServer(part: string): string | undefined {
  return (MCP_DEFINITIONS.exec(part) ?? MCP_TOOL.exec(part))?.[1];
}

export function addUpTokens(parts: readonly Part[]): number {
  return parts.reduce((sum, { tokens }) => sum + tokens, 0);
}

export function isThought({ name }: Part): boolean {
  return name === OWN_PARTS.thinking;
}

/** What came to the model: a result, a prompt, or what a hook says. */
export function toPart(message: AnsweredMessage): Part {
  if (message.role === 'tool')
    return { name: message.toolName ?? OWN_PARTS.unknown, tokens: estimateTokens(message.content) };
  const name = message.isFromHook ? OWN_PARTS.hooks : OWN_PARTS.prompts;
  return { name, tokens: estimateTokens([message.content, message.media ?? []]) };
}

/**
 * Lists the parts of what a response has written, which have all its output tokens. If nothing says how much was thought, thoughts
 * share them with the rest by their lengths, and hidden ones get what the rest does not explain.
 */
export function listWritten(blocks: readonly Block[], usage: TokenCounts = {}): Part[] {
  const { output_tokens: total = 0, output_tokens_details: details } = usage;
  const parts = blocks.map(toWritten);
  const others = parts.filter((part) => !isThought(part));
  const [length, shown] = [addUpTokens(others), addUpTokens(parts.filter(isThought))];
  const isHidden = parts.length > others.length && shown === 0;
  const estimated = isHidden ? Math.max(0, total - length) : (total * shown) / (shown + length || 1);
  const thought = length === 0 && shown > 0 ? total : Math.min(total, details?.thinking_tokens || estimated);
  const rest =
    length > 0
      ? others.map(({ name, tokens }) => ({ name, tokens: (tokens / length) * (total - thought) }))
      : [{ name: OWN_PARTS.answers, tokens: total - thought }];
  return [{ name: OWN_PARTS.thinking, tokens: thought }, ...rest].filter(({ tokens }) => tokens > 0);
}

function toWritten(block: Block): Part {
  if (block.kind === 'tool_use') return { name: block.name, tokens: estimateTokens([block.name, block.input]) };
  if (block.kind === 'thinking') return { name: OWN_PARTS.thinking, tokens: estimateTokens(block.text) };
  const content = block.kind === 'text' ? block.text : block;
  return { name: OWN_PARTS.answers, tokens: estimateTokens(content) };
}

const CHARS_PER_TOKEN = 4;
/** Claude Code makes a larger image smaller. */
const TOKENS_OF_MEDIA = 1_600;

/**
 * Estimates how many tokens something has. Estimates are compared with each other; the usage of a request says the sum. However deep a
 * value is, that takes no more of the stack.
 */
export function estimateTokens(content: unknown): number {
  let sum = 0;
  const left = [content];
  for (let each = left.pop(); each !== undefined; each = left.pop()) {
    if (typeof each === 'string') sum += each.length / CHARS_PER_TOKEN;
    else if (typeof each === 'number') sum += 1;
    else if (isMedia(each)) sum += TOKENS_OF_MEDIA;
    else if (typeof each === 'object') for (const value of Object.values(each ?? {})) left.push(value ?? null);
  }
  return sum;
}

function isMedia(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { type, kind, source } = value;
  return kind === 'media' || ((type === 'image' || type === 'document') && isRecord(source));
}
