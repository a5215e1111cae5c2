import { type Block, parseBlocks } from '../file/content.js';
import type { AssistantLine } from '../file/line.js';
import type { TokenCounts } from '../file/schema.js';
import type { Response, ToolCall, ToolResult } from './turn.js';

/** What a response answers: the messages before it, and the request that sent them. */
type Answered = Pick<Response, 'answered' | 'answeredAt' | 'request'>;

/** Which turn has a message id or tool call id: a line that is repeated in another turn is not collected again. */
export type IdOwners = Map<string, symbol>;

interface IndexedBlock {
  readonly index: number | undefined;
  readonly block: Block;
}

/** Collects the responses of a turn. A response is one line per content block, all with the same message id and usage. */
export class ResponseCollector {
  readonly #owners: IdOwners;
  readonly #owner = Symbol();
  readonly #responses: Response[] = [];
  readonly #byId = new Map<string, Response>();
  readonly #blocks = new Map<Response, Map<string, IndexedBlock>>();
  readonly #calls = new Map<string, ToolCall>();
  readonly #earlyResults = new Map<string, ToolResult>();
  #hasRunEnded = true;

  constructor(owners: IdOwners) {
    this.#owners = owners;
  }

  get isEmpty(): boolean {
    return this.#responses.length === 0;
  }

  /** The responses, as far as they have come. */
  collected(): readonly Response[] {
    for (const [response, blocks] of this.#blocks)
      response.blocks = sortByIndex([...blocks.values()]).map(({ block }) => block);
    return this.#responses;
  }

  /** Lines without a message id are one response only if no user line comes between them. */
  endRun(): void {
    this.#hasRunEnded = true;
  }

  /** Returns whether the line was taken: it is not if it repeats one of another turn, or of a subagent. */
  add(line: AssistantLine, at: number, answered: () => Answered): boolean {
    const { message, effort, isAbortedMidStream } = line.fields;
    const { id, stop_reason, usage } = message ?? {};
    if (id !== undefined && !this.#take(id)) return false;
    const response = this.#find(line) ?? this.#open(line, at, answered());
    this.#hasRunEnded = false;
    response.lastLine = line.location.number;
    response.lastBlockAt = Math.max(response.lastBlockAt, at);
    response.stopReason = stop_reason ?? response.stopReason;
    response.effort ??= effort;
    response.aborted ||= isAbortedMidStream === true;
    response.usage = largestUsage(response.usage, usage);
    this.#addBlocks(response, line, at);
    return true;
  }

  /** Marks the last response as cut off while it streamed, which a later line says. */
  abortLast(lineNumber: number): void {
    const last = this.#responses.at(-1);
    if (!last) return;
    last.aborted = true;
    last.lastLine = lineNumber;
  }

  /** Returns whether the turn has the call that the result belongs to. A result can come before its call. */
  addResult(toolUseId: string | undefined, result: ToolResult): boolean {
    const call = toolUseId === undefined ? undefined : this.#calls.get(toolUseId);
    if (call) call.result ??= result;
    else if (toolUseId !== undefined) this.#earlyResults.set(toolUseId, result);
    return call !== undefined;
  }

  #take(id: string): boolean {
    const owner = this.#owners.get(id) ?? this.#owner;
    this.#owners.set(id, owner);
    return owner === this.#owner;
  }

  #find({ fields }: AssistantLine): Response | undefined {
    const id = fields.message?.id;
    if (id !== undefined) return this.#byId.get(id);
    const last = this.#responses.at(-1);
    const isSameRequest = last && last.id === undefined && last.requestId === fields.requestId;
    return isSameRequest && (!this.#hasRunEnded || fields.requestId !== undefined) ? last : undefined;
  }

  #open({ fields, location }: AssistantLine, at: number, answered: Answered): Response {
    const streamedMs = fields.thinkingDurationMs ?? fields.toolInputStreamMs;
    const response: Response = {
      ...answered,
      id: fields.message?.id,
      uuid: fields.uuid,
      requestId: fields.requestId,
      model: fields.message?.model,
      firstLine: location.number,
      firstBlockAt: at,
      firstBlockStartedAt: streamedMs === undefined ? undefined : at - streamedMs,
      blocks: [],
      calls: [],
      usage: undefined,
      stopReason: undefined,
      effort: undefined,
      aborted: false,
      lastLine: location.number,
      lastBlockAt: at,
    };
    this.#responses.push(response);
    if (response.id !== undefined) this.#byId.set(response.id, response);
    this.#blocks.set(response, new Map());
    return response;
  }

  #addBlocks(response: Response, { content, fields, location }: AssistantLine, at: number): void {
    const known = this.#blocks.get(response) ?? new Map<string, IndexedBlock>();
    const blocks = parseBlocks(content);
    const index = blocks.length === 1 ? fields.apiBlockIndex : undefined;
    const line = location.number;
    for (const block of blocks) {
      const key = blockKey(block, index, known.size);
      if (block.kind === 'tool_use' && !known.has(key)) this.#addCall(response, block, line, at);
      if (block.kind === 'tool_result') {
        // The response itself contains the results of the API's own tools.
        const { toolUseId, content, isError } = block;
        this.addResult(toolUseId, { content, isError, denied: undefined, details: undefined, line, at });
      }
      known.set(key, { index, block });
    }
  }

  #addCall(response: Response, { id, name, input }: Extract<Block, { kind: 'tool_use' }>, line: number, at: number) {
    if (id !== undefined && (this.#calls.has(id) || !this.#take(id))) return;
    const call: ToolCall = { id, name, input, line, at, result: undefined };
    response.calls.push(call);
    if (id === undefined) return;
    call.result = this.#earlyResults.get(id);
    this.#calls.set(id, call);
  }
}

/** A block with the same key as another in its response is the same block, written twice. */
function blockKey(block: Block, index: number | undefined, blockCount: number): string {
  if (block.kind === 'tool_use' && block.id !== undefined) return `tool:${block.id}`;
  if (index !== undefined) return `block:${index}`;
  if (block.kind === 'text' || block.kind === 'thinking') return `${block.kind}:${block.text}`;
  try {
    return JSON.stringify(block);
  } catch {
    // The block is nested too deeply to be written.
    return `place:${blockCount}`;
  }
}

function sortByIndex(blocks: readonly IndexedBlock[]): readonly IndexedBlock[] {
  if (blocks.some(({ index }) => index === undefined)) return blocks;
  return blocks.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0));
}

const COUNTS = ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] as const;
const CACHE_COUNTS = ['ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens'] as const;

/** Every line of a response has its usage. If they differ (2.0.50), the smaller counts are those of an earlier moment. */
function largestUsage(a: TokenCounts | undefined, b: TokenCounts | undefined): TokenCounts | undefined {
  if (!a || !b) return a ?? b;
  const [one, other] = [a.cache_creation, b.cache_creation];
  const cache_creation = one && other ? largestCounts(CACHE_COUNTS, one, other) : (one ?? other);
  return { ...a, ...b, ...largestCounts(COUNTS, a, b), cache_creation };
}

type Counts<Name extends string> = { [name in Name]?: number | undefined };

function largestCounts<Name extends string>(names: readonly Name[], a: Counts<Name>, b: Counts<Name>): Counts<Name> {
  const largest: Counts<Name> = {};
  for (const name of names) {
    const valid = [a[name], b[name]].filter((count) => Number.isSafeInteger(count)) as number[];
    largest[name] = valid.length > 0 ? Math.max(...valid) : undefined;
  }
  return largest;
}
