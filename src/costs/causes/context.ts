import { countUsage, describeContext } from '../../observations/build/usage.js';
import { groupBy } from '../../shared/group-by.js';
import type { TokenCounts } from '../../transcript/file/schema.js';
import { groupTokens, type TokenKind } from '../../transcript/file/token-kinds.js';
import { type AnsweredMessage, findRequestTime, type Response } from '../../transcript/turns/turn.js';
import type { UsedKind } from '../session-usage.js';
import { addUpTokens, isThought, listWritten, OWN_PARTS, type Part, toPart } from './parts.js';

/** What the line of a request says of its messages. */
export interface RequestMessages {
  /** How many it has in common with the request that it builds on; undefined if it builds on none, and lists all. */
  readonly kept: number | undefined;
  readonly count: number;
  /** The system prompt and the tools; undefined if their line is not there. */
  readonly shape: readonly Part[] | undefined;
}

/** What a response used for each part, by the part's name. These are not whole tokens. */
export type Shares = Map<string, { [kind in UsedKind]?: number }>;

/** In this order the kinds cover a request: what is read from the cache begins it, and what is in no cache ends it. */
const REQUEST_KINDS = [
  'cache_read_input_tokens',
  'input_cache_creation_1h',
  'input_cache_creation_5m',
  'cache_creation_input_tokens',
  'input',
] as const satisfies readonly TokenKind[];

/** What a request did not find in the cache although the one before had left it there. */
export interface LostCache {
  readonly tokens: number;
  /** The kind that counts them in the request that sent them again. */
  readonly kind: TokenKind;
  /** From the response before to this request, in ms. */
  readonly pause: number;
  readonly isOtherModel: boolean;
}

interface LastRequest {
  /** Tokens that were in the cache after it. */
  readonly cached: number;
  readonly at: number;
  readonly model: string | undefined;
}

/** What the context needs of a response. */
type Followed = Parameters<typeof findRequestTime>[0] &
  Pick<Response, 'answered' | 'blocks' | 'usage' | 'model' | 'lastBlockAt'>;

interface PlacedPart {
  readonly name: string;
  tokens: number;
  /** The number of its message. */
  readonly message: number;
}

/** The system prompt and the tools are in front of all messages, and no compaction removes them. */
const BEFORE_MESSAGES = -1;

/** Each request goes through all parts. With more of them the oldest are joined, so a long session does not take ever longer. */
const MOST_PARTS = 400;

/**
 * Follows what fills the context of one thread. Each response says how many tokens its request had. So what came since the request
 * before has as many tokens as it had more; several parts share them by their lengths.
 */
export class Context {
  #parts: PlacedPart[] = [];
  /** What the last response wrote, which the next request has, too. */
  #written: readonly Part[] = [];
  #messages = 0;
  #isCompacted = false;
  #last: LastRequest | undefined;

  /** What the last request had, in order. */
  get parts(): readonly Part[] {
    return this.#parts;
  }

  /** Claude Code has replaced all messages by a summary. */
  compact(): void {
    this.#parts = this.#parts.filter(({ message }) => message === BEFORE_MESSAGES);
    this.#written = [];
    this.#messages = 0;
    this.#isCompacted = true;
    this.#last = undefined;
  }

  /** Adds what a response answers, and then what it has written. Returns what it used for each part, and what its request has lost. */
  add(response: Followed, sent: RequestMessages | undefined): { readonly shares: Shares; readonly lost?: LostCache } {
    const { answered, blocks, usage } = response;
    const shares: Shares = new Map();
    const { context_tokens: size = 0 } = describeContext(usage);
    if (size > 0) {
      this.#addRequest(answered, size, sent);
      this.#shareRequest(usage, size, shares);
    }
    this.#written = listWritten(blocks, usage);
    for (const { name, tokens } of this.#written) addShare(shares, name, 'output', tokens);
    const { cacheRead, cacheWritten } = groupTokens(usage);
    const lost = this.#last && findLostCache(response, this.#last);
    this.#last = { cached: cacheRead + cacheWritten, at: response.lastBlockAt, model: response.model };
    return { shares, ...(lost && { lost }) };
  }

  #addRequest(answered: readonly AnsweredMessage[], size: number, sent: RequestMessages | undefined): void {
    if (sent) this.#removeRewound(sent, answered.length);
    if (this.#parts.length === 0) this.#push(sent?.shape ?? [], BEFORE_MESSAGES);
    const isNew = this.#messages === 0;
    const isSameTurn = answered.every(({ role }) => role === 'tool');
    const written = isSameTurn ? this.#written : this.#written.filter((part) => !isThought(part));
    this.#push(written, this.#messages);
    const first = this.#messages + (written.length > 0 ? 1 : 0);
    const came = answered.map(toPart);
    const rest = Math.max(0, size - addUpTokens(this.#parts) - addUpTokens(came));
    // Later than at the beginning, it is what a prompt mentions, and what Claude Code says with a result.
    const isExplained = isNew || addUpTokens(came) === 0;
    if (isExplained) this.#pushBefore(rest, sent);
    const times = isExplained ? 1 : 1 + rest / addUpTokens(came);
    for (const [index, { name, tokens }] of came.entries())
      this.#push([{ name, tokens: tokens * times }], first + index);
    this.#fit(size, isSameTurn);
    this.#messages = sent?.count ?? first + answered.length;
    this.#isCompacted = false;
    if (this.#parts.length > MOST_PARTS) this.#parts = joinOldest(this.#parts, MOST_PARTS / 2);
  }

  #push(parts: readonly Part[], message: number): void {
    for (const { name, tokens } of parts) if (tokens > 0) this.#parts.push({ name, tokens, message });
  }

  /** Adds what came before the first prompt, or what Claude Code has added later. */
  #pushBefore(tokens: number, sent: RequestMessages | undefined): void {
    const isStart = this.#parts.length === 0 && !sent?.shape;
    const name = this.#isCompacted ? OWN_PARTS.summary : isStart ? OWN_PARTS.start : OWN_PARTS.memory;
    this.#push([{ name, tokens }], name === OWN_PARTS.start ? BEFORE_MESSAGES : this.#messages);
  }

  /** After a rewind, a request has fewer messages than the one before. */
  #removeRewound({ kept, count }: RequestMessages, added: number): void {
    const first = kept ?? Math.max(0, count - added);
    if (first >= this.#messages) return;
    this.#parts = this.#parts.filter(({ message }) => message < first);
    this.#written = [];
    this.#messages = first;
  }

  /** A request can have less than its parts: nobody says what was left out. Many models do not get earlier thoughts. */
  #fit(size: number, isSameTurn: boolean): void {
    const excess = addUpTokens(this.#parts) - size;
    const thoughts = isSameTurn ? [] : this.#parts.filter(isThought);
    if (excess > 0) shrink(thoughts, addUpTokens(thoughts) - excess);
    this.#parts = this.#parts.filter(({ tokens }) => tokens > 0);
    shrink(this.#parts, size);
  }

  #shareRequest(usage: TokenCounts | undefined, size: number, shares: Shares): void {
    const counts = countUsage(usage) ?? {};
    const total = REQUEST_KINDS.reduce((sum, kind) => sum + (counts[kind] ?? 0), 0);
    const kinds = REQUEST_KINDS.map((kind) => ({ kind, left: counts[kind] ?? 0 }));
    let place = 0;
    for (const { name, tokens } of this.#parts) {
      let left = (tokens * total) / size;
      for (let range = kinds[place]; range && left > 0; range = kinds[place]) {
        const taken = Math.min(left, range.left);
        addShare(shares, name, range.kind, taken);
        left -= taken;
        range.left -= taken;
        if (range.left <= 0) place += 1;
      }
    }
  }
}

/** Finds what a request has lost of what was in the cache after the one before; undefined if nothing. */
function findLostCache(response: Followed, last: LastRequest): LostCache | undefined {
  const { model, usage } = response;
  const { cacheRead, cacheWritten, input } = groupTokens(usage);
  const tokens = Math.min(last.cached, cacheRead + cacheWritten + input) - cacheRead;
  if (tokens <= 0) return undefined;
  const counts = countUsage(usage) ?? {};
  const kind = REQUEST_KINDS.slice(1).find((each) => (counts[each] ?? 0) > 0) ?? 'input';
  const pause = Math.max(0, findRequestTime(response) - last.at);
  return { tokens, kind, pause, isOtherModel: model !== last.model };
}

/** Joins the oldest parts that have the same name. What is in front of the messages stays there. */
function joinOldest(parts: readonly PlacedPart[], count: number): PlacedPart[] {
  const isInFront = ({ message }: PlacedPart) => message === BEFORE_MESSAGES;
  const groups = groupBy(parts.slice(0, count), (part) => `${isInFront(part)} ${part.name}`);
  const joined = [...groups.values()].map((group) => ({ ...group[0], tokens: addUpTokens(group) }));
  return [...joined, ...parts.slice(count)];
}

function shrink(parts: readonly PlacedPart[], size: number): void {
  const times = Math.max(0, size) / addUpTokens(parts);
  if (times !== 1) for (const part of parts) part.tokens *= times;
}

function addShare(shares: Shares, name: string, kind: TokenKind, tokens: number): void {
  if (tokens <= 0) return;
  const share = shares.get(name) ?? {};
  share[kind] = (share[kind] ?? 0) + tokens;
  shares.set(name, share);
}
