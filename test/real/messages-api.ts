import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Failure, Reply, ReplyBlock, Script } from './replies.js';

export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_creation: {
    readonly ephemeral_5m_input_tokens: number;
    readonly ephemeral_1h_input_tokens: number;
  };
}

/** An answer that was given. */
export interface Served {
  readonly id: string;
  readonly usage: Usage;
  readonly toolUseIds: readonly string[];
  /** Asked by the program for itself (a title, a summary): no part of the conversation. */
  readonly isAside: boolean;
  /** False as long as it is on its way, and for good where the program hung up. */
  isWhole: boolean;
}

interface MessagesRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly tools?: readonly unknown[];
  readonly messages: readonly Message[];
}

interface Message {
  readonly role: string;
  readonly content: string | readonly { readonly type: string; readonly text?: string }[];
}

type ServedBlock = ReplyBlock & { readonly id?: string };

const ASIDE: Reply = { content: [{ type: 'text', text: '{"title": "A scripted session"}' }] };
const SUMMARY: Reply = {
  content: [{ type: 'text', text: '<analysis>It was short.</analysis>\n<summary>What was said before.</summary>' }],
};
const NO_REPLY: Failure = { status: 400, type: 'invalid_request_error', message: 'the script has no reply to this' };

/** A Messages API on loopback that answers as a script says. */
export class MessagesApi {
  readonly served: Served[] = [];
  readonly #script: Script;
  readonly #work: string;
  readonly #failed = new Map<Reply, number>();
  readonly #server = createServer((request, response) => {
    // Whoever hangs up in the middle is the scenario's business.
    response.on('error', () => {});
    void this.#handle(request, response).catch(() => response.destroy());
  });
  #requests = 0;

  private constructor(script: Script, work: string) {
    this.#script = script;
    this.#work = work;
  }

  static async start(script: Script, work: string): Promise<MessagesApi> {
    const api = new MessagesApi(script, work);
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve));
    return api;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString('utf8');
    if (request.method !== 'POST' || !/^\/v1\/messages(\?|$)/.test(request.url ?? '')) {
      fail(response, { status: 404, type: 'not_found_error', message: 'only messages are served here' });
      return;
    }
    const asked = JSON.parse(body) as MessagesRequest;
    const { reply, isAside } = this.#replyTo(asked);
    const failure = this.#nextFailure(reply);
    if (failure) {
      fail(response, failure);
      return;
    }
    await sleep(reply.firstByteAfterMs ?? 0);
    const plan = /[^\s"'`\\]+\/plans\/[\w.-]+\.md/.exec(body)?.[0] ?? '';
    await this.#serve(response, asked, reply, { isAside, plan });
  }

  #replyTo({ messages, tools = [] }: MessagesRequest): { reply: Reply; isAside: boolean } {
    if (/create a (detailed )?summary/i.test(textOf(messages.at(-1)))) return { reply: SUMMARY, isAside: true };
    if (tools.length === 0) return { reply: ASIDE, isAside: true };
    for (const [place, message] of [...messages.entries()].reverse()) {
      if (message.role !== 'user') continue;
      const said = textOf(message);
      const prompt = Object.keys(this.#script).find((prompt) => said.includes(prompt));
      if (prompt === undefined) continue;
      const step = messages.slice(place).filter(({ role }) => role === 'assistant').length;
      return { reply: this.#script[prompt]?.[step] ?? { failures: [NO_REPLY] }, isAside: false };
    }
    return { reply: { failures: [NO_REPLY] }, isAside: false };
  }

  #nextFailure(reply: Reply): Failure | undefined {
    const { failures = [], content } = reply;
    const failed = this.#failed.get(reply) ?? 0;
    this.#failed.set(reply, failed + 1);
    return failures[failed] ?? (content ? undefined : (failures.at(-1) ?? NO_REPLY));
  }

  async #serve(
    response: ServerResponse,
    { model, stream = false }: MessagesRequest,
    { content = [], msPerWord }: Reply,
    { isAside, plan }: { isAside: boolean; plan: string },
  ): Promise<void> {
    this.#requests += 1;
    const number = this.#requests;
    const inPlace = JSON.stringify(content).replaceAll('$WORK', this.#work).replaceAll('$PLAN', plan);
    const blocks = (JSON.parse(inPlace) as ReplyBlock[]).map(
      (block, index): ServedBlock => (block.type === 'tool_use' ? { ...block, id: `toolu_${number}_${index}` } : block),
    );
    const usage = usageOf(number, content);
    const toolUseIds = blocks.flatMap(({ id = [] }) => id);
    const served: Served = { id: `msg_${number}`, usage, toolUseIds, isAside, isWhole: false };
    this.served.push(served);
    response.on('finish', () => {
      served.isWhole = true;
    });
    const message = { id: served.id, type: 'message', role: 'assistant', model, stop_sequence: null };
    const stop_reason = toolUseIds.length > 0 ? 'tool_use' : 'end_turn';
    if (!stream) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...message, content: blocks, stop_reason, usage }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const begun = { ...usage, output_tokens: 1 };
    send(response, 'message_start', { message: { ...message, content: [], stop_reason: null, usage: begun } });
    for (const [index, block] of blocks.entries()) {
      send(response, 'content_block_start', { index, content_block: emptied(block) });
      for (const delta of deltasOf(block, msPerWord !== undefined)) {
        if (response.destroyed) return;
        send(response, 'content_block_delta', { index, delta });
        if (msPerWord !== undefined) await sleep(msPerWord);
      }
      send(response, 'content_block_stop', { index });
    }
    send(response, 'message_delta', { delta: { stop_reason, stop_sequence: null }, usage });
    send(response, 'message_stop', {});
    response.end();
  }
}

/** No two answers have the same figures, so that none can stand for another. */
function usageOf(number: number, content: readonly ReplyBlock[]): Usage {
  return {
    input_tokens: 3 + number,
    output_tokens: 10 + JSON.stringify(content).length,
    cache_read_input_tokens: 12_000 + number,
    cache_creation_input_tokens: 150,
    cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 50 },
  };
}

function textOf(message: Message | undefined): string {
  const content = message?.content ?? [];
  if (typeof content === 'string') return content;
  return content.map(({ text = '' }) => text).join('\n');
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

function deltasOf(block: ServedBlock, byWord: boolean): object[] {
  switch (block.type) {
    case 'text': {
      const parts = byWord ? block.text.split(/(?<=\s)/) : [block.text];
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

function send(response: ServerResponse, type: string, data: object): void {
  if (!response.destroyed) response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
}

function fail(response: ServerResponse, { status, type, message }: Failure): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ type: 'error', error: { type, message } }));
}
