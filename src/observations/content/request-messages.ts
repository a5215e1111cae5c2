import { isRecord, withoutUndefined } from '../../shared/json.js';
import { extractParts, extractText, parseBlocks } from '../../transcript/file/content.js';
import type { RequestMessage, RequestShape } from '../../transcript/file/schema.js';
import type { ContentSettings } from './capture.js';
import { buildContent } from './media.js';
import { buildOutputMessage } from './messages.js';

/** Builds the system prompt and the tools, where Langfuse looks for them. */
export function buildSystemMessage({ system, tools }: RequestShape): unknown {
  const definitions = Array.isArray(tools) ? tools.filter(isRecord) : [];
  const shown = definitions.map(({ input_schema: parameters, ...rest }) => withoutUndefined({ ...rest, parameters }));
  return { role: 'system', content: extractText(system), ...(shown.length > 0 && { tools: shown }) };
}

/** One message of the API is several in the shape that Langfuse draws: each tool result is a message of its own. */
export function buildRequestMessages({ role, content }: RequestMessage, settings: ContentSettings): readonly unknown[] {
  const blocks = parseBlocks(content);
  const results = blocks
    .filter((block) => block.kind === 'tool_result')
    .map(({ toolUseId, content: result }) => ({
      role: 'tool',
      tool_call_id: toolUseId,
      content: buildContent(extractParts(isRecord(result) ? [result] : result), settings),
    }));
  if (role === 'assistant') {
    const calls = blocks.filter((block) => block.kind === 'tool_use');
    // The results of tools that the server runs are in the same message as their calls.
    return [buildOutputMessage({ blocks, calls }, settings), ...results];
  }
  const message = { role, content: buildContent(extractParts(content), settings) };
  return message.content === '' && results.length > 0 ? results : [...results, message];
}
