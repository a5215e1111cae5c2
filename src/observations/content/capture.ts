import { isRecord } from '../../shared/json.js';
import type { Capture, ObservationDraft } from '../model.js';
import { SanitizedText } from './sanitize.js';

/** Metadata that repeats content. A new key that does must be added here. */
const CONTENT_METADATA = ['summary', 'stored_path', 'session_title', 'description'];

/** Removes what the capture level forbids. Names, times, tokens and outcomes always stay. */
export function applyCapture(draft: ObservationDraft, capture: Capture): ObservationDraft {
  if (capture === 'full') return draft;
  if (capture === 'metadata' || draft.type === 'tool') {
    const { input: _, output: __, statusMessage: ___, metadata, ...rest } = draft;
    const kept = Object.entries(metadata).filter(([key]) => !CONTENT_METADATA.includes(key));
    return { ...rest, metadata: Object.fromEntries(kept) };
  }
  const { input, output } = draft;
  return {
    ...draft,
    input: Array.isArray(input) ? input.map(withoutToolResult) : input,
    output: draft.type === 'generation' ? withoutToolArguments(output) : output,
  };
}

/** A tool answers at once or, if it ran in the background, later in a message of the user. */
function withoutToolResult(message: unknown): unknown {
  if (!isRecord(message)) return message;
  const { role, content } = message;
  const first = Array.isArray(content) && isRecord(content[0]) ? content[0].text : content;
  const text = first instanceof SanitizedText ? first.text : first;
  const isNotification = typeof text === 'string' && text.startsWith('<task-notification>');
  return role === 'tool' || isNotification ? { ...message, content: '[not captured]' } : message;
}

function withoutToolArguments(message: unknown): unknown {
  if (!isRecord(message) || !Array.isArray(message.tool_calls)) return message;
  const calls = message.tool_calls.map((call) => {
    const name = isRecord(call) && isRecord(call.function) ? call.function.name : undefined;
    return isRecord(call) ? { ...call, function: { name, arguments: '{}' } } : call;
  });
  return { ...message, tool_calls: calls };
}
