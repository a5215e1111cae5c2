import { isRecord } from '../../shared/json.js';
import { isNotification } from '../../transcript/turns/notification.js';
import type { ObservationKey } from '../metadata-keys.js';
import type { Capture, ObservationDraft } from '../model.js';

/** Metadata that repeats content. A new key that does must be added here. */
const CONTENT_METADATA: readonly string[] = [
  'summary',
  'input_changed',
  'stored_path',
  'session_title',
  'description',
] satisfies ObservationKey[];

export const NOT_CAPTURED = '[not captured]';
export const CLAUDE_CODE = 'Claude Code';

/** What Claude Code itself did or says. */
export function describeAction(content: string) {
  return { role: 'assistant', name: CLAUDE_CODE, content };
}

/**
 * Removes what the capture level forbids. Names, times, tokens and outcomes always stay. What ended without an answer gets an
 * output that says how, as far as the level allows: the default view of Langfuse's session page shows nothing without one.
 */
export function applyCapture({ unanswered, brokenOff, ...draft }: ObservationDraft, capture: Capture): Captured {
  const captured = withoutForbidden(draft, capture);
  const { output, statusMessage } = captured;
  if (unanswered !== undefined) return { ...captured, output: describeAction(statusMessage || unanswered) };
  if (brokenOff === undefined || !isRecord(output) || typeof output.content !== 'string') return captured;
  // A trace opens without its status message: the text that there was would read as an answer.
  const [reason = brokenOff] = (statusMessage || brokenOff).trim().split('\n', 1);
  return { ...captured, output: { ...output, content: `${output.content}\n\n> **${reason}**` } };
}

type Captured = Omit<ObservationDraft, 'unanswered' | 'brokenOff' | 'statusWithoutTools'>;

function withoutForbidden(
  { statusWithoutTools, ...draft }: Omit<ObservationDraft, 'unanswered' | 'brokenOff'>,
  capture: Capture,
): Captured {
  if (capture === 'full') return draft;
  if (capture === 'metadata' || draft.type === 'tool') {
    const { input: _, output: __, statusMessage: ___, metadata, ...rest } = draft;
    const kept = Object.entries(metadata).filter(([key]) => !CONTENT_METADATA.includes(key));
    return { ...rest, metadata: Object.fromEntries(kept) };
  }
  const { input, output, statusMessage } = draft;
  return {
    ...draft,
    statusMessage: statusWithoutTools ?? statusMessage,
    input: Array.isArray(input) ? input.map(withoutToolResult) : input,
    output: draft.type === 'generation' ? withoutToolArguments(output) : output,
  };
}

/**
 * Whether a message of the user may repeat what a tool returned: a tool that ran in the background answers in such a message, and
 * what a hook says can be about a tool.
 */
export function isWithheld({ content, isFromHook = false }: UserMessage, capture: Capture): boolean {
  return capture !== 'full' && (isFromHook || isNotification(content));
}

type UserMessage = { readonly content: string; readonly isFromHook?: boolean };

function withoutToolResult(message: unknown): unknown {
  return isRecord(message) && message.role === 'tool' ? { ...message, content: NOT_CAPTURED } : message;
}

function withoutToolArguments(message: unknown): unknown {
  if (!isRecord(message) || !Array.isArray(message.tool_calls)) return message;
  const calls = message.tool_calls.map((call) => {
    const name = isRecord(call) && isRecord(call.function) ? call.function.name : undefined;
    return isRecord(call) ? { ...call, function: { name, arguments: '{}' } } : call;
  });
  return { ...message, tool_calls: calls };
}
