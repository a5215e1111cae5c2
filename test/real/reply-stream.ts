import type { ReplyBlock } from './replies.js';

/** A block as it is sent: a tool call has an id now. */
export type ServedBlock = ReplyBlock & { readonly id?: string };

interface AssistantMessage {
  readonly id: string;
  readonly model: string;
  readonly content: readonly ServedBlock[];
  readonly stop_reason: string;
  readonly usage: { readonly output_tokens: number };
}

/** An event of the stream; `type` is its name. */
type StreamEvent = { readonly type: string; readonly [field: string]: unknown };

/** Generates the events in which the Messages API streams a message, with each text in one piece or word by word. */
export function* eventsOf(message: AssistantMessage, isByWord: boolean): Generator<StreamEvent, void, undefined> {
  const { content, stop_reason, usage } = message;
  const begun = { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  yield { type: 'message_start', message: begun };
  for (const [index, block] of content.entries()) {
    yield { type: 'content_block_start', index, content_block: emptied(block) };
    for (const delta of deltasOf(block, isByWord)) yield { type: 'content_block_delta', index, delta };
    yield { type: 'content_block_stop', index };
  }
  yield { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage };
  yield { type: 'message_stop' };
}

function emptied(block: ServedBlock): object {
  switch (block.type) {
    case 'text':
      return { ...block, text: '' };
    case 'thinking':
      return { ...block, thinking: '', signature: '' };
    case 'tool_use':
      return { ...block, input: {} };
  }
}

function deltasOf(block: ServedBlock, isByWord: boolean): object[] {
  switch (block.type) {
    case 'text': {
      const parts = isByWord ? block.text.split(/(?<=\s)/) : [block.text];
      return parts.map((part) => ({ type: 'text_delta', text: part }));
    }
    case 'thinking':
      return [
        { type: 'thinking_delta', thinking: block.thinking },
        { type: 'signature_delta', signature: block.signature },
      ];
    case 'tool_use':
      return [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input) }];
  }
}
