import { isRecord, type Json } from '../../shared/json.js';
import type { Observation } from '../model.js';
import { SanitizedText } from './limits.js';

/** How much of what was said and done leaves the machine. */
export type Capture = 'full' | 'no_tool_io' | 'metadata';

export type Content = Omit<Observation, 'trace' | 'input' | 'output'> & { input?: unknown; output?: unknown };

const LEFT_OUT = '[not captured]';
/** Metadata that repeats content. */
const TELLING = ['summary', 'stored_path', 'session_title', 'description'];

/** An observation as far as it is to be told; names, times, tokens and outcomes always are. */
export function applyCapture(content: Content, capture: Capture): Content {
  if (capture === 'full') return content;
  if (capture === 'metadata' || content.type === 'tool') {
    const { input: _, output: __, statusMessage: ___, ...rest } = content;
    return { ...rest, metadata: withoutTelling(content.metadata) };
  }
  const told = { ...content, input: withoutResults(content.input) };
  return content.type === 'generation' ? { ...told, output: withoutArguments(content.output) } : told;
}

function withoutTelling(metadata: { readonly [key: string]: Json }): { [key: string]: Json } {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !TELLING.includes(key)));
}

function withoutResults(messages: unknown): unknown {
  if (!Array.isArray(messages)) return messages;
  return messages.map((message) =>
    isRecord(message) && isResult(message) ? { ...message, content: LEFT_OUT } : message,
  );
}

/** What a tool answered, at once or, from the background, as a message of its own. */
function isResult({ role, content }: Record<string, unknown>): boolean {
  const words = Array.isArray(content) && isRecord(content[0]) ? content[0].text : content;
  const text = words instanceof SanitizedText ? words.text : words;
  return role === 'tool' || (typeof text === 'string' && text.startsWith('<task-notification>'));
}

function withoutArguments(message: unknown): unknown {
  if (!isRecord(message) || !Array.isArray(message.tool_calls)) return message;
  const calls = message.tool_calls.map((call) => {
    const name = isRecord(call) && isRecord(call.function) ? call.function.name : undefined;
    return isRecord(call) ? { ...call, function: { name, arguments: '{}' } } : call;
  });
  return { ...message, tool_calls: calls };
}
