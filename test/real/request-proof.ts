import { expect } from 'vitest';
import type { ContentBlock, Message, MessagesRequest } from './messages-api.js';
import type { TracedHome } from './traced-home.js';

/** Proves that for each answer Langfuse shows the whole request that was sent to the API. */
export function proveRequests({ claude, server }: TracedHome): void {
  const answers = claude.api.served.filter(({ isAside, isWhole }) => isWhole && !isAside);
  expect(answers).not.toEqual([]);
  const shown = answers.map(({ id }) => {
    const generation = server.observations.find(({ metadata }) => metadata.message_id === id);
    return { id, input: generation?.input, messages: generation?.metadata.request_messages };
  });
  expect(shown).toEqual(answers.map(({ id, asked }) => ({ id, input: drawn(asked), messages: asked.messages.length })));
}

/** Converts a request to what Langfuse should show. The transcript does not contain the first block, which is for billing. */
function drawn({ system = [], tools = [], messages }: MessagesRequest): object[] {
  const prompt = system.filter(({ text }) => !text?.startsWith('x-anthropic-billing-header'));
  const offered = tools.map(({ input_schema: parameters, cache_control: _, ...rest }) => ({ ...rest, parameters }));
  const called = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
  const names = new Map(called.flatMap(({ type, id, name }) => (type === 'tool_use' ? [[id, name]] : [])));
  const drawnMessages = messages.flatMap((message) => drawnMessage(message, names));
  return [{ role: 'system', content: wordsIn(prompt), tools: offered }, ...drawnMessages];
}

function drawnMessage(
  { role, content }: Message,
  names: ReadonlyMap<string | undefined, string | undefined>,
): object[] {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const results = blocks.flatMap(({ type, tool_use_id, content = [] }) =>
    type === 'tool_result'
      ? [{ role: 'tool', name: names.get(tool_use_id), tool_call_id: tool_use_id, content: wordsIn(content) }]
      : [],
  );
  const thinking = blocks.flatMap(({ type, thinking }) => (type === 'thinking' ? [{ type, content: thinking }] : []));
  const calls = blocks.flatMap(({ type, id, name, input }) =>
    type === 'tool_use' ? [{ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }] : [],
  );
  const message = {
    role,
    content: wordsIn(blocks),
    ...(thinking.length > 0 && { thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return results.length > 0 && message.content === '' ? results : [...results, message];
}

function wordsIn(content: string | readonly ContentBlock[]): string {
  if (typeof content === 'string') return content;
  return content.flatMap(({ text }) => text ?? []).join('\n');
}
