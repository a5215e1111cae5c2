import { type Block, type ContentPart, extractParts } from '../../transcript/file/content.js';
import { describeNotification } from '../../transcript/turns/notification.js';
import {
  type AnsweredMessage,
  findEndingCall,
  findTextArgument,
  type Prompt,
  type Response,
  type ToolCall,
} from '../../transcript/turns/turn.js';
import type { ContentSettings } from '../model.js';
import { isWithheld, NOT_CAPTURED } from './capture.js';
import { buildContent, MediaPart } from './media.js';
import { SanitizedText, sanitizeText, sanitizeValue } from './sanitize.js';

/** A generation repeats only the beginning of what it answers: the tool's own observation has it all. */
const ANSWERED_CHARS = 2_000;

/** Builds what the model answered, in the shape that Langfuse draws as a conversation. */
export function buildInputMessages(answered: readonly AnsweredMessage[], settings: ContentSettings) {
  return answered.map((message) => {
    if (message.role === 'user' && isWithheld(message, settings.capture))
      return { role: 'user', content: NOT_CAPTURED };
    if (message.role === 'user') {
      const parts = [describeNotification(message.content), ...(message.media ?? [])];
      return { role: 'user', content: buildBeginning(parts, settings) };
    }
    const content = buildBeginning(extractParts(message.content), settings);
    // Langfuse shows the name as the message's title (getMessageTitle in its chatMessageUtils.ts).
    return { role: 'tool', name: message.toolName, tool_call_id: message.toolCallId, content };
  });
}

/** Builds a whole message of the user: the text, then the images and documents. */
export function buildUserMessage({ content, media }: Pick<Prompt, 'content' | 'media'>, settings: ContentSettings) {
  if (isWithheld({ content }, settings.capture)) return { role: 'user', content: NOT_CAPTURED };
  return { role: 'user', content: buildContent([describeNotification(content), ...media], settings) };
}

/** Builds what a hook of the user told the model. */
export function buildHookMessage(content: string, { capture }: ContentSettings) {
  return { role: 'user', content: isWithheld({ content, isFromHook: true }, capture) ? NOT_CAPTURED : content };
}

function buildBeginning(parts: readonly ContentPart[], settings: ContentSettings): unknown {
  const content = buildContent(parts, settings);
  const shorten = (text: string) => new SanitizedText(sanitizeText(text, settings.redact, ANSWERED_CHARS));
  if (typeof content === 'string') return shorten(content);
  return content.map((part) => (part instanceof MediaPart ? part : { type: 'text', text: shorten(part.text) }));
}

/** Builds the model's message in that same shape. The signatures of its thinking are not sent. */
export function buildOutputMessage(
  {
    blocks,
    calls,
  }: { blocks: readonly Block[]; calls: readonly Pick<ToolCall, 'id' | 'name' | 'input' | 'changed'>[] },
  { redact }: ContentSettings,
) {
  const thinking = blocks.flatMap((block) =>
    block.kind === 'thinking' && block.text !== '' ? [{ type: 'thinking', content: block.text }] : [],
  );
  const redactedThinking = blocks.flatMap((block) =>
    block.kind === 'other' && block.type === 'redacted_thinking' ? [{ type: block.type, data: '[redacted]' }] : [],
  );
  const toolCalls = calls.map(({ id, name, input, changed }) => {
    const asked = changed ? changed.asked : input;
    const { value } = sanitizeValue(asked ?? {}, redact);
    return { id, type: 'function', function: { name, arguments: new SanitizedText(JSON.stringify(value)) } };
  });
  return {
    role: 'assistant',
    content: answerText({ blocks }),
    ...(thinking.length > 0 && { thinking }),
    ...(redactedThinking.length > 0 && { redacted_thinking: redactedThinking }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
  };
}

/** Returns the answer of a response: the data of the call that ended the turn, or else the text. */
export function readAnswer(response: Pick<Response, 'blocks' | 'calls'>): unknown {
  const call = findEndingCall(response);
  if (call?.name === 'StructuredOutput') return call.input;
  return (call?.name === 'SubagentHandback' && findTextArgument(call, 'message')) || answerText(response);
}

/** The text of a response, without its thinking and tool calls. */
export function answerText({ blocks }: Pick<Response, 'blocks'>): string {
  return blocks.flatMap((block) => (block.kind === 'text' && block.text !== '' ? [block.text] : [])).join('\n');
}
