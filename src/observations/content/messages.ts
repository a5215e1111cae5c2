import { type Block, type ContentPart, extractParts } from '../../transcript/file/content.js';
import type { AnsweredMessage, Prompt } from '../../transcript/turns/turn.js';
import { SanitizedText, type Sanitizer } from './limits.js';
import { buildContent, MediaPart, type MediaRules } from './media.js';

/** Of what a generation answers only the beginning is repeated here: the tool's own observation has it all. */
const ANSWERED_CHARS = 2_000;

/** What was said to the model, in the shape that Langfuse draws as a conversation. */
export function buildInputMessages(answered: readonly AnsweredMessage[], rules: MediaRules) {
  return answered.map((message) =>
    message.role === 'user'
      ? { role: 'user', content: beginningOf([message.content, ...(message.media ?? [])], rules) }
      : { role: 'tool', tool_call_id: message.toolCallId, content: beginningOf(extractParts(message.content), rules) },
  );
}

/** All that a user gave: words, and what was put beside them. */
export function buildUserMessage({ content, media }: Pick<Prompt, 'content' | 'media'>, rules: MediaRules) {
  return { role: 'user', content: buildContent([content, ...media], rules) };
}

function beginningOf(parts: readonly ContentPart[], rules: MediaRules): unknown {
  const content = buildContent(parts, rules);
  const text = (whole: string) => new SanitizedText(rules.fit.text(whole, ANSWERED_CHARS));
  if (typeof content === 'string') return text(content);
  return content.map((part) => (part instanceof MediaPart ? part : { type: 'text', text: text(part.text) }));
}

/** What the model said, as far as it is drawn. */
interface Said {
  readonly blocks: readonly Block[];
  readonly calls: readonly { readonly id: string | undefined; readonly name: string; readonly input: unknown }[];
}

/** What the model said, in that same shape. Signatures of its thinking are not sent. */
export function buildOutputMessage(said: Said, fit: Sanitizer) {
  const thinking = said.blocks.flatMap((block) =>
    block.kind === 'thinking' && block.text !== '' ? [{ type: 'thinking', content: block.text }] : [],
  );
  const redacted = said.blocks.filter((block) => block.kind === 'other' && block.type === 'redacted_thinking');
  const calls = said.calls.map(({ id, name, input }) => ({
    id,
    type: 'function',
    function: {
      name,
      arguments: new SanitizedText(JSON.stringify(fit.value(input ?? {}, Number.POSITIVE_INFINITY).value)),
    },
  }));
  return {
    role: 'assistant',
    content: answerText(said),
    ...(thinking.length > 0 && { thinking }),
    ...(redacted.length > 0 && {
      redacted_thinking: redacted.map(() => ({ type: 'redacted_thinking', data: '[redacted]' })),
    }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

export function answerText({ blocks }: Pick<Said, 'blocks'>): string {
  return blocks
    .flatMap((block) => (block.kind === 'text' ? [block.text] : []))
    .filter((text) => text !== '')
    .join('\n');
}
