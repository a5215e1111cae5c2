import { isRecord, withoutUndefined } from '../../shared/json.js';
import { type Block, extractParts, extractText, parseBlocks } from '../../transcript/file/content.js';
import type { RequestMessage, RequestShape } from '../../transcript/file/schema.js';
import { buildContent, type MediaRules } from './media.js';
import { buildOutputMessage } from './messages.js';

/** System prompt and tools, where Langfuse looks for them. */
export function buildSystemMessage({ system, tools }: RequestShape): unknown {
  const offered = Array.isArray(tools) ? tools.filter(isRecord).map(toolOffered) : [];
  return { role: 'system', content: extractText(system), ...(offered.length > 0 && { tools: offered }) };
}

/** A message of the API is several in the shape that Langfuse draws: what each tool answered is one of its own. */
export function buildRequestMessages({ role, content }: RequestMessage, rules: MediaRules): readonly unknown[] {
  const blocks = parseBlocks(content);
  const results = blocks.filter(isResult).map(({ toolUseId, content }) => ({
    role: 'tool',
    tool_call_id: toolUseId,
    content: buildContent(extractParts(isRecord(content) ? [content] : content), rules),
  }));
  // What a tool of the server's own found stands in the answer itself.
  if (role === 'assistant')
    return [buildOutputMessage({ blocks, calls: blocks.filter(isCall) }, rules.fit), ...results];
  const said = buildContent(extractParts(content), rules);
  return said === '' && results.length > 0 ? results : [...results, { role, content: said }];
}

function toolOffered({ input_schema: parameters, ...rest }: Record<string, unknown>) {
  return withoutUndefined({ ...rest, parameters });
}

function isResult(block: Block): block is Extract<Block, { kind: 'tool_result' }> {
  return block.kind === 'tool_result';
}

function isCall(block: Block): block is Extract<Block, { kind: 'tool_use' }> {
  return block.kind === 'tool_use';
}
