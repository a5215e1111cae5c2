import { isRecord, type Json, withoutUndefined } from '../../shared/json.js';
import { extractParts, extractText, parseBlocks } from '../../transcript/file/content.js';
import type { RequestMessage, RequestShape } from '../../transcript/file/schema.js';
import type { MissingMessages, SentRequest, StoredPart } from '../../transcript/requests/request-index.js';
import type { ContentSettings, MediaFile } from '../model.js';
import { buildContent, replaceMedia } from './media.js';
import { buildMark, buildOutputMessage } from './messages.js';
import { countChars, sanitizeValue } from './sanitize.js';

/** A whole request, as the input of the generation that answers it. */
export interface RequestInput {
  readonly input: readonly Json[];
  readonly media: readonly MediaFile[];
  readonly metadata: { readonly [key: string]: Json };
}

/** A message of a request, or its system prompt and tools: sanitized, in the shape that Langfuse draws. */
interface RequestPart {
  readonly kind: 'part';
  readonly messages: readonly Json[];
  readonly chars: number;
  /** Whether nothing was cut. */
  readonly isWhole: boolean;
  readonly media: readonly MediaFile[];
  /** How many images and documents it has, including those that placeholders have replaced. */
  readonly mediaCount: number;
}

type Stored = StoredPart<RequestMessage | RequestShape>;

/** How much an input may still take. */
interface Budget {
  readonly chars: number;
  readonly media: number;
}

/** A request may have hundreds, and the bytes of each are kept in memory. Placeholders replace the older ones. */
const MAX_MEDIA = 20;

/** Builds the inputs of requests. Most of a request is in the one before it, too, and is not sanitized again. */
export class RequestInputBuilder {
  readonly #settings: ContentSettings;
  /** The parts of the previous request, by their hashes. */
  #previous: ReadonlyMap<string, RequestPart> = new Map();

  constructor(settings: ContentSettings) {
    this.#settings = settings;
  }

  /** Returns undefined if none of the request's messages can be found. */
  build(request: SentRequest): RequestInput | undefined {
    const { system, newestFirst } = this.#selectParts(request);
    const found = newestFirst.filter((part) => part.kind === 'part');
    if (found.length === 0) return undefined;
    const missing = newestFirst.reduce((total, part) => total + (part.kind === 'missing' ? part.count : 0), 0);
    const leftOut = request.count - found.length - missing;
    return {
      input: [
        ...(system?.messages ?? []),
        ...(leftOut > 0 ? [buildMark(leftOut, 'older message', 'left out')] : []),
        ...nameToolMessages(joinMessages(newestFirst.toReversed())),
      ],
      media: found.flatMap(({ media }) => media),
      metadata: withoutUndefined<Json>({
        request_messages: request.count,
        request_messages_left_out: leftOut || undefined,
        request_messages_missing: missing || undefined,
        request_system_missing: system ? undefined : true,
      }),
    };
  }

  /** Takes the system prompt and tools, up to half of the limit, then the newest messages that fit, at least one. */
  #selectParts({ shape, messages }: SentRequest) {
    const { maxChars } = this.#settings;
    const parts = new Map<string, RequestPart>();
    const system = shape && this.#preparePart(shape, { chars: Math.floor(maxChars / 2), media: 0 }, parts);
    const newestFirst: (RequestPart | MissingMessages)[] = [];
    let left: Budget = { chars: maxChars - (system?.chars ?? 0), media: MAX_MEDIA };
    let isFirst = true;
    for (const message of messages) {
      if (message.kind === 'missing') {
        newestFirst.push(message);
        continue;
      }
      const part = this.#preparePart(message, { chars: maxChars, media: left.media }, parts);
      const fits = part === undefined || (part.isWhole && part.chars <= left.chars);
      if (!fits && !isFirst) break;
      const taken = fits ? part : this.#buildPart(message, left);
      newestFirst.push(taken ?? { kind: 'missing', count: 1 });
      if (!taken) continue;
      isFirst = false;
      left = { chars: left.chars - taken.chars, media: left.media - taken.media.length };
    }
    this.#previous = parts;
    return { system, newestFirst };
  }

  /** Takes a part of the previous request, or builds it; returns undefined if it cannot be read. */
  #preparePart(stored: Stored, budget: Budget, parts: Map<string, RequestPart>): RequestPart | undefined {
    const previous = this.#previous.get(stored.hash);
    // Its images are still there, or would not fit anyway. After a rewind they may fit again.
    const isReusable =
      previous && (previous.media.length === previous.mediaCount || previous.mediaCount > budget.media);
    const part = isReusable ? limitMedia(previous, budget) : this.#buildPart(stored, budget);
    if (part) parts.set(stored.hash, part);
    return part;
  }

  #buildPart({ read }: Stored, budget: Budget): RequestPart | undefined {
    const stored = read();
    if (stored === undefined) return undefined;
    const built = 'role' in stored ? buildMessages(stored, this.#settings) : [buildSystemMessage(stored)];
    let chars = 0;
    const sanitized = built.map((message) => {
      const result = sanitizeValue(message, this.#settings.redact, Math.max(0, budget.chars - chars));
      chars += countChars(result.value);
      return result;
    });
    const messages = sanitized.map(({ value }) => value);
    const media = sanitized.flatMap((result) => result.media);
    const isWhole = sanitized.every(({ fullChars }) => fullChars === undefined);
    return limitMedia({ kind: 'part', messages, chars, isWhole, media, mediaCount: media.length }, budget);
  }
}

/** Builds the system prompt and the tools, where Langfuse looks for them. */
function buildSystemMessage({ system, tools }: RequestShape): unknown {
  const definitions = Array.isArray(tools) ? tools.filter(isRecord) : [];
  const shown = definitions.map(({ input_schema: parameters, ...rest }) => withoutUndefined({ ...rest, parameters }));
  return { role: 'system', content: extractText(system), ...(shown.length > 0 && { tools: shown }) };
}

/** One message of the API is several in the shape that Langfuse draws: each tool result is a message of its own. */
function buildMessages({ role, content }: RequestMessage, settings: ContentSettings): readonly unknown[] {
  const blocks = parseBlocks(content);
  const results = blocks
    .filter((block) => block.kind === 'tool_result')
    .map(({ toolUseId, content: result }) => ({
      role: 'tool',
      tool_call_id: toolUseId,
      content: buildContent(extractParts(isRecord(result) ? [result] : result), settings),
    }));
  if (role === 'assistant') {
    const calls = blocks.filter((block) => block.kind === 'tool_use');
    // The results of tools that the server runs are in the same message as their calls.
    return [buildOutputMessage({ blocks, calls }, settings), ...results];
  }
  const message = { role, content: buildContent(extractParts(content), settings) };
  return message.content === '' && results.length > 0 ? results : [...results, message];
}

function limitMedia(part: RequestPart, budget: Budget): RequestPart {
  if (part.media.length <= budget.media) return part;
  return { ...part, messages: part.messages.map((message) => replaceMedia(message, part.media)), media: [] };
}

/** Joins the messages of all parts, with one mark for missing parts that follow each other. */
function joinMessages(parts: readonly (RequestPart | MissingMessages)[]): Json[] {
  const messages: Json[] = [];
  let missing = 0;
  for (const part of parts) {
    if (part.kind === 'part') {
      messages.push(...part.messages);
      missing = 0;
    } else {
      if (missing > 0) messages.pop();
      missing += part.count;
      messages.push(buildMark(missing, 'message', 'not found in the transcript'));
    }
  }
  return messages;
}

/** A result does not say which tool it is from, but the call does, in a message before it. */
function nameToolMessages(messages: readonly Json[]): Json[] {
  const names = new Map<Json | undefined, string>();
  return messages.map((message) => {
    if (!isRecord(message)) return message;
    const calls = Array.isArray(message.tool_calls) ? message.tool_calls.filter(isRecord) : [];
    for (const { id, function: called } of calls)
      if (typeof id === 'string' && isRecord(called)) names.set(id, String(called.name));
    const { role, ...rest } = message;
    const name = role === 'tool' && typeof rest.tool_call_id === 'string' ? names.get(rest.tool_call_id) : undefined;
    return name === undefined ? message : ({ role, name, ...rest } as Json);
  });
}
