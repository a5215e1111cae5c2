import { isDeepStrictEqual } from 'node:util';
import { attempt } from '../../shared/attempt.js';
import { type Block, parseBlocks } from '../file/content.js';
import type { AssistantLine, Line } from '../file/line.js';
import type { LineLocation } from '../file/reader.js';
import type { TokenCounts } from '../file/schema.js';
import { classifyLine } from './classify-line.js';
import type { ChangedInput } from './hook-message.js';
import { type SettledIds, soFar } from './resume-point.js';
import { isContinuation, type Response, type ToolCall, type ToolResult } from './turn.js';

/** What comes before a response: the messages that it answers, and the request that sent them. */
type Answered = Pick<Response, 'answered' | 'answeredAt' | 'request' | 'retries'>;

/** Which turn has a message id or tool call id: a line that is repeated in another turn is not collected again. */
export type IdOwners = Map<string, symbol>;

/** What another file says that a response used, of which no line says that it is whole. */
export type FindUsage = (messageId: string) => TokenCounts | undefined;

type Mutable<T> = { -readonly [key in keyof T]: T[key] };

/** A response to which lines are still added. */
interface OpenResponse extends Mutable<Omit<Response, 'blocks' | 'calls'>> {
  /** By what is the same if a block is written twice. */
  readonly blocks: Map<string, { readonly index: number | undefined; readonly block: Block }>;
  readonly calls: Mutable<ToolCall>[];
  /** The bytes from its first line to its last. */
  place: LineLocation;
}

/** Collects the responses of a turn. A response is one line per content block, all with the same message id and usage. */
export class ResponseCollector {
  readonly #owners: IdOwners;
  readonly #findUsage: FindUsage | undefined;
  readonly #owner = Symbol();
  readonly #responses: OpenResponse[] = [];
  /** By message id or, without one, by the uuid of its first line: a line can be written twice. */
  readonly #byId = new Map<string, OpenResponse>();
  readonly #calls = new Map<string, Mutable<ToolCall>>();
  /** Calls with a result that another prompt's process has made up: it took the call to be interrupted. */
  readonly #assumed = new Set<string>();
  readonly #earlyResults = new Map<string, ToolResult>();
  #openCalls = 0;
  #hasRunEnded = true;
  /** The ids of the responses that were dropped, and of their calls with the tools' names, and who has them then. */
  readonly #settledIds = new Map<string, string | null>();
  readonly #settledOwner = Symbol();
  #hasUnnamed = false;
  #answer: LineLocation | undefined;

  constructor(owners: IdOwners, findUsage?: FindUsage) {
    this.#owners = owners;
    this.#findUsage = findUsage;
  }

  get isEmpty(): boolean {
    return this.#responses.length === 0 && this.#settledIds.size === 0;
  }

  get last(): Pick<Response, 'stopReason' | 'calls' | 'firstLine' | 'lastLine' | 'request'> | undefined {
    return this.#responses.at(-1);
  }

  isContinuedBy({ fields: { message, apiBlockIndex }, content }: AssistantLine): boolean {
    const { id, usage } = message ?? {};
    const response = id === undefined ? undefined : this.#byId.get(id);
    if (!response) return false;
    const blocks = parseBlocks(content);
    const index = blocks.length === 1 ? apiBlockIndex : undefined;
    const isNew = blocks.some((block) => !response.blocks.has(blockKey(block, index, 0)));
    return isNew || (usage?.output_tokens ?? 0) > (response.usage?.output_tokens ?? 0);
  }

  hasCall(id: string | undefined): boolean {
    return id !== undefined && (this.#calls.has(id) || this.#isSettled(id));
  }

  findCallName(id: string | undefined): string | undefined {
    return id === undefined ? undefined : (this.#calls.get(id)?.name ?? this.#settledIds.get(id) ?? undefined);
  }

  hasAssumedResult(id: string | undefined): boolean {
    return id !== undefined && this.#assumed.has(id);
  }

  collect(): Response[] {
    return this.#responses.map(({ place: _, ...response }) => ({ ...response, blocks: listBlocks(response) }));
  }

  /** The ids of calls without a result, and undefined for each that has no id. */
  listOpenCalls(): (string | undefined)[] {
    return this.#responses.flatMap(({ calls }) => calls.flatMap(({ id, result }) => (result ? [] : [id])));
  }

  /** All responses but the last, if nothing that follows adds to them. Call when the last one has just begun. */
  collectSettled(): Response[] {
    const previous = this.#responses.at(-2);
    if (!previous || this.#assumed.size > 0 || this.#hasUnnamed) return [];
    if (this.#openCalls > countOpenCalls(this.#responses.at(-1))) return [];
    // The call may be in the last response, or in the next.
    if ([...this.#earlyResults.values()].some(({ line }) => line > previous.firstLine)) return [];
    return this.collect().slice(0, -1);
  }

  /**
   * The ids of responses and calls to which something may still be added; undefined if that cannot be known. A call is complete
   * with its result, and a response once another one has begun, or its results have been sent with the next request: results alone
   * do not end it, since tools start while it streams.
   */
  findGrowing(lastRequestLine: number): Set<string> | undefined {
    const ids = [...this.listOpenCalls(), ...this.#findStreaming(lastRequestLine)];
    const isCertain = this.#assumed.size === 0 && !this.#hasUnnamed && !ids.includes(undefined);
    return isCertain ? new Set(ids.filter((id) => id !== undefined)) : undefined;
  }

  /** Forgets all responses but the last, except for their ids: a line can be written twice. */
  dropSettled(): void {
    const dropped = this.#responses.splice(0, this.#responses.length - 1);
    for (const response of dropped.filter(hasText)) {
      const { start, number } = (isContinuation(response) && this.#answer) || response.place;
      this.#answer = { ...response.place, start, number };
    }
    for (const { id, calls } of dropped) {
      if (id !== undefined) this.#settle(id, null);
      if (id !== undefined) this.#byId.delete(id);
      for (const call of calls) {
        if (call.id === undefined) continue;
        this.#settle(call.id, call.name);
        this.#calls.delete(call.id);
      }
    }
    this.#earlyResults.clear();
  }

  /** The ids of what was dropped, and where the last answer in it is. */
  get settled() {
    return { ids: soFar(this.#settledIds), answer: this.#answer };
  }

  /** Takes responses for dropped that an earlier run has read. */
  resume(ids: SettledIds, answer: LineLocation | undefined): void {
    for (const [id, name] of ids) this.#settle(id, name);
    this.#answer = answer;
  }

  /** Lines without a message id are one response only if no user line comes between them. */
  endRun(): void {
    this.#hasRunEnded = true;
  }

  /** Takes note of a response that another session has: this one has none of its tokens. */
  leave(id: string | undefined): void {
    if (id !== undefined && !this.#owners.has(id)) this.#owners.set(id, Symbol());
  }

  /** Returns whether the line was taken: it is not if it repeats one of another turn, or of a subagent. */
  add(line: AssistantLine, at: number, answered: () => Answered): boolean {
    const { message, effort, isAbortedMidStream, thinkingDurationMs } = line.fields;
    const { id, stop_reason, usage } = message ?? {};
    if (id !== undefined && this.#isSettled(id)) return true;
    if (id !== undefined && !this.#take(id)) return this.#hasNewCall(line) && this.add(withoutId(line), at, answered);
    const response = this.#find(line) ?? this.#open(line, at, answered());
    this.#hasRunEnded = false;
    response.lastLine = line.location.number;
    response.place = { ...response.place, end: line.location.end };
    response.lastBlockAt = Math.max(response.lastBlockAt, at);
    response.stopReason = stop_reason ?? response.stopReason;
    response.effort ??= effort;
    response.aborted ||= isAbortedMidStream === true;
    const elsewhere = id === undefined || response.stopReason !== undefined ? undefined : this.#findUsage?.(id);
    response.usage = laterUsage(laterUsage(response.usage, usage), elsewhere);
    const blockCount = response.blocks.size;
    this.#addBlocks(response, line, at);
    if (thinkingDurationMs !== undefined && response.blocks.size > blockCount)
      response.thinkingMs = (response.thinkingMs ?? 0) + thinkingDurationMs;
    return true;
  }

  /** Marks the last response as cut off while it streamed, which a later line says. */
  abortLast(lineNumber: number): void {
    const last = this.#responses.at(-1);
    if (last) Object.assign(last, { aborted: true, lastLine: lineNumber });
  }

  /** Takes note of what a call ran with. */
  changeInput({ toolUseId = '', input, by }: ChangedInput): void {
    const call = this.#calls.get(toolUseId);
    if (!call) return;
    const asked = call.changed ? call.changed.asked : call.input;
    call.input = input;
    call.changed = isDeepStrictEqual(input, asked) ? undefined : { asked, by };
  }

  /** Returns whether the turn has the call that the result belongs to. A result can come before its call. */
  addResult(toolUseId: string | undefined, result: ToolResult, isAssumed = false): boolean {
    if (toolUseId === undefined) return false;
    if (this.#isSettled(toolUseId)) return true;
    const call = this.#calls.get(toolUseId);
    if (!call) {
      this.#earlyResults.set(toolUseId, result);
      return false;
    }
    const isReplaced = !isAssumed && this.#assumed.delete(toolUseId);
    if (isAssumed && !call.result) this.#assumed.add(toolUseId);
    if (!call.result) this.#openCalls -= 1;
    call.result = isReplaced ? result : (call.result ?? result);
    return true;
  }

  #findStreaming(lastRequestLine: number): (string | undefined)[] {
    const last = this.#responses.at(-1);
    if (!last) return [];
    const { id, stopReason, calls, lastLine } = last;
    const answered = Math.max(lastLine, ...calls.map(({ result }) => result?.line ?? Number.POSITIVE_INFINITY));
    // A block that is written before the response has ended has no stop reason.
    return stopReason !== undefined && calls.length > 0 && answered < lastRequestLine ? [] : [id];
  }

  /** Whether nobody has a call of the line yet. */
  #hasNewCall({ content }: AssistantLine): boolean {
    return parseBlocks(content).some(
      (block) => block.kind === 'tool_use' && block.id !== undefined && !this.#owners.has(block.id),
    );
  }

  #settle(id: string, name: string | null): void {
    this.#settledIds.set(id, name);
    this.#owners.set(id, this.#settledOwner);
  }

  #isSettled(id: string): boolean {
    return this.#owners.get(id) === this.#settledOwner;
  }

  #take(id: string): boolean {
    const owner = this.#owners.get(id) ?? this.#owner;
    this.#owners.set(id, owner);
    return owner === this.#owner;
  }

  #find({ fields: { message, requestId, uuid = '' } }: AssistantLine): OpenResponse | undefined {
    const known = this.#byId.get(message?.id ?? uuid);
    if (known || message?.id !== undefined) return known;
    const last = this.#responses.at(-1);
    const isSameRequest = last && last.id === undefined && last.requestId === requestId;
    return isSameRequest && (!this.#hasRunEnded || requestId !== undefined) ? last : undefined;
  }

  #open({ fields, location }: AssistantLine, at: number, answered: Answered): OpenResponse {
    const streamedMs = fields.thinkingDurationMs ?? fields.toolInputStreamMs;
    const response: OpenResponse = {
      ...answered,
      id: fields.message?.id,
      uuid: fields.uuid,
      requestId: fields.requestId,
      model: fields.message?.model,
      workedFor: {
        attributionAgent: fields.attributionAgent,
        attributionSkill: fields.attributionSkill,
        attributionPlugin: fields.attributionPlugin,
        attributionMcpServer: fields.attributionMcpServer,
        attributionMcpTool: fields.attributionMcpTool,
      },
      firstLine: location.number,
      firstBlockAt: at,
      firstBlockStartedAt: streamedMs === undefined ? undefined : at - streamedMs,
      thinkingMs: undefined,
      blocks: new Map(),
      calls: [],
      usage: undefined,
      stopReason: undefined,
      effort: undefined,
      version: fields.version,
      aborted: false,
      lastLine: location.number,
      lastBlockAt: at,
      place: location,
    };
    this.#responses.push(response);
    this.#hasUnnamed ||= response.id === undefined;
    const key = response.id ?? response.uuid;
    if (key !== undefined) this.#byId.set(key, response);
    return response;
  }

  #addBlocks(response: OpenResponse, { content, fields, location }: AssistantLine, at: number): void {
    const known = response.blocks;
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

  #addCall({ calls }: OpenResponse, block: Extract<Block, { kind: 'tool_use' }>, line: number, at: number): void {
    const { id, name, input } = block;
    if (id !== undefined && (this.hasCall(id) || !this.#take(id))) return;
    const call = { id, name, input, line, at, result: id === undefined ? undefined : this.#earlyResults.get(id) };
    if (id !== undefined) this.#earlyResults.delete(id);
    calls.push(call);
    if (!call.result) this.#openCalls += 1;
    if (id !== undefined) this.#calls.set(id, call);
  }
}

const NOTHING_BEFORE = { answered: [], answeredAt: undefined, request: undefined, retries: 0 };

/** Collects the response that begins with the first line, and those that go on where it was cut, from their lines and others. */
export function collectAnswer(lines: Iterable<Line>): Response[] {
  const collector = new ResponseCollector(new Map());
  const ids = new Set<string | undefined>();
  let isNext = true;
  for (const line of lines) {
    if (line.kind === 'user') isNext ||= classifyLine(line).role === 'resume';
    if (line.kind !== 'assistant' || line.fields.message?.model === '<synthetic>') continue;
    const { id } = line.fields.message ?? {};
    if (isNext) ids.add(id);
    isNext = false;
    if (ids.has(id)) collector.add(line, 0, () => NOTHING_BEFORE);
  }
  return collector.collect();
}

/** The turn that has the rest of the response has its id, and what it used. */
function withoutId({ fields, ...line }: AssistantLine): AssistantLine {
  const { id: _, usage: __, ...message } = fields.message ?? {};
  return { ...line, fields: { ...fields, message } };
}

/** A block with the same key as another in its response is the same block, written twice. */
function blockKey(block: Block, index: number | undefined, blockCount: number): string {
  if (block.kind === 'tool_use' && block.id !== undefined) return `tool:${block.id}`;
  if (index !== undefined) return `block:${index}`;
  if (block.kind === 'text' || block.kind === 'thinking') return `${block.kind}:${block.text}`;
  // A block that is nested too deeply cannot be written.
  return attempt(() => JSON.stringify(block)) ?? `place:${blockCount}`;
}

function countOpenCalls(response: OpenResponse | undefined): number {
  return response?.calls.filter(({ result }) => result === undefined).length ?? 0;
}

function hasText({ blocks }: OpenResponse): boolean {
  return [...blocks.values()].some(({ block }) => block.kind === 'text' && block.text !== '');
}

function listBlocks({ blocks }: Pick<OpenResponse, 'blocks'>): Block[] {
  const indexed = [...blocks.values()];
  // Otherwise they stay in the order of their lines.
  if (indexed.every(({ index }) => index !== undefined)) indexed.sort((a, b) => (a.index ?? 0) - (b.index ?? 0));
  return indexed.map(({ block }) => block);
}

/**
 * Every line of a response has its usage. If they differ, that with the most output is the final one: an earlier line has what was
 * known then (2.0.50), or an estimate of a proxy.
 */
function laterUsage(known: TokenCounts | undefined, next: TokenCounts | undefined): TokenCounts | undefined {
  if (!known || !next) return next ?? known;
  return (next.output_tokens ?? 0) >= (known.output_tokens ?? 0) ? next : known;
}
