import { type Block, type ContentPart, extractParts } from '../../transcript/file/content.js';
import { describeNotification, isNotification } from '../../transcript/turns/notification.js';
import {
  type AnsweredMessage,
  findEndingCall,
  findTextArgument,
  type Prompt,
  type Response,
  type ToolCall,
} from '../../transcript/turns/turn.js';
import type { ContentSettings } from '../model.js';
import { CLAUDE_CODE, isWithheld, NOT_CAPTURED } from './capture.js';
import { buildContent, MediaPart } from './media.js';
import { SanitizedText, sanitizeText, sanitizeValue } from './sanitize.js';

/** A generation repeats only the beginning of what it answers: the tool's own observation has it all. */
const ANSWERED_CHARS = 2_000;

/** Langfuse shows a message's name as its title, or else the role (getMessageTitle in its chatMessageUtils.ts). */
export interface MessageSettings extends ContentSettings {
  /** Who answers, if it is a subagent that Claude has called. */
  readonly subagent?: string | undefined;
}

/** Builds what the model answered, in the shape that Langfuse draws as a conversation. */
export function buildInputMessages(answered: readonly AnsweredMessage[], settings: MessageSettings) {
  return answered.map((message) => {
    if (message.role === 'tool') {
      const content = buildBeginning(extractParts(message.content), settings);
      return { role: 'tool', name: message.toolName, tool_call_id: message.toolCallId, content };
    }
    const parts = [describeNotification(message.content), ...(message.media ?? [])];
    const content = isWithheld(message, settings.capture) ? NOT_CAPTURED : buildBeginning(parts, settings);
    return { role: 'user', name: nameSender(message, settings), content };
  });
}

/** Builds a whole message of the user: the text, then the images and documents. */
export function buildUserMessage(
  { content, media, context }: Pick<Prompt, 'content' | 'media'> & Partial<Pick<Prompt, 'context'>>,
  settings: MessageSettings,
) {
  const name = nameSender({ content, trigger: context?.trigger }, settings);
  if (isWithheld({ content }, settings.capture)) return { role: 'user', name, content: NOT_CAPTURED };
  return { role: 'user', name, content: buildContent([describeNotification(content), ...media], settings) };
}

/** Builds what a hook of the user told the model. */
export function buildHookMessage(content: string, { capture }: ContentSettings) {
  const isHidden = isWithheld({ content, isFromHook: true }, capture);
  return { role: 'user', name: HOOK, content: isHidden ? NOT_CAPTURED : content };
}

export const CLAUDE = 'Claude';
const HOOK = 'Hook';
const BACKGROUND_TASK = 'Background task';
const SENDERS = new Map([
  ['task-notification', BACKGROUND_TASK],
  ['scheduled', 'Schedule'],
  ['peer', 'Another agent'],
  ['auto-continuation', CLAUDE_CODE],
  ['system', CLAUDE_CODE],
]);
const BY_THE_USER = ['human', 'command', 'bash', 'accepted-plan'];

/** Returns who has given a message that has the user's role, if it is not the user. Claude gives a subagent its prompts. */
function nameSender(
  { content, trigger = 'human', isFromHook = false }: Pick<UserMessage, 'content' | 'trigger' | 'isFromHook'>,
  { subagent }: MessageSettings,
): string | undefined {
  if (isFromHook) return HOOK;
  if (isNotification(content)) return BACKGROUND_TASK;
  if (BY_THE_USER.includes(trigger)) return subagent === undefined ? undefined : CLAUDE;
  return SENDERS.get(trigger) ?? trigger;
}

type UserMessage = Extract<AnsweredMessage, { role: 'user' }>;

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
  { redact, subagent }: MessageSettings,
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
    name: subagent,
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

/** Takes the place of messages that are not shown. */
export function buildMark(count: number, what: string, happened: string) {
  return { role: 'system', content: `[${count} ${what}${count === 1 ? '' : 's'} ${happened}]` };
}
