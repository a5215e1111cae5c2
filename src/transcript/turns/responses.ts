import { type Block, parseBlocks } from '../file/content.js';
import type { Line } from '../file/line.js';
import type { TokenCounts } from '../file/schema.js';
import type { IdRegister } from './id-register.js';
import type { Response, ToolCall, ToolResult } from './turn.js';

type AssistantLine = Extract<Line, { kind: 'assistant' }>;
interface Piece {
  readonly index: number | undefined;
  readonly block: Block;
}

/** Collects the lines of responses: one line per content block, all with the same message id and the same usage. */
export class ResponseCollector {
  readonly #ids: IdRegister;
  readonly #owner: number;
  readonly #responses: Response[] = [];
  readonly #byId = new Map<string, Response>();
  readonly #pieces = new Map<Response, Map<string, Piece>>();
  readonly #calls = new Map<string, ToolCall>();
  readonly #earlyResults = new Map<string, ToolResult>();
  #runIsBroken = true;

  constructor(ids: IdRegister) {
    this.#ids = ids;
    this.#owner = ids.newOwner();
  }

  get isEmpty(): boolean {
    return this.#responses.length === 0;
  }

  /** The responses as far as they have come. */
  responses(): readonly Response[] {
    for (const [response, pieces] of this.#pieces)
      response.blocks = inOrder([...pieces.values()]).map(({ block }) => block);
    return this.#responses;
  }

  /** A user line ends a run of assistant lines; it matters only for lines without a message id. */
  breakRun(): void {
    this.#runIsBroken = true;
  }

  /** Whether the line was taken: not where it repeats one of another turn, or of a subagent. */
  add(line: AssistantLine, at: number, opening: () => Pick<Response, 'answered' | 'answeredAt' | 'request'>): boolean {
    const { fields } = line;
    const { id } = fields.message ?? {};
    if (id !== undefined && !this.#ids.take(id, this.#owner)) return false;
    const response = this.#find(line) ?? this.#open(line, at, opening());
    this.#runIsBroken = false;
    response.lastLine = line.location.number;
    response.lastBlockAt = Math.max(response.lastBlockAt, at);
    response.stopReason = fields.message?.stop_reason ?? response.stopReason;
    response.effort ??= fields.effort;
    response.aborted ||= fields.isAbortedMidStream === true;
    response.usage = largest(response.usage, fields.message?.usage);
    this.#addBlocks(response, line, at);
    return true;
  }

  /** The line that says so tells that the last response was cut off while it streamed. */
  cutLast(line: number): void {
    const last = this.#responses.at(-1);
    if (!last) return;
    last.aborted = true;
    last.lastLine = line;
  }

  addResult(toolUseId: string | undefined, result: ToolResult): boolean {
    const call = toolUseId === undefined ? undefined : this.#calls.get(toolUseId);
    if (call) call.result ??= result;
    else if (toolUseId !== undefined) this.#earlyResults.set(toolUseId, result);
    return call !== undefined;
  }

  #find({ fields }: AssistantLine): Response | undefined {
    const id = fields.message?.id;
    if (id !== undefined) return this.#byId.get(id);
    const last = this.#responses.at(-1);
    const continues = last && last.id === undefined && last.requestId === fields.requestId;
    return continues && (!this.#runIsBroken || fields.requestId !== undefined) ? last : undefined;
  }

  #open(
    { fields, location: place }: AssistantLine,
    at: number,
    opening: Pick<Response, 'answered' | 'answeredAt' | 'request'>,
  ): Response {
    const streamedMs = fields.thinkingDurationMs ?? fields.toolInputStreamMs;
    const response: Response = {
      ...opening,
      id: fields.message?.id,
      uuid: fields.uuid,
      requestId: fields.requestId,
      model: fields.message?.model,
      firstLine: place.number,
      firstBlockAt: at,
      firstBlockStartedAt: streamedMs === undefined ? undefined : at - streamedMs,
      blocks: [],
      calls: [],
      usage: undefined,
      stopReason: undefined,
      effort: undefined,
      aborted: false,
      lastLine: place.number,
      lastBlockAt: at,
    };
    this.#responses.push(response);
    if (response.id !== undefined) this.#byId.set(response.id, response);
    this.#pieces.set(response, new Map());
    return response;
  }

  #addBlocks(response: Response, line: AssistantLine, at: number): void {
    const pieces = this.#pieces.get(response) ?? new Map<string, Piece>();
    const blocks = parseBlocks(line.content);
    const index = blocks.length === 1 ? line.fields.apiBlockIndex : undefined;
    for (const block of blocks) {
      const key = keyOf(block, index, pieces.size);
      const isRepeated = pieces.has(key);
      if (block.kind === 'tool_use' && !isRepeated) this.#addCall(response, block, line.location.number, at);
      if (block.kind === 'tool_result') this.#addServerResult(block, line.location.number, at);
      pieces.set(key, { index, block });
    }
  }

  /** What a tool of the server's own found stands in the response itself. */
  #addServerResult({ toolUseId, content, isError }: Extract<Block, { kind: 'tool_result' }>, line: number, at: number) {
    this.addResult(toolUseId, { content, isError, denied: undefined, details: undefined, line, at });
  }

  #addCall(response: Response, { id, name, input }: Extract<Block, { kind: 'tool_use' }>, line: number, at: number) {
    if (id !== undefined && (this.#calls.has(id) || !this.#ids.take(id, this.#owner))) return;
    const call: ToolCall = { id, name, input, line, at, result: undefined };
    response.calls.push(call);
    if (id === undefined) return;
    call.result = this.#earlyResults.get(id);
    this.#calls.set(id, call);
  }
}

/** What makes a block the same block when its line is repeated. */
function keyOf(block: Block, index: number | undefined, place: number): string {
  if (block.kind === 'tool_use' && block.id !== undefined) return `tool:${block.id}`;
  if (index !== undefined) return `block:${index}`;
  if (block.kind === 'text' || block.kind === 'thinking') return `${block.kind}:${block.text}`;
  try {
    return JSON.stringify(block);
  } catch {
    // nested more deeply than can be written
    return `place:${place}`;
  }
}

function inOrder(pieces: readonly Piece[]): readonly Piece[] {
  if (pieces.some((piece) => piece.index === undefined)) return pieces;
  return pieces.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0));
}

/** Every line of a response carries its usage; where they differ (2.0.50) the earlier ones are counts of a stream. */
function largest(a: TokenCounts | undefined, b: TokenCounts | undefined): TokenCounts | undefined {
  if (!a || !b) return a ?? b;
  const max = (...counts: (number | undefined)[]) => {
    const valid = counts.filter((count) => Number.isSafeInteger(count)) as number[];
    return valid.length > 0 ? Math.max(...valid) : undefined;
  };
  return {
    ...a,
    ...b,
    input_tokens: max(a.input_tokens, b.input_tokens),
    output_tokens: max(a.output_tokens, b.output_tokens),
    cache_read_input_tokens: max(a.cache_read_input_tokens, b.cache_read_input_tokens),
    cache_creation_input_tokens: max(a.cache_creation_input_tokens, b.cache_creation_input_tokens),
    cache_creation:
      a.cache_creation && b.cache_creation
        ? {
            ephemeral_5m_input_tokens: max(
              a.cache_creation.ephemeral_5m_input_tokens,
              b.cache_creation.ephemeral_5m_input_tokens,
            ),
            ephemeral_1h_input_tokens: max(
              a.cache_creation.ephemeral_1h_input_tokens,
              b.cache_creation.ephemeral_1h_input_tokens,
            ),
          }
        : (a.cache_creation ?? b.cache_creation),
  };
}
