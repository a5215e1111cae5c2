import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Failure, type Reply, type ReplyBlock, type Script, says, text } from './replies.js';
import { eventsOf, type ServedBlock } from './reply-stream.js';

interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_creation: {
    readonly ephemeral_5m_input_tokens: number;
    readonly ephemeral_1h_input_tokens: number;
  };
}

/** An answer that the API sent. */
export interface Served {
  readonly id: string;
  /** The request. */
  readonly asked: MessagesRequest;
  readonly usage: Usage;
  readonly toolUseIds: readonly string[];
  /** Claude Code asked for it itself (a title, a summary), so it is not part of the conversation. */
  readonly isAside: boolean;
  /** False while it is being sent, and for good if Claude Code closed the connection. */
  isWhole: boolean;
}

export interface MessagesRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly system?: readonly ContentBlock[];
  readonly tools?: readonly { readonly [field: string]: unknown }[];
  readonly messages: readonly Message[];
}

export interface Message {
  readonly role: string;
  readonly content: string | readonly ContentBlock[];
}

/** The fields of a block that are used here. */
export interface ContentBlock {
  readonly type: string;
  readonly text?: string;
  readonly thinking?: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: object;
  readonly tool_use_id?: string;
  readonly source?: { readonly type: string; readonly data?: string };
  readonly content?: string | readonly ContentBlock[];
}

const NAME = says(text('{"title": "A scripted session"}'));
const SUMMARY = says(text('<analysis>It was short.</analysis>\n<summary>What was said before.</summary>'));
const NO_REPLY: Failure = { status: 400, type: 'invalid_request_error', message: 'the script has no reply to this' };
const NO_MESSAGE: Failure = { status: 404, type: 'not_found_error', message: 'only messages are served here' };

/** A Messages API on loopback that answers by a script. */
export class MessagesApi {
  readonly served: Served[] = [];
  readonly #script: Script;
  readonly #work: string;
  readonly #asked = new Map<Reply, number>();
  readonly #server = createServer((request, response) => {
    // Some scenarios close the connection in the middle of an answer.
    response.on('error', () => {});
    this.#handle(request, response).catch(() => response.destroy());
  });

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
      refuse(response, NO_MESSAGE);
      return;
    }
    const asked = JSON.parse(body) as MessagesRequest;
    const { reply, isAside } = findReply(asked, this.#script);
    const failure = this.#takeFailure(reply);
    if (failure) {
      refuse(response, failure);
      return;
    }
    const plan = /[^\s"'`\\]+\/plans\/[\w.-]+\.md/.exec(body)?.[0] ?? '';
    await this.#answer(response, asked, { reply, isAside, plan });
  }

  /** Returns how the next request for a reply fails, or undefined if it does not. */
  #takeFailure(reply: Reply): Failure | undefined {
    const { failures = [], content } = reply;
    const times = this.#asked.get(reply) ?? 0;
    this.#asked.set(reply, times + 1);
    return failures[times] ?? (content ? undefined : (failures.at(-1) ?? NO_REPLY));
  }

  async #answer(
    response: ServerResponse,
    asked: MessagesRequest,
    { reply: { content = [], msPerWord }, isAside, plan }: { reply: Reply; isAside: boolean; plan: string },
  ): Promise<void> {
    const number = this.served.length + 1;
    const filledIn = JSON.stringify(content).replaceAll('$WORK', this.#work).replaceAll('$PLAN', plan);
    const blocks = (JSON.parse(filledIn) as ReplyBlock[]).map(
      (block, index): ServedBlock => (block.type === 'tool_use' ? { ...block, id: `toolu_${number}_${index}` } : block),
    );
    const toolUseIds = blocks.flatMap(({ id = [] }) => id);
    const { model, stream } = asked;
    const served: Served = {
      id: `msg_${number}`,
      asked,
      usage: usageOf(number, content),
      toolUseIds,
      isAside,
      isWhole: false,
    };
    this.served.push(served);
    response.on('finish', () => {
      served.isWhole = true;
    });
    const stop_reason = toolUseIds.length > 0 ? 'tool_use' : 'end_turn';
    const about = { id: served.id, type: 'message', role: 'assistant', model, stop_sequence: null };
    const message = { ...about, content: blocks, stop_reason, usage: served.usage };
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
    if (!stream) {
      response.end(JSON.stringify(message));
      return;
    }
    for (const event of eventsOf(message, msPerWord !== undefined)) {
      if (response.destroyed) return;
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
      if (msPerWord !== undefined) await sleep(msPerWord);
    }
    response.end();
  }
}

/** Finds the reply to the newest prompt of the script in a request, for the step that its tool loop has reached. */
function findReply({ messages, tools = [] }: MessagesRequest, script: Script): { reply: Reply; isAside: boolean } {
  if (/create a (detailed )?summary/i.test(textOf(messages.at(-1)))) return { reply: SUMMARY, isAside: true };
  if (tools.length === 0) return { reply: NAME, isAside: true };
  for (const [place, message] of [...messages.entries()].reverse()) {
    if (message.role !== 'user') continue;
    const said = textOf(message);
    const prompt = Object.keys(script).find((prompt) => said.includes(prompt));
    if (prompt === undefined) continue;
    const step = messages.slice(place).filter(({ role }) => role === 'assistant').length;
    return { reply: script[prompt]?.[step] ?? { failures: [NO_REPLY] }, isAside: false };
  }
  return { reply: { failures: [NO_REPLY] }, isAside: false };
}

function textOf(message: Message | undefined): string {
  const content = message?.content ?? [];
  if (typeof content === 'string') return content;
  return content.map(({ text = '' }) => text).join('\n');
}

/** Each answer has other counts, so that none can be mistaken for another. */
function usageOf(number: number, content: readonly ReplyBlock[]): Usage {
  return {
    input_tokens: 3 + number,
    output_tokens: 10 + JSON.stringify(content).length,
    cache_read_input_tokens: 12_000 + number,
    cache_creation_input_tokens: 150,
    cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 50 },
  };
}

function refuse(response: ServerResponse, { status, type, message }: Failure): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ type: 'error', error: { type, message } }));
}
